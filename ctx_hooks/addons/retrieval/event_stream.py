"""Server-sent events as bytes, cut anywhere: whole events out of them, and events back into bytes."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

EVENT_END = re.compile(rb"\r\n\r\n|\n\n|\r\r")
"""An empty line ends an event (https://html.spec.whatwg.org/multipage/server-sent-events.html)."""
LINE_END = re.compile(rb"\r\n|\n|\r")
LONGEST_END_BYTES = 4


class EventBuffer:
    """Takes the bytes of a stream and gives its events back, each as the bytes that it came in."""

    def __init__(self) -> None:
        self._rest = bytearray()
        self._searched = 0

    def add(self, piece: bytes) -> list[bytes]:
        """Return the events that are whole with this piece, in their order."""
        self._rest += piece
        found, start = [], 0
        while (end := EVENT_END.search(self._rest, max(start, self._searched))) is not None:
            found.append(bytes(self._rest[start : end.end()]))
            start = end.end()
        del self._rest[:start]
        self._searched = max(0, len(self._rest) - LONGEST_END_BYTES)
        return found

    def rest(self) -> bytes:
        """Return what no empty line has ended."""
        return bytes(self._rest)


def data_of(event: bytes) -> Mapping[str, Any] | None:
    r"""Return the JSON object that an event brings, None where it brings none, such as a comment or `[DONE]`.

    >>> data_of(b'event: ping\ndata: {"type": "ping"}\n\n')
    {'type': 'ping'}
    """
    lines = [line[len(b"data:") :] for line in LINE_END.split(event) if line.startswith(b"data:")]
    try:
        found = json.loads(b"\n".join(lines)) if lines else None
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def event_bytes(data: Mapping[str, Any]) -> bytes:
    """Return an event in Anthropic's form, named after the type of its data."""
    return f"event: {data['type']}\ndata: {json.dumps(data, separators=(',', ':'))}\n\n".encode()
