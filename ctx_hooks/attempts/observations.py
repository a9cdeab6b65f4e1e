"""What answers and refusals have shown of a deployment, by the tenant whose traffic showed it.

A tenant can cause any observation on purpose. So its ratios apply only to itself, its limits to others within a stated
bound, and without the bound only if a second tenant has shown the same.
"""

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

from ctx_hooks.tokens.units import LocalTokens, ProviderTokens

Kind = Literal["limit", "output_limit", "accepted", "ratios", "other_ratios", "wants_reasoning"]

CLAUDE_FACTOR = 1.3
"""Claude has about 1.32 provider tokens per o200k_base token: the median of eighteen real sessions, 1.17 to 1.50."""
LEAST_RATIO, LARGEST_RATIO = 0.5, 2.5
"""A ratio outside these bounds comes from a different conversation, not from a tokenizer."""
LARGEST_OTHER_RATIO = 5.0
"""A byte vocabulary has three to four tokens for one o200k_base token of Japanese or of an emoji."""
LEAST_LOCAL_TOKENS = 300
"""In a smaller request the fixed cost of messages and tools outweighs the text, and the ratio shows little."""
REMEMBERED = 15
"""The ratio in use is the median of this many observations: the first at once; it follows a drift after eight."""
GRID_FRACTION = 0.04
"""The ratio in use is on a logarithmic grid of this step, so that workers with slightly different ratios agree."""
HYSTERESIS_FRACTION = 0.03
"""The ratio in use moves only if the median is further away: cut points of running conversations stay. Two
workers without Redis then differ for 14 % of the requests of 400 simulated sessions (measured)."""

DAY_SECONDS = 24 * 3600.0
CLOCK_SECONDS = 600.0
"""How far another worker's clock may be ahead: all workers drop observations of a later time."""
LEAST_LIMIT_TOKENS = 1_000
"""No chat model in use has a smaller window; a smaller figure is an error number, an index or an invention."""
LARGEST_TOKENS = 1_000_000_000
"""A hundred times the largest window of a model (ten million): a larger figure cannot be a token count."""
ANYONE = ""
"""The tenant of accepted sizes: a fact about the deployment, whoever showed it."""
OTHERS_FLOOR_FRACTION = 0.5
"""Share of the window: one other tenant's refusal sets no limit below it, so no tenant can shrink another's further."""
CONFIRMING_TENANTS = 2
"""This many tenants have to show a figure before it applies to a third without a bound."""
MOST_TENANTS = 64
"""Tenants remembered of each deployment: a tenant that keeps sending requests keeps its observations."""


class Rule(NamedTuple):
    """How many figures an observation has, the bounds of the first, and its lifetime: they check a shared store's values.

    Providers raise windows and operators change servers, but tokenizers stay.
    """

    lengths: range
    least: float
    largest: float
    kept_seconds: float = DAY_SECONDS

    def holds(self, observation: "Observation", now: float) -> bool:
        """Return whether an observation is still valid `now`, in epoch seconds."""
        return now - self.kept_seconds < observation.at <= now + CLOCK_SECONDS

    def admits(self, observation: "Observation", now: float) -> bool:
        """Return whether an observation is within the bounds and still valid."""
        values = observation.values
        is_sound = len(values) in self.lengths and all(0 <= value <= LARGEST_TOKENS for value in values)
        return is_sound and self.least <= values[0] <= self.largest and self.holds(observation, now)


RULES: Mapping[Kind, Rule] = {
    "limit": Rule(range(3, 4), LEAST_LIMIT_TOKENS, LARGEST_TOKENS),
    "output_limit": Rule(range(1, 2), 1, LARGEST_TOKENS),
    "accepted": Rule(range(1, 2), 0, LARGEST_TOKENS),
    "ratios": Rule(range(1, REMEMBERED + 2), LEAST_RATIO, LARGEST_RATIO, 7 * DAY_SECONDS),
    "other_ratios": Rule(range(1, REMEMBERED + 2), LEAST_RATIO, LARGEST_OTHER_RATIO, 7 * DAY_SECONDS),
    "wants_reasoning": Rule(range(1, 2), 1, 1, 7 * DAY_SECONDS),
}


@dataclass(frozen=True, slots=True)
class Observation:
    """The figures that were seen, in provider tokens, and when (epoch seconds).

    `limit`: the limit on the input; the size that it may rise to, 0 for a limit that an error named; and 1 if it says
    something to other tenants too, because the refused request was counted whole. `output_limit`: as an error named it.
    `accepted`: the largest input that the provider counted of an answered request. `ratios`, `other_ratios`: the ratio in
    use, then the latest. `wants_reasoning`: 1.
    """

    values: tuple[float, ...]
    at: float


NOTHING = Observation((0.0,), at=0.0)
"""Represents no accepted size."""
Key: TypeAlias = tuple[Kind, str]
"""The kind of an observation, and the tenant."""
Shown: TypeAlias = Mapping[Key, Observation]
"""The observations of one answer or refusal."""


