"""The beginning of an answer, raw or in LiteLLM's forms: bytes of events or of JSON, mappings and objects."""

import json
import math
import re
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from ctx_hooks.overflow.texts import MOST_CHARS, own_words

MOST_READ = 6
"""Events that open a stream before its content: message_start and ping, response.created, queued and in_progress."""
OPENING = frozenset(
    {"message_start", "ping", "content_block_stop", "response.created", "response.in_progress", "response.queued"}
)
FAILED = frozenset({"error", "response.failed"})
ERRORS = ("error", "errors", "error_message", "errorMessage", "error_msg", "detail")
BARE = frozenset({"code", "status_code", "status", "type", "object", "message", "param", "id", "request_id", "requestId"})
NO_ERROR = (None, 0, 200, "0", "200", "ok", "success")
ANSWERS = (
    *("candidates", "content", "content_block", "delta", "output", "outputs", "text", "response", "completion"),
    *("generated_text", "token", "result", "results", "data"),
)
PLAIN = (None, "text", "output_text", "message")
"""Types of parts and items that may be empty; a call or reasoning is content."""
FRAME = frozenset({"role", "type", "id", "index", "object", "status", "annotations", "stop_reason", "stop_sequence"})
EXCEEDED = "model_context_window_exceeded"
"""The reason with which Anthropic, Z.ai and Bedrock end an answer at the end of the window."""
REASONS = ("finish_reason", "native_finish_reason", "stop_reason", "stopReason")
STATUSES = (
    *((429, "rate.?limit|too.?many.?requests|throttl|quota|exhausted"), (401, "api.?key|unauthori[sz]ed|authenticat")),
    *((503, "overload|unavailable"), (400, "invalid|bad.?request|parameter")),
)
"""By words of an error that states no status; 500 if there are none."""


class StreamedError(Exception):
    """An error that a provider reported inside a stream, or in an answer with status 200; `body` is the event."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        super().__init__(json.dumps(body, default=str))
        self.body = body


def error_before_content(chunks: Sequence[Any]) -> StreamedError | None:
    """Return the error that the first chunks of an answer report before any content, None if there is none."""
    first: Any = next((event for event in _events(chunks) if not _is_opening(event)), None)
    if _kind(first) in FAILED or _is_untyped_error(first):
        return StreamedError(first if isinstance(first, Mapping) else first.model_dump(mode="json", warnings=False))
    if isinstance(first, Mapping) and not _answers(first) and _ends_at_window(first):
        return StreamedError({"error": {"code": EXCEEDED, "message": f"The answer is empty: {EXCEEDED}"}})
    return None


def refusal_of(error: StreamedError, *, is_overflow: bool) -> tuple[int, dict[str, Any]]:
    """Return the status and the body with which other servers report an error."""
    body, words = error.body, own_words(error.body)
    message = next(iter(words.texts), "") or str(error)[:MOST_CHARS]
    code = next((code for code in words.codes if code != "error"), None)
    stated = [_field(held, name) for held in (body, body.get("error")) for name in ("status_code", "code", "status")]
    named = [status for status, names in STATUSES if re.search(names, f"{code} {message}".lower())]
    known = next(status for status in (*stated, *named, 500) if status in range(400, 600))
    return 400 if is_overflow else known, {"type": "error", "error": {"message": message, "type": code, "code": code}}


def is_known_form(error: StreamedError, *, is_overflow: bool) -> bool:
    """Whether an error event stays: an overflow in a form that LiteLLM passes on, or another error that clients read."""
    body = error.body
    is_nested = any(isinstance(body.get(name), Mapping) for name in ("error", "response"))
    is_typed = _kind(body) in FAILED
    return is_nested and (is_typed or list(body) == ["error"]) if is_overflow else is_typed


def is_opening(chunks: Sequence[Any]) -> bool:
    """Whether the first chunks of a stream have no content yet."""
    return all(map(_is_opening, _events(chunks)))


def _is_untyped_error(event: Any) -> bool:
    """Whether an event is an error by its fields, and has nothing of an answer."""
    if not isinstance(event, Mapping) or _answers(event):
        return False
    base = event.get("base_resp")  # MiniMax's, in each answer
    status = base if isinstance(base, Mapping) else event if event.keys() <= BARE else {}
    is_marked = status.get("code", status.get("status_code")) not in NO_ERROR or event.keys() == {"message"}
    is_error = is_marked or "error" in f"{event.get('type')} {event.get('object')}".lower()
    return any(map(event.get, ERRORS)) or (is_error and bool(status.get("message") or status.get("status_msg")))


def _ends_at_window(event: Mapping[str, Any]) -> bool:
    """Whether an event without content ends an answer because the window is full.

    This is no filtered Responses answer, and none that has used all the output that it may have.
    """
    held_by = (event, event.get("delta"), *(event.get("choices") or ()))
    if any(_field(held, name) == EXCEEDED for held in held_by for name in REASONS):
        return True
    response = event.get("response") or event
    used_tokens = _field(response.get("usage"), "output_tokens") or 0
    is_used_up = used_tokens >= (response.get("max_output_tokens") or math.inf)
    is_filtered = _field(response.get("incomplete_details"), "reason") == "content_filter"
    return response.get("status") == "incomplete" and response.get("output") is not None and not (is_used_up or is_filtered)


def _answers(event: Mapping[str, Any]) -> bool:
    """Whether an event has any content."""
    response, message = event.get("response"), event.get("message")
    if isinstance(response, Mapping) or event.get("object") == "response":
        return not _is_empty((response or event).get("output"))
    held = [*map(event.get, ANSWERS), None if isinstance(message, str) else message]
    return any(map(_says, event.get("choices") or ())) or not _is_empty(held)


def _events(chunks: Sequence[Any]) -> list[Any]:
    """Return the events of a stream's first chunks, without an incomplete last one; of JSON the first value."""
    pieces = [c.encode() if isinstance(c, str) else c for c in chunks if isinstance(c, (str, bytes))]
    text = b"".join(pieces).lstrip()
    found = _first_value(text) if text[:1] in (b"{", b"[") else _sent_events(text)
    return [*found, *(c for c in chunks if not isinstance(c, (str, bytes)))]


