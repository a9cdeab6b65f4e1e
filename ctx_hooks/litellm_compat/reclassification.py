"""The seam at which overflows that LiteLLM leaves as other errors become ones that the Router falls back on."""

from __future__ import annotations

import inspect
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from functools import wraps
from typing import Any, TypeAlias

from ctx_hooks.litellm_compat.errors import as_overflow

logger = logging.getLogger("ctx_hooks")

_OURS = "_ctx_hooks"
Note: TypeAlias = Callable[[Mapping[str, Any], Exception], Awaitable[bool]]
"""Told of an attempt's arguments and its error; says whether it is an overflow."""


def reclassify(recognise: Callable[[Exception], bool], note: Note) -> bool:
    """Let the Router see every error that `recognise` knows as the ContextWindowExceededError that its fallbacks are for.

    LiteLLM leaves many overflows as BadRequestError, APIError and others, depending on the provider. `Router.make_call`
    is the one place that every attempt on every route passes. Return whether it is there; done once a process. `note` is
    told of an overflow that no failure hook hears of, and says whether it is one.
    """
    import litellm  # noqa: PLC0415

    original = getattr(litellm.Router, "make_call", None)
    if getattr(original, _OURS, False):
        return True
    if not inspect.iscoroutinefunction(original):
        logger.warning("this LiteLLM has no Router.make_call: overflows that it does not know itself are not retried")
        return False

    @wraps(original)
    async def make_call(self: Any, original_function: Any, *args: Any, **kwargs: Any) -> Any:
        answer = None
        try:
            answer = await original(self, original_function, *args, **kwargs)
            return await _begun(answer)
        except Exception as error:
            # A failure hook hears of what failed before the answer began, and of nothing after that.
            known = recognise(error) if answer is None else await note(kwargs, error)
            if isinstance(error, litellm.ContextWindowExceededError) or not known:
                raise
            raise as_overflow(error, kwargs) from error

    setattr(make_call, _OURS, True)
    litellm.Router.make_call = make_call
    _reclassify_in_stream(litellm.Router, note)
    return True


async def _begun(answer: Any) -> Any:
    """Return an answer whose stream has begun: an error event before the first content is raised here, not at the client.

    Only the Router's stream of a chat completion can be looked into; other answers are returned as they are.
    """
    stream = getattr(answer, "_async_generator", None)
    if stream is None or not hasattr(stream, "__anext__"):
        return answer
    try:
        first = await stream.__anext__()
    except StopAsyncIteration:
        return answer

    async def whole() -> AsyncIterator[Any]:
        try:
            yield first
            async for chunk in stream:
                yield chunk
        finally:
            await stream.aclose()

    answer._async_generator = whole()  # noqa: SLF001 - where LiteLLM keeps it
    return answer


def _reclassify_in_stream(router: Any, note: Note) -> None:
    """Do the same for an error event inside a stream, before its first content.

    LiteLLM hands it to its fallbacks as a MidStreamFallbackError, and tells no failure hook of it.
    """
    original = getattr(router, "async_function_with_fallbacks_common_utils", None)
    if original is None:
        logger.warning("this LiteLLM has no fallbacks inside a stream: an overflow that is told there is not retried")
        return

    @wraps(original)
    async def fall_back(self: Any, e: Exception, *args: Any, **kwargs: Any) -> Any:
        cause = getattr(e, "original_exception", None)
        if isinstance(cause, Exception) and await note(kwargs.get("kwargs") or {}, cause):
            e = as_overflow(cause, kwargs)
        return await original(self, e, *args, **kwargs)

    router.async_function_with_fallbacks_common_utils = fall_back
