"""What answers and refusals have shown of a deployment, by the tenant whose traffic showed it.

Whatever a tenant can cause, it can cause on purpose: an error that quotes its words, provider tokens for something that
is not counted here. So a figure that one tenant has shown holds for that tenant; for the others it holds within a stated
bound, and without it only where a second tenant has shown the same.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias, get_args

from ctx_hooks.learning.calibration import (
    GRID_FRACTION,
    LARGEST_OTHER_RATIO,
    LARGEST_RATIO,
    LEAST_RATIO,
    REMEMBERED,
    Calibration,
    family_factor,
    quantised,
)
from ctx_hooks.tokens.units import ProviderTokens

Kind = Literal[
    "limit",
    "own_limit",
    "refused",
    "refused_mix",
    "kept",
    "output_limit",
    "holds_output",
    "ratios",
    "other_ratios",
    "low_bill",
    "accepted_input",
    "accepted_output",
    "accepted_total",
    "answer",
]
KINDS: tuple[Kind, ...] = get_args(Kind)
RATIOS: tuple[Kind, ...] = ("ratios", "other_ratios")

DAY_SECONDS = 24 * 3600.0
KEPT_SECONDS: Mapping[Kind, float] = {
    **dict.fromkeys(KINDS, DAY_SECONDS),
    **dict.fromkeys(RATIOS, 7 * DAY_SECONDS),
    "low_bill": 3600.0,
}
"""How long an observation holds: providers raise windows and operators change servers, tokenizers stay."""
LEAST_LIMIT_TOKENS = 1_000
"""No chat model in use has a smaller window; a smaller figure is an error number, an index or made up."""
LARGEST_TOKENS = 1_000_000_000
"""A hundred times the largest window of a model (ten million): a larger figure is no count of tokens."""
RANGES: Mapping[Kind, tuple[int, float, float]] = {
    "limit": (1, LEAST_LIMIT_TOKENS, LARGEST_TOKENS),
    "own_limit": (1, LEAST_LIMIT_TOKENS, LARGEST_TOKENS),
    "refused": (1, LEAST_LIMIT_TOKENS, LARGEST_TOKENS),
    "refused_mix": (3, 0, LARGEST_TOKENS),
    "kept": (1, LEAST_LIMIT_TOKENS, LARGEST_TOKENS),
    "output_limit": (1, 1, LARGEST_TOKENS),
    "holds_output": (1, 1, 1),
    "ratios": (REMEMBERED + 1, LEAST_RATIO, LARGEST_RATIO),
    "other_ratios": (REMEMBERED + 1, LEAST_RATIO, LARGEST_OTHER_RATIO),
    "low_bill": (2, 0, LARGEST_TOKENS),
    "accepted_input": (1, 0, LARGEST_TOKENS),
    "accepted_output": (1, 0, LARGEST_TOKENS),
    "accepted_total": (1, 0, LARGEST_TOKENS),
    "answer": (1, 1, LARGEST_TOKENS),
}
"""Of each kind the most values, the least and the largest: what is read from a shared store is checked against it."""
LARGEST_STAYS = frozenset({"accepted_input", "accepted_output", "accepted_total", "answer"})
"""Kinds of which the largest figure stays; of all others the newest."""
ANSWER_FACTOR = 2
"""So many times the largest answer of a day is kept free: an answer that would be cut short is twice as long as any."""
ANYONE = ""
"""The tenant of what a deployment has accepted: a fact about the deployment, whoever showed it."""
CONFIRMING_TENANTS = 2
"""So many tenants have to show a figure before it holds for a third without a bound."""
MEDIAN_TENANTS = 3
"""The median over so many tenants is not one tenant's to choose."""
FOREIGN_RATIO_FACTOR = 1.25
"""How far the ratio that one or two other tenants have shown may move the figure of a tenant that has shown none."""
PROBE_FRACTION = 0.15
"""How far, on a logarithmic scale, a limit without a figure lies above what was accepted, towards what was refused: near
enough that the next request mostly fits, and above it, so that requests that grow find out more."""
REFUSED_STEPS = 4
"""The size of what was refused without a figure is rounded down to a step, of which a doubling has so many: the powers of
two that windows mostly are among them, and two workers that saw different requests refused come to the same figure."""
MOST_TENANTS = 64
"""Tenants remembered of each deployment: a tenant that goes on asking keeps what it was told once."""


