"""The binary event stream of AWS: length, headers and payload of each message, with a checksum before and behind."""

import json
import struct
import zlib
from typing import Any

MEDIA_TYPE = "application/vnd.amazon.eventstream"
_STRING = 7
"""The number of a header whose value is a string."""


def event(kind: str, payload: Any) -> bytes:
    """Return a message that carries an event."""
    return _message({":message-type": "event", ":event-type": kind, ":content-type": "application/json"}, payload)


def exception(kind: str, payload: Any) -> bytes:
    """Return a message that ends the stream with an error."""
    return _message({":message-type": "exception", ":exception-type": kind, ":content-type": "application/json"}, payload)


def _message(headers: dict[str, str], payload: Any) -> bytes:
    head = b"".join(map(_header, headers, headers.values()))
    body = json.dumps(payload).encode()
    lengths = struct.pack("!II", 16 + len(head) + len(body), len(head))
    message = lengths + struct.pack("!I", zlib.crc32(lengths)) + head + body
    return message + struct.pack("!I", zlib.crc32(message))


def _header(name: str, value: str) -> bytes:
    return struct.pack("!B", len(name)) + name.encode() + struct.pack("!BH", _STRING, len(value)) + value.encode()
