"""What is counted of the events of one time, one name or all of them: what was done apart from what would have been."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from ctx_hooks.telemetry.events import AnswerEvent, DecisionEvent, FailureEvent, OverflowEvent
from ctx_hooks.telemetry.figures import names_for

Counted: TypeAlias = AnswerEvent | FailureEvent | OverflowEvent


class Counts(dict[str, float]):
    """Sums over events of one mode by name, 0 for what was never counted.

    - each field that its event declares as a column, by its own name;
    - `answers`: answered requests; `changed`: those that were sent changed, or would have been; `retried`: those that were
      answered after a refused attempt; `failed`: requests that were refused in the end;
    - `refused`: attempts that a provider refused as too long;
    - `tokens_saved`, `input_tokens`, `cached_tokens`: of the bills, in provider tokens;
    - `dollars_saved`: of the requests that saved; `dollars_spent`: of those that cost more, below zero; `unpriced`: changed
      requests whose dollars are not known.
    """

    def __missing__(self, name: str) -> float:
        """Return what nothing was added to."""
        return 0

    def __add__(self, other: Counts) -> Counts:
        """Return the sums of both."""
        return Counts({name: self[name] + other[name] for name in {**self, **other}})

    @property
    def dollars(self) -> float:
        """What is saved in all."""
        return self["dollars_saved"] + self["dollars_spent"]

    @property
    def cache_fraction(self) -> float | None:
        """The share of billed input that the prompt cache served; None where none was billed."""
        return self["cached_tokens"] / self["input_tokens"] if self["input_tokens"] else None

    def count(self, event: DecisionEvent | Counted) -> None:
        """Add one event."""
        for _, name in names_for("column", event.__class__):
            self[name] += getattr(event, name) or 0
        if isinstance(event, OverflowEvent):
            self["refused"] += 1
        elif isinstance(event, FailureEvent):
            self["failed"] += 1
        elif isinstance(event, AnswerEvent):
            changed, dollars = event.decision != "fits", event.dollars_saved
            self["answers"] += 1
            self["changed"] += changed
            self["retried"] += event.decision == "retried"
            self["tokens_saved"] += event.provider_tokens_saved or 0
            self["unpriced"] += changed and dollars is None
            self["dollars_saved"] += max(0.0, dollars or 0.0)
            self["dollars_spent"] += min(0.0, dollars or 0.0)
            if event.billed is not None:
                self["input_tokens"] += event.billed.input_tokens
                self["cached_tokens"] += event.billed.cached_tokens


@dataclass(slots=True)
class Tally:
    """The sums of what was done, and of what would have been where the mode was `observe`."""

    done: Counts = field(default_factory=Counts)
    would: Counts = field(default_factory=Counts)

    def __add__(self, other: Tally) -> Tally:
        """Return the sums of both."""
        return Tally(self.done + other.done, self.would + other.would)

    @property
    def both(self) -> Counts:
        """The sums of both modes."""
        return self.done + self.would

    def count(self, event: DecisionEvent | Counted) -> None:
        """Add one event to the sums of its mode."""
        (self.done if event.mode == "enforce" else self.would).count(event)