@dataclass(frozen=True, slots=True)
class Observation:
    """The figures that were seen, in provider tokens, and when (epoch seconds).

    `limit` and `output_limit`: the limit that an error named; `own_limit`: to a request that was not counted whole here,
    which says nothing to other tenants. `refused`: the size of a request that was refused without a figure.
    `refused_mix`: that size as it was counted, how many local tokens of it are of other scripts, and the ratio that
    these were counted by. `kept`: the guessed limit that an answered retry kept to. `holds_output`: 1. `ratios`,
    `other_ratios`: the ratio in use, then the latest. `low_bill`: what was sent, in provider tokens, 0 for a request
    that was not counted, and what the provider counted of it. `accepted_*`: the input that the provider counted, the
    requested output, and both together, of an answered request. `answer`: the output that an answer had.

    >>> Observation((128_000,), at=1_790_000_000.0).values
    (128000,)
    """

    values: tuple[float, ...]
    at: float


Key: TypeAlias = tuple[Kind, str]
"""The kind of an observation, and the tenant."""


def valid(kind: Kind, observation: Observation, now: float) -> bool:
    """Return whether an observation is one at all and still holds."""
    most, least, largest = RANGES[kind]
    in_range = all(least <= v <= largest for v in observation.values)
    return 1 <= len(observation.values) <= most and in_range and now - KEPT_SECONDS[kind] < observation.at <= now + 60


