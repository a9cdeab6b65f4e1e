"""The ways in which a history is replayed: the configuration's own policies, and others that are tried in their stead."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ctx_hooks.cli.configuration import Configuration
from ctx_hooks.cli.files import yaml_of
from ctx_hooks.cli.replay.recorded import Recorded
from ctx_hooks.cli.terminal import CommandError
from ctx_hooks.litellm_compat import Deployment
from ctx_hooks.policy.caller import Caller, as_text
from ctx_hooks.policy.loading import SECTION, settings_of
from ctx_hooks.policy.resolve import Policies
from ctx_hooks.policy.settings import Settings
from ctx_hooks.request.target import Target, of_deployment

DEFAULT = "balanced"
"""The preset that a proxy without settings has."""
MOST_FIGURE = 10**12
"""Of a usage, a window or a price. A file may state any, and the sums of these stay exact."""
OWN = "config"
"""The name of the way that the given configuration has."""


UNTOUCHED = Policies(Settings()).resolve(Caller())
"""The policy of a proxy without the plugin: only what it says of windows is asked."""


@dataclass(frozen=True, slots=True)
class Way:
    """A name, and the policies that hold."""

    name: str
    policies: Policies


def tried_way(text: str, named: Mapping[str, Any]) -> Way:
    """Return the way of a policy's name, or of its fields in YAML; `named` has the configuration's own policies.

    Raises:
        CommandError: it has mistakes.
    """
    try:
        value = yaml_of(text)
    except ValueError as error:
        raise CommandError(f"--policy: {error}") from None
    settings, wrong = settings_of({"policies": dict(named), "defaults": value if isinstance(value, Mapping) else text})
    if wrong:
        raise CommandError("; ".join(f"--policy: {line.removeprefix(f'{SECTION}.')}" for line in wrong))
    return Way(text, Policies(settings))


@dataclass(frozen=True, slots=True)
class Deployments:
    """The deployment of each recorded request.

    Attributes:
        model: the model or model group to take for all; "" for the recorded ones.
        window_tokens: the window to take for all; None for that of each.
    """

    config: Configuration
    model: str
    window_tokens: int | None

    def of(self, recorded: Recorded) -> Deployment:
        """Return the deployment, with the prices and windows of the configuration, else of the history."""
        asked = [self.model] if self.model else [name for name in (recorded.group, recorded.model) if name]
        listed = next((entry for name in asked for entry in self.config.group_of(name)), None)
        info = {} if self.model else _figures(recorded.model_info)
        if listed is not None:
            info |= {name: v for name, v in listed.params.items() if "cost_per" in name or name.endswith("_token_cost")}
            info |= listed.deployment.model_info
        if self.window_tokens is not None:
            info["max_input_tokens"] = self.window_tokens
        return Deployment(listed.deployment.model if listed else self.model or recorded.model or recorded.group, info)


def _figures(stated: Mapping[str, Any]) -> dict[str, Any]:
    """Return the windows and prices that are stated; LiteLLM writes a price of 0 where it knows none."""
    return {name: value for name, value in stated.items() if isinstance(value, (int, float)) and 0 < value < MOST_FIGURE}


def target_of(way: Way, deployment: Deployment, recorded: Recorded) -> Target:
    """Return where a request goes, and the policy that holds for its caller there."""
    caller = Caller(
        group=recorded.group or recorded.model,
        deployment=as_text(deployment.model_info.get("ctx_hooks")),
        session=recorded.session,
        team_names=recorded.team_names,
        key_names=recorded.key_names,
    )
    return of_deployment(deployment, way.policies.resolve(caller), "replay")
