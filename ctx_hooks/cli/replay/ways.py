"""The ways in which a history is replayed: the configuration's own policies, or others; and what deployments cost.

Costs are LiteLLM's own calculation, with its prices.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ctx_hooks.cli.configuration import Configuration
from ctx_hooks.cli.files import yaml_of
from ctx_hooks.cli.replay.recorded import Recorded
from ctx_hooks.cli.terminal import CommandError
from ctx_hooks.litellm_compat.call import Deployment
from ctx_hooks.policy.loading import SECTION, settings_of
from ctx_hooks.policy.resolve import Caller, Policies, as_text
from ctx_hooks.policy.settings import Settings
from ctx_hooks.request.target import Target, of_deployment
from ctx_hooks.tokens.usage import Billed

PRICE = "input_cost_per_token"
READ_PRICE = "cache_read_input_token_cost"
WRITE_PRICE = "cache_creation_input_token_cost"
DEFAULT = "balanced"
"""The preset that a proxy without settings has."""
MOST_FIGURE = 10**12
"""The most for a usage, a window or a price. A file may state any figure; sums of these stay exact."""
OWN = "config"
"""The name of the way of the given configuration."""


UNTOUCHED = Policies(Settings()).resolve(Caller())
"""The policy of a proxy without the plugin: only its windows are used."""


@dataclass(frozen=True, slots=True)
class Way:
    """A name, and the policies that apply."""

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
        window_tokens: the window to take for all; None for the own window of each.
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
    """Return the stated windows and prices; LiteLLM writes a price of 0 if it knows none."""
    return {name: value for name, value in stated.items() if isinstance(value, (int, float)) and 0 < value < MOST_FIGURE}


def target_of(way: Way, deployment: Deployment, recorded: Recorded) -> Target:
    """Return the target of a request, and the policy that applies to its caller there."""
    caller = Caller(
        group=recorded.group or recorded.model,
        deployment=as_text(deployment.model_info.get("ctx_hooks")),
        session=recorded.session,
        team_names=recorded.team_names,
        key_names=recorded.key_names,
    )
    return of_deployment(deployment, way.policies.resolve(caller), "replay")


class Prices:
    """LiteLLM's prices. Those that a deployment states are registered with LiteLLM, as its Router does."""

    def __init__(self) -> None:
        self._known: dict[str, Mapping[str, Any]] = {}

    def billed(self, deployment: Deployment, input_tokens: int, shared_tokens: int, output_tokens: int) -> Billed:
        """Return the provider's bill for a request whose first `shared_tokens` an earlier one shares."""
        known = self._prices(deployment)
        cached = shared_tokens if known.get(READ_PRICE) or not known else 0
        written = input_tokens - cached if known.get(WRITE_PRICE) else 0
        return Billed(*(input_tokens, cached, written, output_tokens))  # type: ignore[arg-type]  # estimates

    def dollars(self, deployment: Deployment, billed: Billed) -> float | None:
        """Return the price of a request; None if LiteLLM knows no price of the model."""
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
        """Return the prices of a model, nothing if LiteLLM knows none."""
        if deployment.model not in self._known:
            self._known[deployment.model] = _registered(deployment)
        return self._known[deployment.model]


def _registered(deployment: Deployment) -> Mapping[str, Any]:
    import litellm  # noqa: PLC0415 - slow to load, and not for --help

    litellm.suppress_debug_info = True  # it prints a list of providers for each model that it does not know
    logging.getLogger("LiteLLM").setLevel(logging.ERROR)  # and warns of each price that is in no list of its own
    own = {name: v for name, v in deployment.model_info.items() if "cost" in name and isinstance(v, (int, float))}
    if PRICE in own:
        provider = deployment.model.split("/", 1)[0] if "/" in deployment.model else "openai"
        litellm.register_model({deployment.model: {"litellm_provider": provider, "mode": "chat", **own}})
    try:
        known: Mapping[str, Any] = litellm.get_model_info(deployment.model)
    except Exception:  # noqa: BLE001 - it raises a bare Exception for a model that it does not know
        return {}
    return known if PRICE in own or known.get(PRICE) else {}
