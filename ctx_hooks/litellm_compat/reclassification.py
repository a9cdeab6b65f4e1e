"""The seam at which overflows that LiteLLM leaves as other errors become ones that the Router falls back on."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from functools import wraps
from typing import Any, TypeAlias

from ctx_hooks.litellm_compat.errors import as_overflow
from ctx_hooks.litellm_compat.stream_events import StreamedError, error_event, is_opening

logger = logging.getLogger("ctx_hooks")

_OURS = "_ctx_hooks"
MOST_TAKEN = 6
"""Events that open a stream before its content: message_start and ping, response.created, queued and in_progress."""
Note: TypeAlias = Callable[[Mapping[str, Any], Exception], Awaitable[bool]]
"""Told of an attempt's arguments and its error; says whether it is an overflow."""


def reclassify(
    recognise: Callable[[Exception], bool], note: Note, handles: Callable[[Mapping[str, Any]], bool] = lambda _: True
) -> bool:
    """Let the Router see every error that `recognise` knows as the ContextWindowExceededError that its fallbacks are for.

    LiteLLM leaves many overflows as BadRequestError, APIError and others, depending on the provider. `Router.make_call`
    is the one place that every attempt on every route passes. Return whether it is there; done once a process. `note` is
    told of an overflow that no failure hook hears of, and says whether it is one. What `handles` refuses by its arguments
    goes LiteLLM's own way, its stream too.
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
            return await _begun(answer, recognise) if handles(kwargs) else answer
        except Exception as error:
            if not handles(kwargs):
                raise
            # A failure hook hears of what failed before the answer began, and of nothing after that.
            known = recognise(error) if answer is None else await note(kwargs, error)
            if isinstance(error, litellm.ContextWindowExceededError) or not known:
                raise
            raise as_overflow(error, kwargs) from error

    setattr(make_call, _OURS, True)
    litellm.Router.make_call = make_call
    _reclassify_in_stream(litellm.Router, note)
    return True


async def _begun(answer: Any, recognise: Callable[[Exception], bool]) -> Any:
    """Return an answer whose stream has begun: an overflow told before the first content is raised here, not at the client.

    What was taken out to see that is given out again first, other errors in their turn.
    """
    if not hasattr(answer, "__anext__") or inspect.isasyncgen(answer):
        return answer
    taken = await _opening(answer, recognise)
    kind = type(answer)

    class Begun(kind):  # type: ignore[misc, valid-type]  # LiteLLM asks its streams for their class
        async def __anext__(self) -> Any:
            if not taken:
                return await super().__anext__()
            first = taken.pop(0)
            if isinstance(first, Exception):
                raise first
            return first

    answer.__class__ = Begun
    return answer


async def _opening(answer: Any, recognise: Callable[[Exception], bool]) -> list[Any]:
    """Return the events of a stream up to the first content, and an error that ended it; raises an overflow."""
    taken: list[Any] = []
    while len(taken) < MOST_TAKEN and (not taken or is_opening(taken[-1])):
        try:
            taken.append(await answer.__anext__())
        except StopAsyncIteration:
            break
        except Exception as error:
            if recognise(error):
                raise
            taken.append(error)
            break
        refused = error_event(taken[-1])
        if refused is not None and recognise(StreamedError(refused)):
            raise StreamedError(refused)
    return taken


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
