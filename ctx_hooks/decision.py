"""What was decided for one attempt at a request: frozen values that hooks, headers, logs and tests read alike.

`changes` are the request's fields that differ from what came: the messages, and `max_tokens` where it was lowered.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_hooks.compaction.pipeline import StepReport
    from ctx_hooks.tokens.units import ProviderTokens


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures behind a decision: estimates in provider tokens, but for the window, which is stated.

    >>> Figures(tokens_before=41_000, tokens_after=15_000, budget_tokens=16_000, window_tokens=20_000).tokens_after
    15000
    """

    tokens_before: ProviderTokens
    tokens_after: ProviderTokens
    budget_tokens: ProviderTokens
    window_tokens: ProviderTokens


@dataclass(frozen=True, slots=True)
class Untouched:
    """The request goes on as it came."""

    reason: str
    figures: Figures | None = None


@dataclass(frozen=True, slots=True)
class Compressed:
    """The request was fitted before it was sent; without figures it fitted, and was repaired or asks for less output."""

    changes: Mapping[str, Any] = field(repr=False)
    figures: Figures | None
    steps: tuple[StepReport, ...]


@dataclass(frozen=True, slots=True)
class Rescued:
    """The request was compressed harder after the provider had refused it; `attempt` counts the retries from 1."""

    changes: Mapping[str, Any] = field(repr=False)
    figures: Figures
    steps: tuple[StepReport, ...]
    attempt: int


@dataclass(frozen=True, slots=True)
class GaveUp:
    """Nothing more could be taken away: the request goes on as small as it got, and the provider has the last word."""

    changes: Mapping[str, Any] = field(repr=False)
    figures: Figures
    reason: str
    steps: tuple[StepReport, ...] = ()


@dataclass(frozen=True, slots=True)
class NotRetried:
    """A retry that would send what was refused again, or nearly: the provider is not asked."""

    reason: str
    figures: Figures | None = None


Decision: TypeAlias = Untouched | Compressed | Rescued | GaveUp | NotRetried


def changes_of(decision: Decision) -> Mapping[str, Any]:
    """Return the request's fields that a decision changes, none where nothing is sent or it goes on as it came."""
    return {} if isinstance(decision, (Untouched, NotRetried)) else decision.changes
