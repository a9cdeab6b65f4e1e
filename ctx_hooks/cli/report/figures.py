"""The figures of a report, from events one by one: linear in their number, and in bounded memory.

Enforced requests are counted separately from observed ones.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import TypeAlias

from ctx_hooks.cli.rendering import all_steps
from ctx_hooks.cli.report.sessions import LATEST_SECONDS, Largest
from ctx_hooks.telemetry.events import UNCHANGED, AnswerEvent, DecisionEvent, FailureEvent, OverflowEvent
from ctx_hooks.telemetry.figures import names_for
from ctx_hooks.telemetry.listeners import Event

Counted: TypeAlias = AnswerEvent | FailureEvent | OverflowEvent


class Counts(dict[str, float]):
    """Sums over events of one mode by name, 0 for a name that was never counted.

    - each field that its event declares as a column, by its own name;
    - `answers`: answered requests; `changed`: those that were sent changed, or would have been; `retried`: those that were
      answered after a refused attempt; `failed`: requests that were refused in the end;
    - `refused`: attempts that a provider refused as too long;
    - `tokens_saved`, `input_tokens`, `cached_tokens`: of the bills, in provider tokens;
    - `dollars_saved`: of the requests that saved; `dollars_spent`: of those that cost more, below zero; `unpriced`: changed
      requests whose dollars are not known.
    """

    def __missing__(self, name: str) -> float:
        """Return the sum of a name that was never counted."""
        return 0

    def __add__(self, other: "Counts") -> "Counts":
        """Return the sums of both."""
        return Counts({name: self[name] + other[name] for name in {**self, **other}})

    @property
    def dollars(self) -> float:
        """The total saved."""
        return self["dollars_saved"] + self["dollars_spent"]

    @property
    def cache_fraction(self) -> float | None:
        """The share of billed input that the prompt cache served; None if none was billed."""
        return self["cached_tokens"] / self["input_tokens"] if self["input_tokens"] else None

    def count(self, event: DecisionEvent | Counted) -> None:
        """Add one event."""
        for _, name in names_for("column", event.__class__):
            value = getattr(event, name) or 0
            self[name] += sum(value.values()) if isinstance(value, Mapping) else value
        if isinstance(event, OverflowEvent):
            self["refused"] += 1
        elif isinstance(event, FailureEvent):
            self["failed"] += 1
        elif isinstance(event, AnswerEvent):
            changed, dollars = event.decision not in (*UNCHANGED, "fallback", "failed_open"), event.dollars_saved
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
    """The sums of enforced requests, and of observed ones, as they would have been."""

    done: Counts = field(default_factory=Counts)
    would: Counts = field(default_factory=Counts)

    def __add__(self, other: "Tally") -> "Tally":
        """Return the sums of both."""
        return Tally(self.done + other.done, self.would + other.would)

    @property
    def both(self) -> Counts:
        """The sums of both modes."""
        return self.done + self.would

    def count(self, event: DecisionEvent | Counted) -> None:
        """Add one event to the sums of its mode."""
        (self.done if event.mode == "enforce" else self.would).count(event)


WIDTHS_SECONDS = (60, 300, 900, 3_600, 14_400, 86_400, 604_800)
"""Widths of a slot, each a multiple of the one before; weeks are doubled as often as needed."""
MOST_SLOTS = 90
"""Bars of 4 pixels on a phone."""
NAMES = {60: "minute", 300: "5 minutes", 900: "15 minutes", 3_600: "hour", 14_400: "4 hours", 86_400: "day", 604_800: "week"}


class Series:
    """Tallies by slots of time; when there are too many, slots become wider. The order of events does not matter."""

    def __init__(self) -> None:
        self.width_seconds = WIDTHS_SECONDS[0]
        self._slots: dict[int, Tally] = {}

    def at(self, time_seconds: float) -> Tally:
        """Return the tally of the slot that contains a time, in epoch seconds."""
        slot = int(time_seconds // self.width_seconds)
        if slot not in self._slots:
            known = (slot, *self._slots)
            if max(known) - min(known) >= MOST_SLOTS:
                self._widen()
                return self.at(time_seconds)
            self._slots[slot] = Tally()
        return self._slots[slot]

    def slots(self) -> list[tuple[datetime, Tally]]:
        """Return every slot from the first event to the last, with its start in UTC."""
        numbers = range(min(self._slots), max(self._slots) + 1) if self._slots else ()
        starts = [datetime.fromtimestamp(n * self.width_seconds, timezone.utc) for n in numbers]
        return [(start, self._slots.get(n, Tally())) for start, n in zip(starts, numbers, strict=True)]

    @property
    def width(self) -> str:
        """The width of a slot in words."""
        return NAMES.get(self.width_seconds) or f"{self.width_seconds // 604_800} weeks"

    def _widen(self) -> None:
        width = next((w for w in WIDTHS_SECONDS if w > self.width_seconds), 2 * self.width_seconds)
        ratio, narrow = width // self.width_seconds, self._slots
        self.width_seconds, self._slots = width, {}
        for slot, tally in narrow.items():
            self._slots[slot // ratio] = self._slots.get(slot // ratio, Tally()) + tally


MOST_NAMES = 5_000
"""Models, teams and steps of one table; further ones are counted together: callers choose names."""
OTHERS = "all others"


@dataclass(slots=True)
class Figures:
    """Everything that the page shows.

    Attributes:
        events: lines that are events.
        unreadable: lines that are not.
        first_seconds: time of the first event, in epoch seconds; None without one.
        last_seconds: time of the last.
        total: sums over all events.
        by_time: the same by slots of time.
        by_model: the same by the name that the caller requested.
        by_team: the same by the team's alias, or its id.
        ends: the number of requests with each outcome, by mode and decision.
        notable: how often each rarer event happened, by its name.
        step_times: how often each step changed a request.
        step_tokens: the provider tokens that each removed.
        largest: which sessions are shown.
    """

    events: int = 0
    unreadable: int = 0
    first_seconds: float | None = None
    last_seconds: float | None = None
    total: Tally = field(default_factory=Tally)
    by_time: Series = field(default_factory=Series)
    by_model: dict[str, Tally] = field(default_factory=dict)
    by_team: dict[str, Tally] = field(default_factory=dict)
    ends: Counter[tuple[str, str]] = field(default_factory=Counter)
    notable: Counter[str] = field(default_factory=Counter)
    step_times: Counter[str] = field(default_factory=Counter)
    step_tokens: Counter[str] = field(default_factory=Counter)
    largest: Largest = field(default_factory=Largest)

    def count(self, event: Event | None) -> None:
        """Add one event, None for a line that is none."""
        if event is None:
            self.unreadable += 1
        elif not isinstance(event, (DecisionEvent, OverflowEvent, AnswerEvent, FailureEvent)):
            self.events += 1
            self.notable[event.name] += 1
        elif not 0 <= event.time_seconds < LATEST_SECONDS:
            self.unreadable += 1
        else:
            self.events += 1
            self._count(event)

    def _count(self, event: DecisionEvent | Counted) -> None:
        at = event.time_seconds
        self.first_seconds = at if self.first_seconds is None else min(at, self.first_seconds)
        self.last_seconds = at if self.last_seconds is None else max(at, self.last_seconds)
        if isinstance(event, DecisionEvent):
            self._count_decision(event)
            if not names_for("column", event.__class__):
                return
        elif not isinstance(event, OverflowEvent):
            self.ends[event.mode, event.decision] += 1
        self.total.count(event)
        self.by_time.at(at).count(event)
        for tallies, name in (
            (self.by_model, event.call.model_group or event.call.model),
            (self.by_team, event.call.team_alias or event.call.team_id),
        ):
            shown = name if name in tallies or len(tallies) < MOST_NAMES else OTHERS
            tallies.setdefault(shown, Tally()).count(event)

    def _count_decision(self, event: DecisionEvent) -> None:
        saved = (event.provider_tokens_before or 0) - (event.provider_tokens_after or 0)
        for step in all_steps(event.steps, saved) if event.steps else ():
            if step.name in self.step_times or len(self.step_times) < MOST_NAMES:
                self.step_times[step.name] += 1
                self.step_tokens[step.name] += step.tokens_saved
        self.largest.note(event)
