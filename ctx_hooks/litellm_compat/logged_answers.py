"""An answer as LiteLLM's logging hook shows it, what it cost, and what a stream without usage read.

It is whole or a part of a stream, of the provider or of LiteLLM's cache.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from ctx_hooks.litellm_compat.registry import COSTS, USAGE

WHOLE_STREAM = "async_complete_streaming_response"


def logged_answer(logged: Mapping[str, Any], result: Any) -> Any:
    """Return the answer that is logged, None while its stream has not ended.

    LiteLLM calls the logging hook for parts of a stream, too, but tells of success only once the stream is put together.
    """
    whole = logged.get(WHOLE_STREAM)
    if whole is not None:
        return whole
    return None if logged.get("stream") is True else result


def billed_usage_of(logged: Mapping[str, Any], answer: Any) -> Any:
    """Return the usage that a provider billed, a mapping or an object; None where the answer has none.

    An answer of LiteLLM's own cache states the usage of the call that it was kept of: it is billed nothing.
    """
    if logged.get("cache_hit") is True:
        return None
    return answer.get("usage") if isinstance(answer, Mapping) else getattr(answer, "usage", None)


COST = "response_cost"


def price(fields: Mapping[str, Any], answer: Any) -> None:
    """Have LiteLLM price an answer now.

    The header with the cost is made after all hooks, for some routes by the usage that the client sees, if the answer is
    not logged by then. The log takes a cost that is known; it is the one that it would calculate itself.
    """
    logged = fields.get("litellm_logging_obj")
    details = getattr(logged, "model_call_details", None)
    hidden = getattr(answer, "_hidden_params", None)
    if not isinstance(details, dict) or details.get(COST) is not None or (isinstance(hidden, dict) and hidden.get(COST)):
        return
    calculate = COSTS.find()
    cost = calculate(logged, result=answer) if calculate is not None else None
    if isinstance(cost, (int, float)):
        details[COST] = cost


Estimate: TypeAlias = Callable[[Mapping[str, Any]], int | None]
"""Given what LiteLLM has logged of a call; returns the provider tokens of what was sent, None to leave that to LiteLLM."""


def estimate_usage(estimate: Estimate) -> bool:
    """Let LiteLLM ask `estimate` for the input of a stream that states no usage; return whether it can.

    It would count the messages as the caller sent them: a compressed request would seem to have the provider tokens of the
    whole one, in LiteLLM's spend and in what is learned here. Done once a process.
    """

    def wrapper_of(original: Any) -> Any:
        def build(*args: Any, **kwargs: Any) -> Any:
            logged = getattr(kwargs.get("logging_obj"), "model_call_details", None)
            if isinstance(logged, Mapping) and kwargs.get("count_prompt_tokens") is None:
                kwargs["count_prompt_tokens"] = lambda: _tokens(estimate(logged), logged, kwargs.get("messages"))
            return original(*args, **kwargs)

        return build

    return USAGE.wrap(wrapper_of)


def _tokens(estimated: int | None, logged: Mapping[str, Any], messages: Any) -> int:
    """Return the estimate, or LiteLLM's own count where there is none."""
    import litellm  # noqa: PLC0415

    return litellm.token_counter(logged.get("model"), messages=messages) if estimated is None else estimated
