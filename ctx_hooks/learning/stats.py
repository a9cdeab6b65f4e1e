"""Observations of a deployment from answers and refusals, by the tenant whose traffic showed them.

A tenant can cause any observation on purpose: an error that quotes its words, provider tokens for content that is not
counted here. So one tenant's figure applies fully to that tenant. To others it applies within a stated bound, and without
the bound only if a second tenant has shown the same.
"""

import math
import statistics
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple, TypeAlias

from ctx_hooks.learning.calibration import (
    LARGEST_OTHER_RATIO,
    LARGEST_RATIO,
    LEAST_RATIO,
    REMEMBERED,
    family_factor,
    quantised,
)
from ctx_hooks.tokens.units import ProviderTokens

Kind = Literal[
    "limit", "own_limit", "refused", "claimed", "output_limit", "ratios", "other_ratios", "low_bill",
    "accepted_input", "accepted_output", "wants_reasoning",
]  # fmt: skip
RATIOS: tuple[Kind, ...] = ("ratios", "other_ratios")
LIMITS: tuple[Kind, ...] = ("limit", "own_limit", "refused")
ACCEPTED: tuple[Kind, ...] = ("accepted_input", "accepted_output")
"""Of an answered request: its input, and its requested output."""

DAY_SECONDS = 24 * 3600.0
CLOCK_SECONDS = 600.0
"""How far another worker's clock may be ahead: all workers drop observations of a later time."""
LEAST_LIMIT_TOKENS = 1_000
"""No chat model in use has a smaller window; a smaller figure is an error number, an index or an invention."""
LARGEST_TOKENS = 1_000_000_000
"""A hundred times the largest window of a model (ten million): a larger figure cannot be a token count."""


class Rule(NamedTuple):
    """The bounds of a kind of observation, which check values from a shared store, and their lifetime.

    Providers raise windows and operators change servers, but tokenizers stay.

    Attributes:
        most_values: the most figures of one observation.
        least: the least of its figures.
        largest: the largest of them.
        kept_seconds: how long it is valid.
        largest_stays: whether the largest of several figures stays; else the newest.
    """

    most_values: int = 1
    least: float = 0
    largest: float = LARGEST_TOKENS
    kept_seconds: float = DAY_SECONDS
    largest_stays: bool = False

    def holds(self, observation: "Observation", now: float) -> bool:
        """Return whether an observation is still valid `now`, in epoch seconds."""
        return now - self.kept_seconds < observation.at <= now + CLOCK_SECONDS

    def admits(self, observation: "Observation", now: float) -> bool:
        """Return whether an observation is within the bounds and still valid."""
        values = observation.values
        in_range = 1 <= len(values) <= self.most_values and all(self.least <= v <= self.largest for v in values)
        return in_range and self.holds(observation, now)

    def rank(self, observation: "Observation") -> tuple[Any, ...]:
        """Return a sort key: the observation with the greatest key stays, whatever their order of arrival."""
        values, at = observation.values, observation.at
        return (values[0], at, values) if self.largest_stays else (at, values)


RULES: Mapping[Kind, Rule] = {
    **dict.fromkeys(LIMITS, Rule(least=LEAST_LIMIT_TOKENS)),
    **dict.fromkeys(ACCEPTED, Rule(largest_stays=True)),
    "refused": Rule(3),
    "claimed": Rule(3),
    "output_limit": Rule(least=1),
    "ratios": Rule(REMEMBERED + 1, LEAST_RATIO, LARGEST_RATIO, 7 * DAY_SECONDS),
    "other_ratios": Rule(REMEMBERED + 1, LEAST_RATIO, LARGEST_OTHER_RATIO, 7 * DAY_SECONDS),
    "low_bill": Rule(2, kept_seconds=3600.0),
    "wants_reasoning": Rule(least=1, largest=1, kept_seconds=7 * DAY_SECONDS),
}
ANYONE = ""
"""The tenant of accepted sizes: a fact about the deployment, whoever showed it."""
CONFIRMING_TENANTS = 2
"""This many tenants have to show a figure before it applies to a third without a bound."""
MEDIAN_TENANTS = 3
"""One tenant cannot choose the median over this many tenants."""
FOREIGN_RATIO_FACTOR = 1.25
"""How far the ratio that one or two other tenants have shown may move the figure of a tenant that has shown none."""
REFUSED_STEPS = 8
"""The size of a request refused without a figure is rounded down to a step, this many in a doubling: the powers of
two that windows mostly are among them, and two workers that saw different requests refused come to the same figure."""
MOST_TENANTS = 64
"""Tenants remembered of each deployment: a tenant that keeps sending requests keeps its observations."""


