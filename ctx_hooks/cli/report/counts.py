"""What is counted of the events of one time, one name or all of them: what was done apart from what would have been."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TypeAlias

from ctx_hooks.cli.sums import Sums
from ctx_hooks.telemetry.events import AnswerEvent, FailureEvent, OverflowEvent

Counted: TypeAlias = AnswerEvent | FailureEvent | OverflowEvent


@dataclass(slots=True)
class Counts(Sums):
    """Sums over events of one mode.

    Attributes:
        answers: answered requests.
        changed: those that were sent changed, or would have been.
        beyond_window: those that were answered though they exceed the window.
        retried: those that were answered after a refused attempt.
        refused: attempts that a provider refused as too long.
        failed: requests that were refused in the end.
        tokens_saved: input tokens of the bill, in provider tokens.
        dollars_saved: sum over the requests that saved.
        dollars_spent: sum over the requests that cost more than they saved, below zero.
        unpriced: changed requests whose dollars are not known.
        input_tokens: as billed.
        cached_tokens: as much of these as the prompt cache served.
    """

    answers: int = 0
    changed: int = 0
    beyond_window: int = 0
    retried: int = 0
    refused: int = 0
    failed: int = 0
    tokens_saved: int = 0
    dollars_saved: float = 0.0
    dollars_spent: float = 0.0
    unpriced: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0

    @property
    def dollars(self) -> float:
        """What is saved in all."""
        return self.dollars_saved + self.dollars_spent

    @property
    def cache_fraction(self) -> float | None:
        """The share of billed input that the prompt cache served; None where none was billed."""
        return self.cached_tokens / self.input_tokens if self.input_tokens else None

    def count(self, event: Counted) -> None:
        """Add one event."""
        if isinstance(event, OverflowEvent):
            self.refused += 1
        elif isinstance(event, FailureEvent):
            self.failed += 1
        else:
            self._count_answer(event)

    def _count_answer(self, event: AnswerEvent) -> None:
        changed = event.decision != "fits"
        self.answers += 1
        self.changed += changed
        self.beyond_window += event.beyond_window
        self.retried += event.decision == "retried"
        self.tokens_saved += event.provider_tokens_saved or 0
        self.unpriced += changed and event.dollars_saved is None
        dollars = event.dollars_saved or 0.0
        self.dollars_saved += max(0.0, dollars)
        self.dollars_spent += min(0.0, dollars)
        if event.billed is not None:
            self.input_tokens += event.billed.input_tokens
            self.cached_tokens += event.billed.cached_tokens


@dataclass(slots=True)
class Tally(Sums):
    """The sums of what was done, and of what would have been where the mode was `observe`."""

    done: Counts = field(default_factory=Counts)
    would: Counts = field(default_factory=Counts)

    @property
    def both(self) -> Counts:
        """The sums of both modes."""
        return self.done + self.would

    def count(self, event: Counted) -> None:
        """Add one event to the sums of its mode."""
        (self.done if event.mode == "enforce" else self.would).count(event)
