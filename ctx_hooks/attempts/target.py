"""The target of an attempt: the model, its window, the asker, and the policy that applies there."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from operator import attrgetter
from typing import Any

from ctx_hooks.compaction.cost import Prices
from ctx_hooks.compaction.summary.model_written import NO_SUMMARIES, Summaries
from ctx_hooks.conversation.handles import Retrievable
from ctx_hooks.litellm_compat.call import Call, Deployment, DeploymentName
from ctx_hooks.litellm_compat.deployments import (
    deployment_key_of,
    deployments,
    entry_of,
    known_window_tokens,
    prices_of,
)
from ctx_hooks.litellm_compat.registry import is_proxy
from ctx_hooks.policy.resolve import Policies, Resolved
from ctx_hooks.policy.settings import Policy
from ctx_hooks.tokens.budget import Window, holds_output, window_of

COMPACTING_CLIENTS = ("claude-cli/", "codex", "opencode/", "qwencode/", "geminicli")
"""Beginnings of the user agents of Claude Code, Codex, opencode, Qwen Code and Gemini CLI, in lower case.

As sent by their versions 2.1, 0.169, 1.18, 0.15 and 0.61. Others also compact (pi, nanobot) but send the name of their SDK:
they are treated as clients that do not compact, which costs them only that chance.
"""


@dataclass(frozen=True, slots=True)
class Target:
    """The target of an attempt, and the settings that apply there.

    Attributes:
        model: the provider's model.
        deployment: the key of the statistics: the Router's id and the model, since all models behind a wildcard share one
            id. `deployment_id` is only the Router's id, "" without a Router.
        window: the model's window as configured or known.
        request_id: the request's id in this process; "" outside a proxy.
        tenant: a digest of the asker.
        prices: the prices of input tokens, in dollars; None if unknown.
        attempt: 0 for the first attempt of a request; retries count from 1.
        ignored: the settings that the policy ignored, one line each.
        origins: the scope that sets each field of the policy, as `team`, if one does.
        waits: whether the client may compact first, so that a request is fitted only if it exceeds the window itself.
        retrievable: how removed texts of the request can be retrieved; None if they are not kept.
        retried: whether retries follow a refusal; without a proxy there are none, and only a counted request teaches.
        checked: whether the Router refuses too large requests before it chooses a deployment, so that no retry follows.
        defers: whether a fallback is tried before the request is shortened.
        summaries: what models have written of the conversation's beginning.
    """

    model: str
    deployment: str
    window: Window
    policy: Policy
    request_id: str
    tenant: str = ""
    prices: Prices | None = None
    attempt: int = 0
    ignored: tuple[str, ...] = ()
    origins: Mapping[str, str] = field(default_factory=dict)
    waits: bool = False
    retrievable: Retrievable | None = None
    retried: bool = True
    checked: bool = False
    group: str = ""
    defers: bool = False
    deployment_id: str = ""
    summaries: Summaries = NO_SUMMARIES

    @property
    def counts(self) -> bool:
        """Whether an attempt is counted, whatever its size: a retry has to be smaller, and only counts teach."""
        return bool(self.attempt) or not self.retried or self.policy.max_turns is not None

    @property
    def name(self) -> DeploymentName:
        """The names by which LiteLLM reports how an attempt there ends."""
        return DeploymentName(self.deployment_id, self.model)


def of_attempt(call: Call, policies: Policies, attempt: int, requested: Target | None = None) -> Target:
    """Return the target of an attempt whose deployment the Router has chosen; `requested` is that of the request before."""
    group, deployment = call.model_group, call.deployment
    if requested is not None and requested.group == group and requested.deployment == deployment_key_of(deployment):
        return replace(requested, attempt=attempt) if attempt else requested
    return of_call(call, policies, group, deployment, attempt=attempt)


def of_group(call: Call, policies: Policies, group: str = "") -> Target:
    """Return the target with the largest window among the deployments of a model group, by default the request's."""
    group = group or str(call.fields.get("model") or "")
    listed = deployments(group) or (Deployment(group, {}),)
    return max(map(partial(of_call, call, policies, group), listed), key=attrgetter("window.tokens"))


def of_deployment(deployment: Deployment, resolved: Resolved, request_id: str, **of_request: Any) -> Target:
    """Return a deployment as the target of a request whose policy is resolved; `of_request` has further fields."""
    policy, entry = resolved.policy, entry_of(deployment)
    return Target(
        model=deployment.model,
        window=window_at(deployment, policy, entry),
        deployment=deployment_key_of(deployment),
        deployment_id=deployment.name.id,
        prices=prices_of(deployment, entry),
        policy=policy,
        request_id=request_id,
        ignored=resolved.ignored,
        origins=resolved.origins,
        **of_request,
    )


def window_at(deployment: Deployment, policy: Policy, entry: Mapping[str, Any] | None = None) -> Window:
    """Return the stated window of a deployment, or LiteLLM's figure."""
    known, stated = known_window_tokens(deployment, entry), deployment.model_info.get("max_input_tokens")
    return window_of(policy, stated, known, holds_output=holds_output(deployment.model))


def of_call(call: Call, policies: Policies, group: str, deployment: Deployment, **of_attempt: Any) -> Target:
    """Return a deployment of a group as the target of a call; `of_attempt` has further fields."""
    resolved = policies.resolve(call.caller(deployment, group))
    if call.is_for_summary:
        resolved = replace(resolved, policy=resolved.policy.model_copy(update={"summary": None}))
    client = call.headers.get("user-agent", "").lower()
    waits = resolved.policy.compaction == "client_first" and client.startswith(COMPACTING_CLIENTS)
    known = {"tenant": call.tenant, "waits": waits, "group": group, "retried": is_proxy()}
    return of_deployment(deployment, resolved, call.request_id, **known, **of_attempt)
