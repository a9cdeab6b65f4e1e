"""Turns overflows that LiteLLM raises as other errors into ContextWindowExceededErrors, for which the Router has fallbacks.

It reads the first events of a stream to find them; a wrapper yields these again before the rest.
"""

import inspect
import logging
import sys
from collections import deque
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import wraps
from types import SimpleNamespace
from typing import Any, Protocol, TypeAlias

from ctx_hooks.litellm_compat.call import chosen_by_router, request_id_of
from ctx_hooks.litellm_compat.errors import as_overflow, failing_open, overflow_of
from ctx_hooks.litellm_compat.registry import CHECKS, CHUNKS, ERROR_EVENTS, IN_STREAM, INVOKE, MAKE_CALL, ROUTED
from ctx_hooks.litellm_compat.rescue import unchecked_retries
from ctx_hooks.litellm_compat.stream_events import (
    StreamedError,
    error_before_content,
    flat_chat_error,
    flat_error,
    is_opening,
)

logger = logging.getLogger("ctx_hooks")


class Ends(Protocol):
    """The receiver of attempts' ends; each method gets the arguments of the attempt."""

    def handles(self, fields: Mapping[str, Any]) -> bool:
        """Return whether the plugin is on for an attempt."""

    async def note_failure(self, fields: Mapping[str, Any], error: Exception, *, is_sent: bool = True) -> bool:
        """Note the error of an attempt, and return whether it is an overflow; an unsent attempt is no provider's."""

    async def note_begun(self, fields: Mapping[str, Any]) -> None:
        """Note that an attempt is answered, before the client has the answer: its next request may follow at once."""

    async def is_made_again(self, fields: Mapping[str, Any], error: Exception) -> bool:
        """Return whether an attempt that failed for another reason is repeated at once."""

    def end_of(self, fields: Mapping[str, Any], end: Any) -> Any:
        """Return the answer or the error with which the Router ends a request as its client sees it."""


EndsOf: TypeAlias = Callable[[], Ends]
"""Returns the present receiver of ends: LiteLLM is patched only once."""


def reclassify(ends: EndsOf) -> bool:
    """Patch the Router so that every overflow reaches it as a ContextWindowExceededError; done once a process.

    LiteLLM raises many overflows as BadRequestError, APIError and others, depending on the provider. Every attempt on every
    route passes `Router.make_call`, from 1.110 on `PythonHost.invoke`.

    Returns:
        Whether this LiteLLM has one of the two.
    """
    IN_STREAM.wrap(lambda original: _in_stream(original, ends))
    ERROR_EVENTS.wrap(_with_flat_errors)
    CHUNKS.wrap(_with_flat_chat_errors)
    if "litellm.proxy.proxy_server" in sys.modules:  # else an import of the name takes seconds
        ROUTED.wrap(lambda original: _routed(original, ends))
    CHECKS.wrap(unchecked_retries)
    is_invoked = INVOKE.wrap(lambda original: _invoke(original, ends))
    return MAKE_CALL.wrap(lambda original: _make_call(original, ends)) or is_invoked


def _make_call(original: Any, ends: EndsOf) -> Any:
    """Note every error of an attempt; an error that a failure hook has noted before counts once.

    LiteLLM calls no hook for an error of a stream that is opened or first read.
    """

    async def make_call(self: Any, original_function: Any, *args: Any, **kwargs: Any) -> Any:
        answer = await _noted(lambda: original(self, original_function, *args, **kwargs), kwargs, ends, chooses=True)
        # Nobody awaits the stream of a sync call; LiteLLM's chat stream supports both iterations.
        return await _begun(answer, kwargs, ends) if inspect.iscoroutinefunction(original_function) else answer

    return make_call


def _invoke(original: Any, ends: EndsOf) -> Any:
    """Do the same for the function that the Router of LiteLLM 1.110 calls for each attempt, after its choice."""

    def invoke(self: Any, op: str) -> Any:
        function = original(self, op)
        if not inspect.iscoroutinefunction(function):
            return function

        @wraps(function)
        async def attempt(*args: Any, **kwargs: Any) -> Any:
            answer = await _noted(lambda: function(*args, **kwargs), kwargs, ends, chooses=False)
            return await _begun(answer, kwargs, ends)

        return attempt

    return invoke


async def _noted(send: Callable[[], Awaitable[Any]], fields: Mapping[str, Any], ends: EndsOf, *, chooses: bool) -> Any:
    """Return the answer of an attempt with these arguments, or note its error and raise it, an overflow as such.

    Args:
        send: makes the attempt.
        fields: its arguments.
        ends: returns the receiver of its end.
        chooses: whether the Router chooses the deployment within `send`. If it notes no new choice there, nothing was sent:
            its own refusal is no provider's, and the attempt noted before may still run.
    """
    import litellm  # noqa: PLC0415 - slow to load, and not for `ctx-hooks explain`

    before = chosen_by_router(fields) if chooses else None
    try:
        return await send()
    except Exception as error:
        is_overflow = again = False
        with failing_open("leaves an error as it is"):
            chosen = chosen_by_router(fields)
            is_sent = bool(chosen) and chosen is not before
            is_overflow = await ends().note_failure(fields, error, is_sent=is_sent)
            again = is_sent and not is_overflow and await ends().is_made_again(fields, error)
        if again:
            return await _noted(send, fields, ends, chooses=chooses)
        if not is_overflow or isinstance(error, litellm.ContextWindowExceededError):
            raise
        raise as_overflow(error, fields) from error


