"""Where an attempt goes: the model, its window, and the policy that holds there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from ctx_hooks import litellm_compat
from ctx_hooks.tokens.window import Window, holds_output, window_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_hooks.cost import Prices
    from ctx_hooks.litellm_compat import Deployment
    from ctx_hooks.policy.resolve import Policies, Resolved
    from ctx_hooks.policy.settings import Policy
    from ctx_hooks.store.learned import LearnedFigures
    from ctx_hooks.tokens.calibration import Calibration


@dataclass(frozen=True, slots=True)
class Destination:
    """The provider's model, its window as configured or known, the policy, and the number of the retry (0: none).

    `scopes` are those that set a field of the policy.
    """

    model: str
    deployment_id: str
    window: Window
    policy: Policy
    call_id: str
    prices: Prices | None = None
    rung: int = 0
    ignored: tuple[str, ...] = ()
    scopes: tuple[str, ...] = ()

    def window_with(self, learned: LearnedFigures, now: float) -> Window:
        """Return the window, or the learned limit where that is smaller, and what was learned of its holding the output."""
        limit = learned.limit_at(now)
        window = self.window
        if limit is not None and limit < window.tokens:
            window = replace(window, tokens=limit, source="learned")
        held = learned.output_held(window.tokens)
        if held is None or self.policy.window_holds_output is not None:
            return window
        return replace(window, holds_output=held)

    def factor_with(self, calibration: Calibration) -> float:
        """Return what the provider bills per token of our count."""
        return (calibration if self.policy.calibrate else type(calibration)()).factor(self.model)


def of_attempt(kwargs: Mapping[str, Any], policies: Policies, rung: int) -> Destination:
    """Return the destination of an attempt whose deployment the Router has chosen."""
    return _resolved(litellm_compat.deployment_of(kwargs), kwargs, policies, litellm_compat.group_of(kwargs), rung)


def of_group(data: Mapping[str, Any], policies: Policies) -> Destination:
    """Return the destination with the largest window among the deployments of the request's model group."""
    group = str(data.get("model") or "")
    deployments = litellm_compat.deployments(group) or (litellm_compat.Deployment(group, {}),)
    return max((_resolved(d, data, policies, group) for d in deployments), key=lambda d: d.window.tokens)


def of_deployment(deployment: Deployment, resolved: Resolved, call_id: str, rung: int = 0) -> Destination:
    """Return a deployment as the destination of a request whose policy is resolved."""
    policy = resolved.policy
    window = window_of(
        policy.window_tokens,
        deployment.model_info.get("max_input_tokens"),
        litellm_compat.known_window_tokens(deployment),
        holds_output=holds_output(deployment.model, policy),
    )
    return Destination(
        deployment.model,
        litellm_compat.deployment_id_of(deployment),
        window,
        policy,
        call_id,
        litellm_compat.prices_of(deployment) if policy.cost_aware else None,
        rung,
        resolved.ignored,
        tuple(sorted(set(resolved.origins.values()))),
    )


def _resolved(
    deployment: Deployment, fields: Mapping[str, Any], policies: Policies, group: str, rung: int = 0
) -> Destination:
    resolved = policies.resolve(litellm_compat.caller_of(fields, deployment, policies.settings.session_header, group))
    return of_deployment(deployment, resolved, litellm_compat.call_id_of(fields), rung)
