"""The beginning of an answer: whether it is an error although its status is 200, and a stream that was read ahead."""

import json
import math
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from pydantic import BaseModel

from ctx_hooks.formats.fields import mapping_or_empty
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
    *("choices", "candidates", "content", "content_block", "delta", "output", "outputs", "text", "response", "completion"),
    *("generated_text", "token", "result", "results", "data"),
)
PLAIN = (None, "text", "output_text", "message")
"""Types of parts and items that may be empty; a call or reasoning is content."""
FRAME = frozenset({
    "role", "type", "id", "index", "object", "status", "annotations", "stop_reason", "stop_sequence", "finish_reason",
    "native_finish_reason",
})  # fmt: skip
EXCEEDED = "model_context_window_exceeded"
"""The reason with which Anthropic, Z.ai and Bedrock end an answer at the end of the window."""


class StreamedError(Exception):
    """An error that a provider reported inside a stream, or in an answer with status 200; `body` is the event."""

    def __init__(self, body: Mapping[str, Any]) -> None:
        super().__init__(json.dumps(body, default=str))
        self.body = body

    @property
    def is_typed(self) -> bool:
        """Whether it is an error event of the client's own protocol."""
        return self.body.get("type") in FAILED


def error_before_content(chunks: Sequence[Any]) -> StreamedError | None:
    """Return the error that the first chunks of an answer report before any content, None if there is none."""
    first = _first_event(chunks)
    if not isinstance(first, Mapping):
        return None
    if _is_error(first):
        return StreamedError(first)
    if not _answers(first) and _ends_at_window(first):
        return StreamedError({"error": {"code": EXCEEDED, "message": f"The answer is empty: {EXCEEDED}"}})
    return None


def refusal_of(error: StreamedError, *, is_overflow: bool) -> tuple[int, dict[str, Any]]:
    """Return the status and the body with which other servers report an error; the status is 500 if it states none."""
    words, holders = own_words(error.body), (error.body, mapping_or_empty(error.body.get("error")))
    message = next(iter(words.texts), "") or str(error)[:MOST_CHARS]
    code = next((code for code in words.codes if code != "error"), None)
    stated: list[Any] = [held.get(name) for held in holders for name in ("status_code", "code", "status")]
    status = 400 if is_overflow else next((status for status in stated if status in range(400, 600)), 500)
    return status, {"type": "error", "error": {"message": message, "type": code, "code": code}}


def _first_event(chunks: Sequence[Any]) -> Any:
    """Return the first event of an answer that has content or ends it, None if its first bytes have none."""
    return next((event for event in _events(chunks) if not _is_opening(event)), None)


def _is_error(event: Mapping[str, Any]) -> bool:
    """Whether an event is an error by its type, or by its fields if it has nothing of an answer."""
    if event.get("type") in FAILED:
        return True
    if _answers(event):
        return False
    base = mapping_or_empty(event.get("base_resp"))  # MiniMax's, in each answer
    status = base or (event if event.keys() <= BARE else {})
    is_marked = status.get("code", status.get("status_code")) not in NO_ERROR or event.keys() == {"message"}
    is_error = is_marked or "error" in f"{event.get('type')} {event.get('object')}".lower()
    return any(map(event.get, ERRORS)) or (is_error and bool(status.get("message") or status.get("status_msg")))


def _ends_at_window(event: Mapping[str, Any]) -> bool:
    """Whether an event without content ends an answer because the window is full.

    This is no filtered Responses answer, and none that has used all the output that it may have.
    """
    response = mapping_or_empty(event.get("response")) or event
    used_tokens = mapping_or_empty(response.get("usage")).get("output_tokens") or 0
    is_used_up = used_tokens >= (response.get("max_output_tokens") or math.inf)
    is_filtered = mapping_or_empty(response.get("incomplete_details")).get("reason") == "content_filter"
    is_cut = response.get("status") == "incomplete" and "output" in response and not (is_used_up or is_filtered)
    return is_cut or f'"{EXCEEDED}"' in json.dumps(event)


def _is_opening(event: Any) -> bool:
    if not isinstance(event, Mapping):
        return False
    if (kind := event.get("type")) is not None:
        return kind in OPENING or (kind == "content_block_start" and not _answers(event))
    ends = any(mapping_or_empty(choice).get("finish_reason") for choice in event.get("choices") or ())
    return "choices" in event and not (ends or _answers(event) or _is_error(event))


def _answers(event: Mapping[str, Any]) -> bool:
    """Whether an event has any content."""
    response, message = event.get("response"), event.get("message")
    if isinstance(response, Mapping) or event.get("object") == "response":
        return _says((response or event).get("output"))
    return any(_says(event.get(name)) for name in ANSWERS) or (isinstance(message, Mapping) and _says(message))


def _says(value: Any) -> bool:
    """Whether a part of an answer has content: a text, a call, reasoning or anything unknown."""
    if isinstance(value, Mapping):
        return value.get("type") not in PLAIN or any(_says(v) for name, v in value.items() if name not in FRAME)
    return any(map(_says, value)) if isinstance(value, (list, tuple)) else bool(value)


def _events(chunks: Sequence[Any]) -> list[Any]:
    """Return the events in the first bytes of an answer, of JSON the first value, and the events that LiteLLM has read."""
    pieces = (chunk.encode() if isinstance(chunk, str) else chunk for chunk in chunks)
    text = b"".join(piece for piece in pieces if isinstance(piece, bytes)).lstrip()
    found = _first_value(text) if text[:1] in (b"{", b"[") else _sent_events(text)
    read = (chunk for chunk in chunks if not isinstance(chunk, (str, bytes)))
    return [*found, *(c.model_dump(mode="json", warnings=False) if isinstance(c, BaseModel) else c for c in read)]


def _first_value(text: bytes) -> list[Any]:
    with suppress(ValueError):
        return [json.JSONDecoder().raw_decode(text.decode("utf-8", "replace").lstrip("[ \r\n\t"))[0]]
    return []


def _sent_events(text: bytes) -> list[Any]:
    """Return the data of complete server-sent events, one line of JSON each; of an event named "error" under this name."""
    lines = text.split(b"\n")
    found: list[Any] = []
    is_named = False
    for number, line in enumerate(map(bytes.strip, lines), 1):
        field, _, value = line.partition(b":")
        if field == b"event":
            is_named = value.strip() == b"error"
        elif field == b"data":
            try:
                data = json.loads(value)
            except ValueError:
                if number == len(lines):
                    break
                data = {"message": value.decode("utf-8", "replace").strip()} if is_named else {}
            found.append({"error": data} if is_named and mapping_or_empty(data).get("type") not in FAILED else data)
            is_named = False
    return found


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


async def read_ahead(stream: Any, unread: list[Any]) -> Exception | None:
    """Read a stream into `unread` up to its first content, at most MOST_READ pieces; return the error before it."""
    while len(unread) < MOST_READ and _first_event(unread) is None:
        try:
            unread.append(await stream.__anext__())
        except Exception as error:  # noqa: BLE001 - raised again later
            unread.append(Raised(error))
            return None if isinstance(error, StopAsyncIteration) else error
    return error_before_content(unread)


async def close(stream: Any) -> None:
    """Close a stream that is not read further, to release its connection and its slot at the deployment."""
    with suppress(Exception):  # the overflow is raised to the Router in any case
        await stream.aclose()
