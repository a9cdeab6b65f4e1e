"""The decision about one attempt at a request: frozen values that hooks, headers, logs, commands and tests read."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from ctx_hooks.attempts.attempt import Attempt
from ctx_hooks.attempts.request import TRUNCATION
from ctx_hooks.compaction.steps import StepReport
from ctx_hooks.formats.wire_format import WireFormat
from ctx_hooks.telemetry.events import Outcome
from ctx_hooks.tokens.units import ProviderTokens

TOOK_TOO_LONG = "took too long"
"""The reason of a decision that the deadline has left to the last resort."""


@dataclass(frozen=True, slots=True)
class Figures:
    """The figures behind a decision: estimates in provider tokens, except the window, which is stated."""

    tokens_before: ProviderTokens
    tokens_after: ProviderTokens
    budget_tokens: ProviderTokens
    window_tokens: ProviderTokens


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision about an attempt; one of the classes below.

    Attributes:
        changes: the changed fields of the sent request: the messages, and `max_tokens` if it was lowered.
        figures: the figures of the decision; None for a request that fits, or that was not counted.
        steps: the steps applied to the messages, in order.
        reason: the reason in one clause; "" if the figures show it.
    """

    changes: Mapping[str, Any] = field(default_factory=dict, repr=False)
    figures: Figures | None = None
    steps: tuple[StepReport, ...] = ()
    reason: str = ""


class Untouched(Decision):
    """The request is sent unchanged."""


class FailedOpen(Untouched):
    """The plugin failed: the request is sent unchanged."""


class ShownAgain(Untouched):
    """LiteLLM has translated the request to another format and shows it again: the decision about this attempt exists."""


class Compressed(Decision):
    """The request was compressed, harder on a retry; without figures it fitted, and only its output limit was lowered."""


class GaveUp(Decision):
    """The request is still above the budget: it is sent at its smallest size, since the budget is an estimate."""


class LeftToFallback(Decision):
    """A request above the budget, which is not sent: a configured fallback may hold it whole."""


class NotRetried(Decision):
    """A retry that would be less than 5 % smaller than the refused request: it is not sent."""


class Decided(NamedTuple):
    """A decision, and the resulting attempt.

    Attributes:
        offers: whether the model is offered the tool that returns removed texts.
    """

    decision: Decision
    attempt: Attempt
    offers: bool = False


def outcome_of(decision: Decision, attempt: int, wire: WireFormat) -> Outcome:
    """Return the outcome of a request of a format if the attempt is answered."""
    if isinstance(decision, NotRetried):
        return "failed"
    if isinstance(decision, FailedOpen):
        return "failed_open"
    if isinstance(decision, LeftToFallback):
        return "fallback"
    if attempt:
        return "retried"
    if not decision.changes:
        figures = decision.figures
        return "over_budget" if figures is not None and figures.tokens_after > figures.budget_tokens else "fits"
    is_output = decision.changes.keys().isdisjoint((wire.messages_field, *TRUNCATION))
    return "output_lowered" if is_output else "compressed"
