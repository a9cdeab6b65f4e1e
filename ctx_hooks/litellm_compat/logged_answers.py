"""An answer as LiteLLM's logging hook shows it: whole, or a part of a stream; of the provider, or of LiteLLM's cache."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

WHOLE_STREAM = "async_complete_streaming_response"


def logged_answer(logged: Mapping[str, Any], result: Any) -> Any:
    """Return the answer that is logged, None while its stream has not ended.

    LiteLLM calls the logging hook for parts of a stream, too, but tells of success only once the stream is put together.

    Args:
        logged: LiteLLM's record of the call.
        result: What the hook is given as the answer: of a stream its last event.

    """
    whole = logged.get(WHOLE_STREAM)
    if whole is not None:
        return whole
    return None if logged.get("stream") is True else result


def billed_usage_of(logged: Mapping[str, Any], answer: Any) -> Any:
    """Return the usage that a provider billed, a mapping or an object; None where the answer has none.

    An answer of LiteLLM's own cache states the usage of the call that it was kept of: it is billed nothing.

    Args:
        logged: LiteLLM's record of the call.
        answer: The answer of any route.

    """
    if logged.get("cache_hit") is True:
        return None
    return answer.get("usage") if isinstance(answer, Mapping) else getattr(answer, "usage", None)
