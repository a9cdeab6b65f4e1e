"""Where an attempt goes: the model, its window, and the policy that holds there."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ctx_hooks import litellm_compat
from ctx_hooks.policy.resolve import with_overrides
from ctx_hooks.tokens.calibration import family_factor
from ctx_hooks.tokens.window import window_tokens_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_hooks.litellm_compat import Deployment
    from ctx_hooks.policy.settings import Policy, Settings


@dataclass(frozen=True, slots=True)
class Destination:
    """The provider's model, its window, what the provider bills per token of our count, the policy, and the retry."""

    model: str
    window_tokens: int
    tokens_factor: float
    policy: Policy
    call_id: str
    rung: int = 0


def of_attempt(kwargs: Mapping[str, Any], settings: Settings, rung: int) -> Destination:
    """Return the destination of an attempt whose deployment the Router has chosen."""
    return _of_deployment(litellm_compat.deployment_of(kwargs), kwargs, settings, rung)


def of_group(data: Mapping[str, Any], settings: Settings) -> Destination:
    """Return the destination with the largest window among the deployments of the request's model group."""
    group = str(data.get("model") or "")
    deployments = litellm_compat.deployments(group) or (litellm_compat.Deployment(group, {}),)
    return max((_of_deployment(d, data, settings, 0) for d in deployments), key=lambda d: d.window_tokens)


def _of_deployment(deployment: Deployment, fields: Mapping[str, Any], settings: Settings, rung: int) -> Destination:
    overrides = deployment.model_info.get("ctx_hooks")
    policy = with_overrides(settings.defaults, overrides, f"model_info.ctx_hooks of {deployment.model}")
    window = window_tokens_of(
        policy.window_tokens,
        deployment.model_info.get("max_input_tokens"),
        litellm_compat.known_window_tokens(deployment),
    )
    factor = family_factor(deployment.model)
    return Destination(deployment.model, window, factor, policy, litellm_compat.call_id_of(fields), rung)
