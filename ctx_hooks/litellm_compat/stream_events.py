"""The first events of a stream, in LiteLLM's forms: bytes, mappings and objects."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

OPENING = frozenset({"message_start", "ping", "response.created", "response.in_progress", "response.queued"})
FAILED = frozenset({"error", "response.failed"})
UNREADABLE: Mapping[str, Any] = {}
"""Represents data that is no known event and may be content."""


class StreamedError(Exception):
    """An error that a provider reported inside a stream; `body` is the event."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        super().__init__(json.dumps(body, default=str))
        self.body = body


def error_before_content(chunks: Sequence[Any]) -> StreamedError | None:
    """Return the error that the first chunks of a stream report before any content, None if there is none."""
    told: Any = next((event for event in _events(chunks) if not _is_opening(event)), None)
    if _kind(told) not in FAILED and not _is_bare_error(told):
        return None
    return StreamedError(told if isinstance(told, Mapping) else told.model_dump(mode="json", warnings=False))


def _is_bare_error(event: Any) -> bool:
    """Whether the event is Google's: an error and nothing else, without a type."""
    return isinstance(event, Mapping) and list(event) == ["error"] and isinstance(event["error"], Mapping)


def is_opening(chunks: Sequence[Any]) -> bool:
    """Whether the first chunks of a stream have no content yet."""
    return all(map(_is_opening, _events(chunks)))


def flat_chat_error(chunk: Any) -> Mapping[str, Any] | None:
    """Return a chat stream's chunk that is itself an error, as older vLLM servers send it; else None."""
    message = _field(chunk, "message") if _field(chunk, "object") == "error" else None
    return {"message": message, "code": _field(chunk, "code"), "type": _field(chunk, "type")} if message else None


def flat_error(event: Any) -> Mapping[str, Any] | None:
    """Return the error of an `error` event whose fields are beside its type, as in OpenAI's reference; else None."""
    if _kind(event) != "error" or _field(event, "error") is not None:
        return None
    message = _field(event, "message")
    return {"message": message, "code": _field(event, "code"), "param": _field(event, "param")} if message else None


def _events(chunks: Sequence[Any]) -> list[Any]:
    """Return the events of a stream's first chunks, without an incomplete last one."""
    pieces = [c.encode() if isinstance(c, str) else c for c in chunks if isinstance(c, (str, bytes))]
    return [*_sent_events(b"".join(pieces)), *(c for c in chunks if not isinstance(c, (str, bytes)))]


def _sent_events(text: bytes) -> list[Any]:
    """Return the data of a text of server-sent events, which providers write as one line of JSON each."""
    lines = text.split(b"\n")
    found = []
    for number, line in enumerate(lines):
        if line.startswith(b"data:"):
            try:
                found.append(json.loads(line[5:]))
            except ValueError:
                if number < len(lines) - 1:
                    found.append(UNREADABLE)
    return found


def _is_opening(event: Any) -> bool:
    kind = _kind(event)
    if kind is not None:
        return kind in OPENING
    choices = _field(event, "choices")
    return isinstance(choices, (list, tuple)) and not any(map(_has_content, choices))


def _has_content(choice: Any) -> bool:
    """Whether a chunk's choice has more than the role with which chat streams open."""
    delta = _field(choice, "delta") or {}
    return bool(_field(choice, "finish_reason")) or any(value for name, value in dict(delta).items() if name != "role")


def _kind(event: Any) -> str | None:
    """Return an event's type; LiteLLM's are members of an enum."""
    kind = _field(event, "type")
    value = getattr(kind, "value", kind)
    return value if isinstance(value, str) else None


def _field(event: Any, name: str) -> Any:
    return event.get(name) if isinstance(event, Mapping) else getattr(event, name, None)