async def _begun(answer: Any, kwargs: Mapping[str, Any], ends: EndsOf) -> Any:
    """Return a stream that yields every event; raise an overflow that the stream reports before its content.

    Any other answer, and a stream for which the plugin is off, is returned unchanged.
    """
    if not hasattr(answer, "__anext__") or not ends().handles(kwargs):
        with failing_open("learns nothing from a retry"):
            await ends().note_begun(kwargs)
        return answer
    unread: list[Any] = []
    error = None
    with failing_open("hands a stream on as it is"):
        found = await read_opening(answer, unread)
        if found is not None and await ends().note_failure(kwargs, found):
            error = found
    if error is None:
        with failing_open("learns nothing from a retry"):
            await ends().note_begun(kwargs)
        return ReadAhead(answer, unread)
    await close(answer)
    raise as_overflow(error, kwargs) from error


def _routed(original: Any, ends: EndsOf) -> Any:
    """Show each end of a proxy's request in the Router to `ends`, before the proxy reads it."""

    async def ended(call: Awaitable[Any], fields: Mapping[str, Any]) -> Any:
        try:
            end = await call
        except Exception as error:  # noqa: BLE001 - raised again
            end = error
        with failing_open("leaves the end of a request as it is"):
            end = ends().end_of(fields, end)
        if isinstance(end, Exception):
            raise end
        return end

    async def route_request(data: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
        return ended(await original(data, *args, **kwargs), data)

    return route_request


def _in_stream(original: Any, ends: EndsOf) -> Any:
    """Do the same for an error inside a stream that the Router holds back until its first content.

    The Router passes such an error to its fallbacks within the attempt, as a MidStreamFallbackError or its original
    exception, and calls no failure hook. It then passes the attempt's arguments by name. After the attempt it passes them by
    position, and `make_call` has handled the error already.
    """

    async def fall_back(self: Any, e: Exception, *args: Any, **kwargs: Any) -> Any:
        attempt = kwargs.get("kwargs")
        cause = getattr(e, "original_exception", None) or e
        with failing_open("leaves an error as it is"):
            if isinstance(attempt, Mapping) and await ends().note_failure(attempt, cause):
                e = as_overflow(cause, attempt)
        return await original(self, e, *args, **kwargs)

    return fall_back


def _with_flat_errors(original: Any) -> Any:
    """Let LiteLLM read `error` events whose fields are not nested under `error`, the only place where it reads them.

    A request for which the plugin is off has no id of this process, and stays unchanged.
    """

    def raise_for_error_event(self: Any, result: Any) -> None:
        with failing_open("leaves an error as it is"):
            error = flat_error(result)
            if error is not None and _is_ours(self) and overflow_of(StreamedError(error)) is not None:
                result = SimpleNamespace(type="error", error=error)
        original(self, result)

    return raise_for_error_event


def _with_flat_chat_errors(original: Any) -> Any:
    """Let LiteLLM read a chunk of a chat stream that is itself an overflow: LiteLLM skips chunks without choices."""

    def chunk_creator(self: Any, chunk: Any) -> Any:
        # Other kinds of chunks are read no further: this runs for every chunk of every chat stream.
        error = flat_chat_error(chunk) if getattr(chunk, "object", "error") == "error" else None
        if error is not None:
            told, is_overflow = StreamedError(error), False
            with failing_open("passes over a chunk"):
                is_overflow = _is_ours(self) and overflow_of(told) is not None
            if is_overflow:
                raise told
        return original(self, chunk)

    return chunk_creator


def _is_ours(stream: Any) -> bool:
    """Whether a LiteLLM stream answers a request for which the plugin is on."""
    logged = getattr(getattr(stream, "logging_obj", None), "model_call_details", None)
    return isinstance(logged, Mapping) and bool(request_id_of(logged))


MOST_READ = 6
"""Events that open a stream before its content: message_start and ping, response.created, queued and in_progress."""


@dataclass(frozen=True, slots=True)
class Raised:
    """The exception that reading a stream raised: an error, or StopAsyncIteration at its end."""

    error: Exception


class ReadAhead:
    """Yields the events that were already read, then the rest of a stream; delegates all else to the stream.

    LiteLLM checks the class of its streams and reads and sets their attributes: all this goes to the stream.
    """

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
        except StopAsyncIteration as end:
            unread.append(Raised(end))
            return None
        except Exception as error:  # noqa: BLE001 - raised again later
            unread.append(Raised(error))
            return error
        told = error_before_content(unread)
        if told is not None or not is_opening(unread):
            return told
    return None


async def close(stream: Any) -> None:
    """Close a stream that is not read further, to release its connection and its slot at the deployment."""
    try:
        if hasattr(stream, "aclose"):
            await stream.aclose()
    except Exception as error:
        # The overflow is raised to the Router in any case; a failure to close the stream must not replace it.
        logger.debug("closing a stream that told of an overflow failed", exc_info=error)
