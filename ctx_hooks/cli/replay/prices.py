"""What requests cost, by LiteLLM's own calculation and prices."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from ctx_hooks.litellm_compat import Deployment
from ctx_hooks.tokens.usage import Billed

PRICE = "input_cost_per_token"
READ_PRICE = "cache_read_input_token_cost"
WRITE_PRICE = "cache_creation_input_token_cost"


class Prices:
    """LiteLLM's prices. Those that a deployment states are told to LiteLLM, as its Router does."""

    def __init__(self) -> None:
        self._known: dict[str, Mapping[str, Any]] = {}

    def billed(self, deployment: Deployment, input_tokens: int, shared_tokens: int, output_tokens: int) -> Billed:
        """Return what the provider would bill of a request, of which `shared_tokens` begin like an earlier one."""
        known = self._prices(deployment)
        cached = shared_tokens if known.get(READ_PRICE) or not known else 0
        written = input_tokens - cached if known.get(WRITE_PRICE) else 0
        return Billed(*(input_tokens, cached, written, output_tokens))  # type: ignore[arg-type]  # estimates

    def dollars(self, deployment: Deployment, billed: Billed) -> float | None:
        """Return the price of a request, None where LiteLLM knows no price of the model."""
        if not self._prices(deployment):
            return None
        import litellm  # noqa: PLC0415 - slow to load, and not for --help

        try:
            parts = litellm.cost_per_token(
                model=deployment.model,
                prompt_tokens=billed.input_tokens,
                completion_tokens=billed.output_tokens,
                cache_read_input_tokens=billed.cached_tokens,
                cache_creation_input_tokens=billed.written_tokens,
            )
        except Exception:  # noqa: BLE001 - some providers' own calculators raise for a model that the map has
            return None
        return float(sum(parts))

    def _prices(self, deployment: Deployment) -> Mapping[str, Any]:
        """Return the prices of a model, nothing where LiteLLM knows none."""
        if deployment.model not in self._known:
            self._known[deployment.model] = _registered(deployment)
        return self._known[deployment.model]


def _registered(deployment: Deployment) -> Mapping[str, Any]:
    import litellm  # noqa: PLC0415 - slow to load, and not for --help

    litellm.suppress_debug_info = True  # it prints a list of providers for each model that it does not know
    logging.getLogger("LiteLLM").setLevel(logging.ERROR)  # and warns of each price that stands in no list of its own
    own = {name: v for name, v in deployment.model_info.items() if "cost" in name and isinstance(v, (int, float))}
    if PRICE in own:
        provider = deployment.model.split("/", 1)[0] if "/" in deployment.model else "openai"
        litellm.register_model({deployment.model: {"litellm_provider": provider, "mode": "chat", **own}})
    try:
        known: Mapping[str, Any] = litellm.get_model_info(deployment.model)
    except Exception:  # noqa: BLE001 - it raises a bare Exception for a model that it does not know
        return {}
    return known if PRICE in own or known.get(PRICE) else {}
