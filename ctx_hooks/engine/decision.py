"""What was decided for one attempt at a request: frozen values that hooks, headers, logs, commands and tests read.

`changes` are the request's fields that differ from what came: the messages, and `max_tokens` where it was lowered.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from ctx_hooks.request.output_limit import is_output_change

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_hooks.compaction.pipeline import StepReport
    from ctx_hooks.telemetry.events import Outcome
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
    """The request is sent unchanged."""

    reason: str
    figures: Figures | None = None


@dataclass(frozen=True, slots=True)
class ShownAgain(Untouched):
    """LiteLLM has translated the request to another format and shows it again: it is the attempt decided about before."""

    reason: str = "fitted before it was translated"


@dataclass(frozen=True, slots=True)
class Compressed:
    """The request was compressed before the call; without figures it fitted, and was repaired or asks for less output."""

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
    """The request is still above the budget: it is sent as small as it got, since the budget is an estimate."""

    changes: Mapping[str, Any] = field(repr=False)
    figures: Figures
    reason: str
    steps: tuple[StepReport, ...] = ()


@dataclass(frozen=True, slots=True)
class NotRetried:
    """A retry that would be less than 5 % smaller than what was refused: it is not sent."""

    reason: str
    figures: Figures | None = None


Decision: TypeAlias = Untouched | Compressed | Rescued | GaveUp | NotRetried


def changes_of(decision: Decision) -> Mapping[str, Any]:
    """Return the request's fields that a decision changes, none if nothing is sent or it is sent unchanged."""
    return {} if isinstance(decision, (Untouched, NotRetried)) else decision.changes


def outcome_of(decision: Decision, attempt: int) -> Outcome:
    """Return what a request ends in if the attempt is answered.

    >>> outcome_of(Untouched("fits"), 0), outcome_of(Untouched("fits"), 1)
    ('fits', 'retried')
    """
    if isinstance(decision, NotRetried):
        return "failed"
    if attempt:
        return "retried"
    changes = changes_of(decision)
    if not changes:
        return "fits"
    return "output_lowered" if is_output_change(changes) else "compressed"