@dataclass(frozen=True, slots=True)
class Observation:
    """The figures that were seen, in provider tokens, and when (epoch seconds).

    `limit` and `output_limit`: the limit that an error named; `own_limit`: to a request that was not counted whole here,
    which says nothing to other tenants. `refused`: the size of a request that was refused without a figure, in local tokens
    of Latin words and of others, so that the newest ratios apply to it; then the share of it that is the limit. `claimed`: a
    limit that a second refusal or answer has to show: the figure, whether it is the output's, and the length of the answer
    that ended at it, 0 for a refusal. `ratios`, `other_ratios`: the ratio in use, then the latest. `low_bill`: the sent
    size, in provider tokens, 0 for one that was not counted, and what the provider counted of it; (0, 0) after a larger
    bill. `accepted_*`: the input that the provider counted, and the requested output, of an answered request.
    `wants_reasoning`: 1.

    >>> Observation((128_000,), at=1_790_000_000.0).values
    (128000,)
    """

    values: tuple[float, ...]
    at: float


NOTHING, UNLIMITED = Observation((0.0,), at=0.0), Observation((math.inf,), at=0.0)
"""Represent no accepted size, and no limit."""
Key: TypeAlias = tuple[Kind, str]
"""The kind of an observation, and the tenant."""


@dataclass(frozen=True, slots=True)
class DeploymentStats:
    """The observations of one deployment."""

    observations: Mapping[Key, Observation] = field(default_factory=dict)

    def gains(self, key: Key, other: Observation, now: float) -> bool:
        """Return whether an observation replaces the present one: each key keeps the newer, accepted sizes the larger."""
        known, rule = self.observations.get(key), RULES[key[0]]
        return rule.admits(other, now) and (
            known is None or not rule.holds(known, now) or rule.rank(known) < rule.rank(other)
        )

    def merged(self, others: Mapping[Key, Observation], now: float) -> "DeploymentStats":
        """Return these statistics without expired observations, and with the others that replace present ones."""
        merged = {k: o for k, o in self.observations.items() if RULES[k[0]].holds(o, now)}
        merged.update({key: other for key, other in others.items() if self.gains(key, other, now)})
        return DeploymentStats(merged if len(merged) <= MOST_TENANTS else _bounded(merged))

    def seen_by(self, tenant: str, now: float) -> "Seen":
        """Return the figures that apply to a tenant `now`, in epoch seconds."""
        own: dict[Kind, Observation] = {}
        others: dict[str, dict[Kind, Observation]] = {}
        limit_seconds: float | None = None
        for (kind, whose), observation in self.observations.items():
            if RULES[kind].holds(observation, now):
                is_own = whose == tenant or (whose == ANYONE and kind in ACCEPTED)
                (own if is_own else others.setdefault(whose, {}))[kind] = observation
                if kind in LIMITS:
                    limit_seconds = max(limit_seconds or 0.0, observation.at)
        return Seen(own, tuple(others.values()), limit_seconds)


