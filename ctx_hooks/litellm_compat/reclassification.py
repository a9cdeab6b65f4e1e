"""Turns overflows that LiteLLM raises as other errors into ContextWindowExceededErrors, for which the Router has fallbacks.

It reads the first events of a stream to find them; a wrapper yields these again before the rest.
"""

import inspect
import sys
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from functools import wraps
from http import HTTPStatus
from typing import Any, TypeAlias

from ctx_hooks.litellm_compat.call import Call, chosen_by_router, request_id_of
from ctx_hooks.litellm_compat.errors import as_overflow, failing_open, overflow_of
from ctx_hooks.litellm_compat.registry import CHECKS, INVOKE, MAKE_CALL, PROXY, ROUTED, SEND, TURN
from ctx_hooks.litellm_compat.rescue import unchecked_retries
from ctx_hooks.litellm_compat.stream_events import (
    ReadAhead,
    StreamedError,
    close,
    error_before_content,
    read_ahead,
    refusal_of,
)

EndsOf: TypeAlias = Callable[[], Any]
"""Returns the present receiver of attempts' ends, a `flow.request_flow.RequestFlow`: LiteLLM is patched only once."""


def reclassify(ends: EndsOf) -> bool:
    """Patch the Router so that every overflow reaches it as a ContextWindowExceededError; return whether that is possible.

    Every attempt on every route passes `Router.make_call`, from 1.110 on `PythonHost.invoke`. Done once a process.
    """
    SEND.wrap(lambda original: _send(original, ends))
    if PROXY in sys.modules:  # else an import of the name takes seconds
        ROUTED.wrap(lambda original: _routed(original, ends))
        TURN.wrap(lambda original: _turn(original, ends))
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

    With `chooses` the Router chooses the deployment within `send`. If it notes no new choice there, nothing was sent: its
    own refusal is no provider's, and the attempt noted before may still run.
    """
    import litellm  # noqa: PLC0415 - slow to load, and not for `ctx-hooks explain`

    before = chosen_by_router(fields) if chooses else None
    token = _ATTEMPT.set(fields)
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
    finally:
        _ATTEMPT.reset(token)


async def _begun(answer: Any, kwargs: Mapping[str, Any], ends: EndsOf) -> Any:
    """Return a stream that yields every event; raise an overflow that it raises or reports before its content.

    Any other answer, and a stream for which the plugin is off, is returned unchanged.
    """
    if hasattr(answer, "__anext__") and ends().mode(Call(kwargs)) == "enforce":
        unread: list[Any] = []
        error = None
        with failing_open("hands a stream on as it is"):
            token = _ATTEMPT.set(kwargs)  # some providers' streams are opened only now
            try:
                found = await read_ahead(answer, unread)
            finally:
                _ATTEMPT.reset(token)
            if found is not None and await ends().note_failure(kwargs, found):
                error = found
        if error is not None:
            await close(answer)
            raise as_overflow(error, kwargs) from error
        answer = ReadAhead(answer, unread)
    with failing_open("learns nothing from a retry"):
        await ends().note_begun(kwargs)
    return answer


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
        with failing_open("leaves a request to its route"):
            if route := ends().running.of(request_id_of(data)).route:
                kwargs["route_type"] = route
        return ends().called(data, ended(await original(data, *args, **kwargs), data))

    return route_request


def _turn(original: Any, ends: EndsOf) -> Any:
    """Let `ends` change and answer the turns on a WebSocket, which pass neither the pre-call hook nor the Router."""

    async def stream_and_forward(self: Any, model: str, call_kwargs: dict[str, Any]) -> Any:
        import litellm  # noqa: PLC0415 - the proxy has loaded it

        fields, is_answered = call_kwargs, False
        with failing_open("passes a turn on as it is"):
            fields, is_answered = await ends().turn_of(call_kwargs)
        if not is_answered:
            return await original(self, model, fields)
        async for event in await ends().called(fields, litellm.aresponses(model=model, **fields)):
            await self.websocket.send_text(event.model_dump_json())
        return None  # LiteLLM keeps no history of this turn: the next one has the item

    return stream_and_forward


_ATTEMPT: ContextVar[Mapping[str, Any] | None] = ContextVar("ctx_hooks_attempt", default=None)
MOST_BYTES = 64_000
"""A larger whole answer is no error. JSON of this size is read in half a millisecond."""


def _send(original: Any, ends: EndsOf) -> Any:
    """Give an error that a provider sends with status 200 the status of an error: LiteLLM would end the stream empty.

    Error events of the client's own protocol stay, except overflows.
    """

    async def send(self: Any, request: Any, **kwargs: Any) -> Any:
        response, fields = await original(self, request, **kwargs), _ATTEMPT.get()
        if fields is not None and request.method == "POST" and response.status_code == HTTPStatus.OK:
            with failing_open("passes an answer on as it is"):
                error = await _error_in(response, is_stream=bool(kwargs.get("stream")))
                if error is None:
                    return response
                mode, is_overflow = ends().mode(Call(fields)), overflow_of(error) is not None
                if mode == "observe" and is_overflow:
                    await ends().note_failure(fields, error)
                is_kept = error.is_typed and "event-stream" in response.headers.get("content-type", "")
                if mode == "enforce" and (is_overflow or not is_kept):
                    status, body = refusal_of(error, is_overflow=is_overflow)
                    await close(response)
                    return type(response)(status, json=body, request=request)
        return response

    return send


async def _error_in(response: Any, *, is_stream: bool) -> StreamedError | None:
    """Return the error that an answer is or begins with; a stream yields again what was read of it."""
    if not is_stream:
        return error_before_content([response.content]) if len(response.content) <= MOST_BYTES else None
    stream, unread = response.aiter_bytes(), list[Any]()
    response.aiter_bytes = lambda chunk_size=None: ReadAhead(stream, unread)  # noqa: ARG005 - httpx's parameter
    found = await read_ahead(stream, unread)
    return found if isinstance(found, StreamedError) else None