@dataclass(frozen=True, slots=True)
class DeploymentStats:
    """The observations of one deployment."""

    observations: Mapping[Key, Observation] = field(default_factory=dict)

    def merged(self, others: Mapping[Key, Observation], now: float) -> DeploymentStats:
        """Return these statistics with other observations: of each key the newer one, of what was accepted the larger."""
        merged = {k: o for k, o in self.observations.items() if valid(k[0], o, now)}
        for key, other in others.items():
            known = merged.get(key)
            if valid(key[0], other, now) and (known is None or _replaces(key[0], other, known)):
                merged[key] = other
        return DeploymentStats(merged if len(merged) <= MOST_TENANTS else bounded(merged))

    def of(self, kind: Kind, tenant: str, now: float) -> Observation | None:
        """Return what a tenant has shown, while it holds."""
        found = self.observations.get((kind, tenant))
        return found if found is not None and valid(kind, found, now) else None

    def accepted(self, kind: Kind, now: float) -> float:
        """Return the largest figure of the kind that the deployment has accepted, 0 when it has shown none."""
        found = self.of(kind, ANYONE, now)
        return found.values[0] if found else 0.0

    def limit_tokens(
        self, tenant: str, window_tokens: ProviderTokens, floor_fraction: float, now: float
    ) -> ProviderTokens | None:
        """Return the limit that holds for a tenant, None when nothing was shown.

        It holds never less than what the deployment has accepted, but for a limit that the provider named to this tenant
        later. What a single other tenant was told is bounded by `floor_fraction` of the window of `window_tokens`; the
        second smallest figure of the others stands on two of them.
        """
        accepted = self.accepted("accepted_input", now)
        own = self._own_limit(tenant, accepted, now)
        others = sorted(self._of_others(("limit", "refused"), tenant, now).values())
        shown = [own] if own else []
        if others:
            shown.append(max(others[0], window_tokens * floor_fraction, accepted))
        if len(others) >= CONFIRMING_TENANTS:
            shown.append(max(others[CONFIRMING_TENANTS - 1], accepted))
        return ProviderTokens(int(min(shown))) if shown else None

    def output_limit_tokens(self, tenant: str, now: float) -> ProviderTokens | None:
        """Return the largest output that the deployment gives a tenant: named to it, or to two others."""
        own = self.of("output_limit", tenant, now)
        accepted = self.of("accepted_output", ANYONE, now)
        if own and not (accepted and accepted.at > own.at and accepted.values[0] > own.values[0]):
            return ProviderTokens(int(own.values[0]))
        others = sorted(self._of_others(("output_limit",), tenant, now).values())
        if len(others) < CONFIRMING_TENANTS:
            return None
        confirmed = others[CONFIRMING_TENANTS - 1]
        return ProviderTokens(int(confirmed)) if not accepted or accepted.values[0] <= confirmed else None

    def answer_tokens(self, tenant: str, now: float) -> ProviderTokens | None:
        """Return what an answer to a tenant may need, None where it had no answer yet.

        It is rounded up to a power of two: the budget that follows from it, and with it the compacted prefix, seldom moves.
        """
        largest = self.of("answer", tenant, now)
        return ProviderTokens(2 ** math.ceil(math.log2(ANSWER_FACTOR * largest.values[0]))) if largest else None

    def output_held(self, tenant: str, window_tokens: ProviderTokens, now: float) -> bool | None:
        """Return whether a window of that size holds the output too, as far as answers and refusals have shown it."""
        others = self._of_others(("holds_output",), tenant, now)
        if self.of("holds_output", tenant, now) or len(others) >= CONFIRMING_TENANTS:
            return True
        return False if self.accepted("accepted_total", now) > window_tokens else None

    def calibration(self, kind: Kind, tenant: str, now: float) -> Calibration:
        """Return the ratios of a kind that a tenant's answers have shown."""
        found, is_bound = self.of(kind, tenant, now), kind == "other_ratios"
        return Calibration(found.values[1:], found.values[0], is_bound) if found else Calibration(is_bound=is_bound)

    def factor(self, tenant: str, model: str, now: float) -> float:
        """Return a tenant's provider tokens per local token.

        Where its own answers have shown nothing yet it is the median over the others, within a quarter of the model
        family's factor as long as these are fewer than three.
        """
        return self._ratio("ratios", tenant, family_factor(model), now)

    def other_weight(self, tenant: str, model: str, now: float) -> float:
        """Return what a local token of other scripts, figures and base64 counts as, so that `factor` holds for it too."""
        factor = self.factor(tenant, model, now)
        return quantised(self._ratio("other_ratios", tenant, factor, now) / factor)

    def _ratio(self, kind: Kind, tenant: str, expected: float, now: float) -> float:
        own = self.calibration(kind, tenant, now).published
        if own is not None:
            return own
        others = list(self._of_others((kind,), tenant, now).values())
        if not others:
            return expected
        median = statistics.median(others)
        if len(others) >= MEDIAN_TENANTS:
            return median
        return min(max(median, expected / FOREIGN_RATIO_FACTOR), expected * FOREIGN_RATIO_FACTOR)

    def counts_next(self, tenant: str, now: float) -> bool:
        """Whether the tenant's next request is counted, whatever its size: the last had oddly few provider tokens."""
        return self.of("low_bill", tenant, now) is not None

    def _own_limit(self, tenant: str, accepted: float, now: float) -> float | None:
        refused = self.of("refused", tenant, now)
        named = [o for o in (self.of("limit", tenant, now), self.of("own_limit", tenant, now)) if o]
        accepted_at = getattr(self.of("accepted_input", ANYONE, now), "at", 0.0)
        shown = [max(o.values[0], accepted) if accepted_at > o.at else o.values[0] for o in named]
        if refused:
            kept = self.of("kept", tenant, now)
            size = self._refused_tokens(tenant, refused, now)
            held = min(kept.values[0], size) if kept and kept.at >= refused.at else 0.0
            shown.append(max(held, _between(accepted, size)))
        return min(shown, default=None)

    def _refused_tokens(self, tenant: str, refused: Observation, now: float) -> float:
        """Return a refused size by the ratio of other scripts that the tenant's answers have shown since."""
        mix, ratio = self.of("refused_mix", tenant, now), self.calibration("other_ratios", tenant, now).published
        if mix is None or ratio is None or mix.at != refused.at or len(mix.values) < RANGES["refused_mix"][0]:
            return refused.values[0]
        size, other, counted_by = mix.values
        if math.isclose(ratio, counted_by, rel_tol=GRID_FRACTION):
            return refused.values[0]
        return max(LEAST_LIMIT_TOKENS, on_grid(max(1, size + other * (ratio - counted_by))))

    def _of_others(self, kinds: Iterable[Kind], tenant: str, now: float) -> dict[str, float]:
        """Return for each other tenant the smallest figure of these kinds."""
        found: dict[str, float] = {}
        for (kind, other), observation in self.observations.items():
            if kind in kinds and other != tenant and valid(kind, observation, now):
                value = self._refused_tokens(other, observation, now) if kind == "refused" else observation.values[0]
                found[other] = min(value, found.get(other, value))
        return found


def on_grid(tokens: float) -> ProviderTokens:
    """Return a refused size rounded down to the grid."""
    return ProviderTokens(int(2 ** (math.floor(math.log2(tokens) * REFUSED_STEPS) / REFUSED_STEPS)))


def _between(accepted: float, refused: float) -> float:
    """Return the limit to keep to where a size was accepted and a larger one refused, each in provider tokens."""
    if not 0 < accepted < refused:
        return max(accepted, refused)
    return float(accepted * (refused / accepted) ** PROBE_FRACTION)


def _replaces(kind: Kind, other: Observation, known: Observation) -> bool:
    if kind in LARGEST_STAYS:
        return other.values[0] >= known.values[0]
    return other.at > known.at


def bounded(observations: Mapping[Key, Observation]) -> dict[Key, Observation]:
    """Return what the deployment has shown to anyone, and the tenants from whom something was heard last."""
    by_age = sorted(observations.items(), key=lambda item: -item[1].at)
    tenants = {ANYONE, *list(dict.fromkeys(tenant for (_, tenant), _ in by_age if tenant != ANYONE))[:MOST_TENANTS]}
    return {key: observation for key, observation in by_age if key[1] in tenants}