@dataclass(frozen=True, slots=True)
class Seen:
    """A deployment's recent observations, as they apply to one tenant.

    Attributes:
        own: the observations of the tenant, and those of anyone.
        others: the observations of each other tenant.
        limit_seconds: when a limit on the input was last shown to any tenant, in epoch seconds; None if never.
    """

    own: Mapping[Kind, Observation] = field(default_factory=dict)
    others: tuple[Mapping[Kind, Observation], ...] = ()
    limit_seconds: float | None = None

    def limit_tokens(self, window_tokens: ProviderTokens, floor_fraction: float, model: str = "") -> ProviderTokens | None:
        """Return the limit that applies to the tenant, None if there are no observations.

        It is never below an accepted size, except for a limit that the provider named to this tenant later, and never above
        a size that this tenant was refused. A limit from a single other tenant is at least `floor_fraction` of the window of
        `window_tokens`; the second smallest figure of the others rests on two of them.
        """
        accepted_input = self.own.get("accepted_input", NOTHING)
        accepted = accepted_input.values[0]
        named = [self.own[kind] for kind in ("limit", "own_limit") if kind in self.own]
        shown = [max(o.values[0], accepted) if accepted_input.at > o.at else o.values[0] for o in named]
        own = [min([*shown, self.below_refused(self.own, model)])]
        others = sorted(min(o.get("limit", UNLIMITED).values[0], self.below_refused(o, model)) for o in self.others)
        if others:
            own.append(max(others[0], window_tokens * floor_fraction, accepted))
        if len(others) >= CONFIRMING_TENANTS:
            own.append(max(others[CONFIRMING_TENANTS - 1], accepted))
        return None if math.isinf(min(own)) else ProviderTokens(int(min(own)))

    def output_limit_tokens(self) -> ProviderTokens | None:
        """Return the largest output that the deployment gives the tenant: named to it, or to two others."""
        own, accepted = self.own.get("output_limit"), self.own.get("accepted_output", NOTHING)
        if own and not (accepted.at > own.at and accepted.values[0] > own.values[0]):
            return ProviderTokens(int(own.values[0]))
        others = self._of_others("output_limit")
        if len(others) < CONFIRMING_TENANTS or accepted.values[0] > others[CONFIRMING_TENANTS - 1]:
            return None
        return ProviderTokens(int(others[CONFIRMING_TENANTS - 1]))

    def wants_reasoning(self) -> bool:
        """Return whether the deployment refuses messages without their reasoning, as shown to the tenant or two others."""
        return "wants_reasoning" in self.own or len(self._of_others("wants_reasoning")) >= CONFIRMING_TENANTS

    def factor(self, model: str) -> float:
        """Return the tenant's provider tokens per local token.

        If its own answers have shown nothing yet, this is the median over the others, within a quarter of the model family's
        factor while these are fewer than three.
        """
        return self._ratio("ratios", family_factor(model))

    def other_weight(self, model: str) -> float:
        """Return the weight of a local token of other scripts, figures and base64, so that `factor` applies to it too."""
        factor = self.factor(model)
        ratio = self._ratio("other_ratios", factor)
        return 1.0 if ratio == factor else quantised(ratio / factor)

    def _ratio(self, kind: Kind, expected: float) -> float:
        if kind in self.own:
            return self.own[kind].values[0]
        others = self._of_others(kind)
        if not others:
            return expected
        median = statistics.median(others)
        if len(others) >= MEDIAN_TENANTS:
            return median
        return min(max(median, expected / FOREIGN_RATIO_FACTOR), expected * FOREIGN_RATIO_FACTOR)

    def below_refused(self, shown: Mapping[Kind, Observation], model: str) -> float:
        """Return a tenant's limit below a size refused without a figure, by its ratios; infinite without such a size."""
        latin, other, share = (*shown.get("refused", UNLIMITED).values, 0.0, 1.0)[:3]
        factor = self.factor(model)
        latin_ratio = shown["ratios"].values[0] if "ratios" in shown else factor
        other_ratio = shown["other_ratios"].values[0] if "other_ratios" in shown else self._ratio("other_ratios", factor)
        return max(LEAST_LIMIT_TOKENS, (latin * latin_ratio + other * other_ratio) * min(share, 1.0))

    def _of_others(self, kind: Kind) -> list[float]:
        """Return each other tenant's figure of a kind, if it has one, in order."""
        return sorted(o[kind].values[0] for o in self.others if kind in o)


def on_grid(tokens: float) -> ProviderTokens:
    """Return a refused size rounded down to the grid."""
    return ProviderTokens(int(2 ** (math.floor(math.log2(tokens) * REFUSED_STEPS) / REFUSED_STEPS)))


def _bounded(observations: Mapping[Key, Observation]) -> dict[Key, Observation]:
    """Return the observations of anyone, and those of the tenants with the latest ones."""
    by_age = sorted(observations.items(), key=lambda item: -item[1].at)
    tenants = {ANYONE, *list(dict.fromkeys(tenant for (_, tenant), _ in by_age if tenant != ANYONE))[:MOST_TENANTS]}
    return {key: observation for key, observation in by_age if key[1] in tenants}
