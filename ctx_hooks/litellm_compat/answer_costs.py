"""The cost of an answer, where LiteLLM would take it from what the client is about to see."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctx_hooks.litellm_compat.registry import COSTS

COST = "response_cost"


def price(fields: Mapping[str, Any], answer: Any) -> None:
    """Have LiteLLM price an answer now.

    The header with the cost is made after all hooks, for some routes by the usage that the client sees, if the answer is
    not logged by then. The log takes a cost that is known; it is the one that it would calculate itself.

    Args:
        fields: the arguments of the hook that is given the answer.
        answer: the answer as it was billed.
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