def _first_value(text: bytes) -> list[Any]:
    try:
        return [json.JSONDecoder().raw_decode(text.decode("utf-8", "replace").lstrip("[ \r\n\t"))[0]]
    except ValueError:
        return []


def _sent_events(text: bytes) -> list[Any]:
    """Return the data of a text of server-sent events, which providers write as one line of JSON each.

    Data whose event is an error only by name goes under `error`; DashScope has the status in a comment.
    """
    lines = text.split(b"\n")
    found: list[Any] = []
    name, status = b"", 0
    for number, line in enumerate(map(bytes.strip, lines)):
        field, _, value = line.partition(b":")
        if not line:
            name, status = b"", 0
        elif field == b"event":
            name = value.strip()
        elif line.startswith(b":HTTP_STATUS/"):
            status = int(line.rpartition(b"/")[2])
        elif field == b"data":
            is_named, data = name == b"error", {}
            try:
                data = json.loads(value)
            except ValueError:
                if number == len(lines) - 1:
                    break
                data = {"message": value.decode("utf-8", "replace").strip()} if is_named else data
            found.append({"status_code": status, "error": data} if is_named and _kind(data) not in FAILED else data)
    return found


def _is_opening(event: Any) -> bool:
    kind = _kind(event)
    if kind is not None:
        return kind in OPENING or (kind == "content_block_start" and not _answers(event))
    choices = _field(event, "choices")
    if not isinstance(choices, (list, tuple)) or _is_untyped_error(event):
        return False
    return not any(_field(choice, "finish_reason") or _says(choice) for choice in choices)


def _says(choice: Any) -> bool:
    held = (_field(choice, name) for name in ("delta", "message", "text"))
    return not all(_is_empty(value if isinstance(value, (str, Mapping)) else dict(value or {})) for value in held)


def _is_empty(value: Any) -> bool:
    """Whether a part of an answer has no content: no text, call, reasoning or anything unknown."""
    if isinstance(value, Mapping):
        return value.get("type") in PLAIN and all(_is_empty(v) for name, v in value.items() if name not in FRAME)
    return all(map(_is_empty, value)) if isinstance(value, (list, tuple)) else not value


def _kind(event: Any) -> str | None:
    """Return an event's type; LiteLLM's are members of an enum."""
    kind = _field(event, "type")
    value = getattr(kind, "value", kind)
    return value if isinstance(value, str) else None


def _field(event: Any, name: str) -> Any:
    return event.get(name) if isinstance(event, Mapping) else getattr(event, name, None)


@dataclass(frozen=True, slots=True)
class Raised:
    """The error that reading a stream raised, or StopAsyncIteration at its end."""

    error: Exception


class ReadAhead:
    """Yields the events that were already read, then the rest of a stream; its class and attributes are the stream's."""

    __slots__ = ("__weakref__", "_ctx_hooks_stream", "_ctx_hooks_unread")
    _ctx_hooks_stream: Any
    _ctx_hooks_unread: deque[Any]

    def __init__(self, stream: Any, unread: Iterable[Any]) -> None:
        object.__setattr__(self, "_ctx_hooks_stream", stream)
        object.__setattr__(self, "_ctx_hooks_unread", deque(unread))

    @property  # type: ignore[misc]  # isinstance asks for it
    def __class__(self) -> type:
        return type(self._ctx_hooks_stream)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ctx_hooks_stream, name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._ctx_hooks_stream, name, value)

    def __delattr__(self, name: str) -> None:
        delattr(self._ctx_hooks_stream, name)

    def __aiter__(self) -> "ReadAhead":
        return self

    async def __anext__(self) -> Any:
        if not self._ctx_hooks_unread:
            return await self._ctx_hooks_stream.__anext__()
        first = self._ctx_hooks_unread.popleft()
        if isinstance(first, Raised):
            raise first.error
        return first


async def read_opening(stream: Any, unread: list[Any]) -> Exception | None:
    """Read a stream into `unread` up to its first content; return the error if one comes before content."""
    while len(unread) < MOST_READ:
        try:
            unread.append(await stream.__anext__())
        except Exception as error:  # noqa: BLE001 - raised again later
            unread.append(Raised(error))
            return None if isinstance(error, StopAsyncIteration) else error
        reported = error_before_content(unread)
        if reported is not None or not is_opening(unread):
            return reported
    return None


async def close(stream: Any) -> None:
    """Close a stream that is not read further, to release its connection and its slot at the deployment."""
    with suppress(Exception):  # the overflow is raised to the Router in any case
        await stream.aclose()
