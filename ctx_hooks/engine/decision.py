"""What was decided for one attempt at a request: frozen values that hooks, headers, logs, commands and tests read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ctx_hooks.compaction.pipeline import StepReport
from ctx_hooks.formats.wire_format import WireFormat
from ctx_hooks.request.output_limit import is_output_change
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
class Decision:
    """What was decided for an attempt; one of the classes below.

    Attributes:
        changes: the request's fields that are sent changed: the messages, and `max_tokens` where it was lowered.
        figures: what was decided by; None for a request that fits, or that was not counted.
        steps: what was done to the messages, in order.
        reason: why, in one clause; "" where the figures say it.
    """

    changes: Mapping[str, Any] = field(default_factory=dict, repr=False)
    figures: Figures | None = None
    steps: tuple[StepReport, ...] = ()
    reason: str = ""


class Untouched(Decision):
    """The request is sent unchanged."""


class ShownAgain(Untouched):
    """LiteLLM has translated the request to another format and shows it again: it is the attempt decided about before."""


class Compressed(Decision):
    """The request was compressed, on a retry harder; without figures it fitted, and asks for less output."""


class GaveUp(Decision):
    """The request is still above the budget: it is sent as small as it got, since the budget is an estimate."""


class NotRetried(Decision):
    """A retry that would be less than 5 % smaller than what was refused: it is not sent."""


def outcome_of(decision: Decision, attempt: int, wire: WireFormat) -> Outcome:
    """Return what a request of a format ends in if the attempt is answered."""
    if isinstance(decision, NotRetried):
        return "failed"
    if attempt:
        return "retried"
    if not decision.changes:
        return "fits"
    return "output_lowered" if is_output_change(wire, decision.changes) else "compressed"
