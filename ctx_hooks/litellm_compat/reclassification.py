"""The seam at which overflows that LiteLLM leaves as other errors become ones that the Router falls back on."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from types import SimpleNamespace
from typing import Any, TypeAlias

from ctx_hooks.litellm_compat.errors import as_overflow
from ctx_hooks.litellm_compat.identity import request_id_of
from ctx_hooks.litellm_compat.read_ahead import ReadAhead, close, read_opening
from ctx_hooks.litellm_compat.stream_events import StreamedError, flat_error

logger = logging.getLogger("ctx_hooks")

_OURS = "_ctx_hooks"
Recognise: TypeAlias = Callable[[Exception], bool]
Handles: TypeAlias = Callable[[Mapping[str, Any]], bool]
"""Says of an attempt's arguments whether the plugin is on for it."""
Note: TypeAlias = Callable[[Mapping[str, Any], Exception], Awaitable[bool]]
"""Told of an attempt's arguments and its error; says whether it is an overflow."""


def reclassify(recognise: Recognise, note: Note, handles: Handles = lambda _: True) -> bool:
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
        try:
            answer = await original(self, original_function, *args, **kwargs)
        except Exception as error:
            known = False
            with _failing_open("leaves an error as it is"):
                if handles(kwargs):
                    known = recognise(error) if _was_mapped(error) else await note(kwargs, error)
            if not known or isinstance(error, litellm.ContextWindowExceededError):
                raise
            raise as_overflow(error, kwargs) from error
        if not hasattr(answer, "__anext__") or not inspect.iscoroutinefunction(original_function) or not handles(kwargs):
            return answer  # LiteLLM's chat stream has both ways to be read: that of a synchronous call is its caller's
        return await _begun(answer, kwargs, note)

    setattr(make_call, _OURS, True)
    litellm.Router.make_call = make_call
    _reclassify_in_stream(litellm.Router, note)
    _read_flat_errors(recognise)
    return True


def _was_mapped(error: Exception) -> bool:
    """Whether LiteLLM has made the error one of its own.

    It does so before its failure hooks are told. A stream that is opened only when it is read (Gemini, Predibase,
    Codestral) is opened by the Router after that: what the provider then answers comes as it is, and no hook is told.
    """
    import litellm  # noqa: PLC0415

    return isinstance(error, tuple(litellm.LITELLM_EXCEPTION_TYPES))


async def _begun(stream: Any, kwargs: Mapping[str, Any], note: Note) -> Any:
    """Return a stream of which nothing read is lost; an overflow that it tells before its content is raised here."""
    unread: list[Any] = []
    error = None
    with _failing_open("hands a stream on as it is"):
        found = await read_opening(stream, unread)
        if found is not None and await note(kwargs, found):
            error = found
    if error is None:
        return ReadAhead(stream, unread)
    await close(stream)
    raise as_overflow(error, kwargs) from error


def _reclassify_in_stream(router: Any, note: Note) -> None:
    """Do the same for what fails inside a stream that the Router holds back until its first content.

    It hands such an error to its fallbacks without leaving the attempt, and tells no failure hook of it: as a
    MidStreamFallbackError, or as what that stands for. The attempt's arguments are then given by name; an error of an
    attempt that has ended comes with all by position, and was seen in `make_call`.
    """
    original = getattr(router, "async_function_with_fallbacks_common_utils", None)
    if original is None:
        logger.warning("this LiteLLM has no fallbacks inside a stream: an overflow that is told there is not retried")
        return

    @wraps(original)
    async def fall_back(self: Any, e: Exception, *args: Any, **kwargs: Any) -> Any:
        attempt = kwargs.get("kwargs")
        cause = getattr(e, "original_exception", None) or e
        with _failing_open("leaves an error as it is"):
            if isinstance(attempt, Mapping) and await note(attempt, cause):
                e = as_overflow(cause, attempt)
        return await original(self, e, *args, **kwargs)

    router.async_function_with_fallbacks_common_utils = fall_back


def _read_flat_errors(recognise: Recognise) -> None:
    """Let LiteLLM read an overflow whose fields stand beside the event's type: it looks for them under `error` alone.

    A request for which the plugin is off has no id of this process.
    """
    from litellm.responses import streaming_iterator  # noqa: PLC0415

    kind: Any = getattr(streaming_iterator, "BaseResponsesAPIStreamingIterator", None)
    original = getattr(kind, "_maybe_raise_for_error_event", None)
    if original is None:
        return  # a LiteLLM that hands error events on, to be read in any form at the beginning of a stream

    @wraps(original)
    def raise_for_error_event(self: Any, result: Any) -> None:
        with _failing_open("leaves an error as it is"):
            logged = getattr(getattr(self, "logging_obj", None), "model_call_details", None)
            error = flat_error(result) if isinstance(logged, Mapping) and request_id_of(logged) else None
            if error is not None and recognise(StreamedError(error)):
                result = SimpleNamespace(type="error", error=error)
        original(self, result)

    kind._maybe_raise_for_error_event = raise_for_error_event  # noqa: SLF001


@contextmanager
def _failing_open(consequence: str) -> Iterator[None]:
    """Survive whatever goes wrong here: the Router must not lose an answer or an error to a look at it."""
    try:
        yield
    except Exception as error:
        logger.warning("ctx_hooks failed and %s", consequence, exc_info=error)
