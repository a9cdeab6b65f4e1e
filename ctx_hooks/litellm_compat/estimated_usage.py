"""The seam at which LiteLLM estimates the input tokens of a stream whose provider stated none."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from ctx_hooks.litellm_compat.registry import USAGE

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
