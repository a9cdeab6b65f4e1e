"""The figures of an attempt for LiteLLM's loggers, which see the request as it came: what was decided and sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ctx_hooks.decision import Decision, changes_of
from ctx_hooks.request.output_limit import output_limits_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


def figures_of(decision: Decision, attempt: int, policy_scopes: Sequence[str]) -> Mapping[str, Any]:
    """Return what was decided for an attempt and its figures; never a text of the request.

    Args:
        decision: what was decided.
        attempt: 0 for the first attempt of a request; retries count from 1.
        policy_scopes: the scopes that set a field of the policy, as `team`.
    """
    figures: dict[str, Any] = {
        "decision": type(decision).__name__.lower(),
        "attempt": attempt,
        "policy": ", ".join(policy_scopes),
    }
    if decision.figures is not None:
        figures["tokens_before"] = decision.figures.tokens_before
        figures["tokens_after"] = decision.figures.tokens_after
        figures["window_tokens"] = decision.figures.window_tokens
    changes = changes_of(decision)
    return figures | output_limits_in(changes)