@dataclass(frozen=True, slots=True)
class DeploymentStats:
    """The observations of one deployment."""

    observations: Shown = field(default_factory=dict)

    def gains(self, key: Key, other: Observation, now: float) -> bool:
        """Return whether an observation replaces the present one: each key keeps the newer, accepted sizes the larger."""
        known, rule = self.observations.get(key), RULES[key[0]]
        if not rule.admits(other, now):
            return False
        return known is None or not rule.holds(known, now) or _rank(key[0], known) < _rank(key[0], other)

    def merged(self, others: Shown, now: float) -> "DeploymentStats":
        """Return these statistics without expired observations, and with the others that replace present ones."""
        merged = {k: o for k, o in self.observations.items() if RULES[k[0]].holds(o, now)}
        merged.update({key: other for key, other in others.items() if self.gains(key, other, now)})
        if len(merged) > MOST_TENANTS:
            by_age = sorted(merged.items(), key=lambda item: -item[1].at)
            tenants = list(dict.fromkeys(tenant for (_, tenant), _ in by_age if tenant != ANYONE))[:MOST_TENANTS]
            merged = {key: observation for key, observation in by_age if key[1] in (ANYONE, *tenants)}
        return DeploymentStats(merged)

    def seen_by(self, tenant: str, now: float) -> "Seen":
        """Return the figures that apply to a tenant `now`, in epoch seconds."""
        own: dict[Kind, Observation] = {}
        others: dict[str, dict[Kind, Observation]] = {}
        for (kind, whose), observation in self.observations.items():
            if RULES[kind].holds(observation, now):
                (own if whose in (tenant, ANYONE) else others.setdefault(whose, {}))[kind] = observation
        return Seen(own, tuple(others.values()))


def _rank(kind: Kind, observation: Observation) -> tuple[Any, ...]:
    """Return a sort key: the observation with the greatest key stays, whatever their order of arrival."""
    values, at = observation.values, observation.at
    return (values[0], at) if kind == "accepted" else (at, values)


@dataclass(frozen=True, slots=True)
class Seen:
    """A deployment's recent observations as they apply to one tenant: its own with those of anyone, and each other one's."""

    own: Mapping[Kind, Observation] = field(default_factory=dict)
    others: tuple[Mapping[Kind, Observation], ...] = ()

    def limit_tokens(self, window_tokens: ProviderTokens) -> ProviderTokens | None:
        """Return the limit that applies to the tenant, None if there are no observations.

        It is never below a size that was accepted later. A limit from a single other tenant is at least half of the window
        of `window_tokens`, and never below an accepted size; the second smallest figure of the others rests on two of them.
        """
        accepted, own = self.own.get("accepted", NOTHING), self.own.get("limit")
        others = sorted(shown["limit"].values[0] for shown in self.others if "limit" in shown and shown["limit"].values[2])
        least = (window_tokens * OTHERS_FLOOR_FRACTION, 0)
        limits = [max(limit, floor, accepted.values[0]) for limit, floor in zip(others, least, strict=False)]
        if own is not None:
            limits.append(max(own.values[0], accepted.values[0] if accepted.at > own.at else 0))
        return ProviderTokens(int(min(limits))) if limits else None

    def output_limit_tokens(self) -> ProviderTokens | None:
        """Return the largest output that the deployment gives the tenant: named to it, or to two others."""
        found = self._confirmed("output_limit")
        return None if found is None else ProviderTokens(int(found))

    def wants_reasoning(self) -> bool:
        """Return whether the deployment refuses messages without their reasoning, as shown to the tenant or two others."""
        return self._confirmed("wants_reasoning") is not None

    def factor(self, model: str) -> float:
        """Return the provider tokens per local token that the tenant's own traffic has shown, else those of the family."""
        return self.own["ratios"].values[0] if "ratios" in self.own else CLAUDE_FACTOR if "claude" in model.lower() else 1.0

    def other_weight(self, model: str) -> float:
        """Return the weight of a local token of other scripts, figures and base64, so that `factor` applies to it too."""
        shown = self.own.get("other_ratios")
        return 1.0 if shown is None else _on_grid(shown.values[0] / self.factor(model))

    def _confirmed(self, kind: Kind) -> float | None:
        """Return the tenant's own figure of a kind, else the smallest that enough others confirm; None without one."""
        others = sorted(o[kind].values[0] for o in self.others if kind in o)[CONFIRMING_TENANTS - 1 :]
        return self.own[kind].values[0] if kind in self.own else next(iter(others), None)


def ratios_after(
    ratios: tuple[float, ...], local_tokens: LocalTokens, provider_tokens: ProviderTokens, *, is_bound: bool = False
) -> tuple[float, ...]:
    """Return the ratio in use and the latest ones after one more answer; unchanged if it shows nothing.

    The ratio in use is the median of the latest. With `is_bound`, as for other scripts, it is their maximum, a bound for
    every mix between the observed ones.

    >>> ratios_after((), LocalTokens(10_000), ProviderTokens(13_000))
    (1.3159, 1.3)
    """
    if local_tokens < LEAST_LOCAL_TOKENS or provider_tokens <= 0:
        return ratios
    ratio = provider_tokens / local_tokens
    if not LEAST_RATIO <= ratio <= (LARGEST_OTHER_RATIO if is_bound else LARGEST_RATIO):
        return ratios
    latest = (*ratios[1:], round(ratio, 4))[-REMEMBERED:]
    found = max(latest) if is_bound else statistics.median(latest)
    moved = not ratios or abs(found / ratios[0] - 1) > HYSTERESIS_FRACTION
    return (_on_grid(found) if moved else ratios[0], *latest)


def _on_grid(ratio: float) -> float:
    step = math.log1p(GRID_FRACTION)
    return round(math.exp(round(math.log(ratio) / step) * step), 4)
