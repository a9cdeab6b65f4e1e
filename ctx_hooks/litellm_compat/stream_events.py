"""The first events of a stream, in the forms in which LiteLLM hands them on: bytes, mappings and objects."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

OPENING = frozenset({"message_start", "ping", "response.created", "response.in_progress", "response.queued"})
FAILED = frozenset({"error", "response.failed"})


class StreamedError(Exception):
    """An error that a provider told inside a stream; `body` is the event."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        super().__init__(json.dumps(body, default=str))
        self.body = body


def error_event(chunk: Any) -> Mapping[str, Any] | None:
    """Return the event when it says that the answer failed, else None."""
    event = _event(chunk)
    return event if event is not None and str(event.get("type")) in FAILED else None


def is_opening(chunk: Any) -> bool:
    """Whether the event comes before any content."""
    event = _event(chunk)
    return event is not None and str(event.get("type")) in OPENING


def _event(chunk: Any) -> Mapping[str, Any] | None:
    """Return the last event in a chunk of a server-sent stream, or the event that an object is."""
    if isinstance(chunk, Mapping):
        return chunk
    if isinstance(chunk, (bytes, str)):
        text = chunk.decode("utf-8", "replace") if isinstance(chunk, bytes) else chunk
        data = [line[5:].strip() for line in text.splitlines() if line.startswith("data:")]
        try:
            found = json.loads(data[-1]) if data else None
        except ValueError:
            return None
        return found if isinstance(found, Mapping) else None
    dump = getattr(chunk, "model_dump", None)
    if dump is None or not isinstance(getattr(chunk, "type", None), str):
        return None
    dumped = dump()
    return dumped if isinstance(dumped, Mapping) else None
