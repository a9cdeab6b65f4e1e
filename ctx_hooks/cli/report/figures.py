"""The figures and charts of the report and of the live page, from events one by one, in bounded memory."""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import TypeAlias

from ctx_hooks.cli.rendering import all_steps, nice, short
from ctx_hooks.cli.report.sessions import LATEST_SECONDS, Largest
from ctx_hooks.telemetry.events import AnswerEvent, DecisionEvent, FailureEvent, RequestEvent
from ctx_hooks.telemetry.listeners import Event

SHORTER = ("compressed", "retried")
TOO_LONG = ("over_budget", "fallback", "failed", *SHORTER)
"""The outcomes of requests that are too long for their model."""


class Counts(dict[str, float]):
    """Sums over requests by name, 0 for a name that was never counted.

    - `requests`, `answers`, `too_long`, `shorter`, and each outcome by its own name; `rereads`;
    - `tokens_saved`, `input_tokens`, `cached_tokens`: of the bills, in provider tokens;
    - `dollars_saved`: of the requests that saved; `dollars_spent`: of the `dear` requests, which cost more, below zero;
      `unpriced`: shorter requests whose dollars are not known.
    """

    def __missing__(self, name: str) -> float:
        return 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts({name: self[name] + other[name] for name in {**self, **other}})

    @property
    def dollars(self) -> float:
        """The total saved."""
        return self["dollars_saved"] + self["dollars_spent"]

    @property
    def cache_fraction(self) -> float | None:
        """The share of billed input that the prompt cache served; None if none was billed."""
        return self["cached_tokens"] / self["input_tokens"] if self["input_tokens"] else None

    def count(self, event: AnswerEvent | FailureEvent) -> None:
        """Add a request by its end."""
        is_shorter = event.decision in SHORTER
        self["requests"] += 1
        self[event.decision] += 1
        self["too_long"] += event.decision in TOO_LONG
        self["shorter"] += is_shorter
        if isinstance(event, FailureEvent):
            return
        dollars = event.dollars_saved or 0.0
        self["answers"] += 1
        self["rereads"] += sum(event.rereads.values())
        self["tokens_saved"] += event.provider_tokens_saved or 0
        self["unpriced"] += is_shorter and event.dollars_saved is None
        self["dollars_saved"] += max(0.0, dollars)
        self["dollars_spent"] += min(0.0, dollars)
        self["dear"] += dollars < 0
        if event.billed is not None:
            self["input_tokens"] += event.billed.input_tokens
            self["cached_tokens"] += event.billed.cached_tokens


HOUR_SECONDS, DAY_SECONDS = 3_600, 86_400
WIDTHS_SECONDS = {
    60: "minute",
    300: "5 minutes",
    900: "15 minutes",
    HOUR_SECONDS: "hour",
    14_400: "4 hours",
    DAY_SECONDS: "day",
    604_800: "week",
}
"""Widths of a slot, each a multiple of the one before; weeks are doubled as often as needed."""
MOST_SLOTS = 90
"""Bars of 4 pixels on a phone."""
Slots: TypeAlias = dict[str, Counts]


class Series:
    """Counts by slots of time and mode; when there are too many, slots become wider. The order of events does not matter."""

    def __init__(self) -> None:
        self.width_seconds = 60
        self._slots: dict[int, Slots] = {}

    def at(self, time_seconds: float) -> Slots:
        """Return the counts of the slot that contains a time, in epoch seconds."""
        slot = int(time_seconds // self.width_seconds)
        known = (slot, *self._slots)
        if slot not in self._slots and max(known) - min(known) >= MOST_SLOTS:
            self._widen()
            return self.at(time_seconds)
        return self._slots.setdefault(slot, _by_mode())

    def slots(self) -> list[tuple[datetime, Slots]]:
        """Return every slot from the first event to the last, with its start in UTC."""
        numbers = range(min(self._slots), max(self._slots) + 1) if self._slots else ()
        start = (datetime.fromtimestamp(n * self.width_seconds, timezone.utc) for n in numbers)
        return [(begin, self._slots.get(n, _by_mode())) for begin, n in zip(start, numbers, strict=True)]

    @property
    def width(self) -> str:
        """The width of a slot in words."""
        return WIDTHS_SECONDS.get(self.width_seconds) or f"{self.width_seconds // 604_800} weeks"

    def _widen(self) -> None:
        width = next((w for w in WIDTHS_SECONDS if w > self.width_seconds), 2 * self.width_seconds)
        ratio, narrow = width // self.width_seconds, self._slots
        self.width_seconds, self._slots = width, {}
        for slot, counts in narrow.items():
            wide = self._slots.setdefault(slot // ratio, _by_mode())
            self._slots[slot // ratio] = {mode: wide[mode] + counts[mode] for mode in wide}


def _by_mode() -> Slots:
    return {"enforce": Counts(), "observe": Counts()}


MOST_NAMES = 5_000
"""Models or teams of one table; further ones are counted together: callers choose names."""
OTHERS = "all others"


@dataclass(slots=True)
class Sums:
    """The sums over the requests of one mode: all, and by the requested model group and by team."""

    total: Counts = field(default_factory=Counts)
    by_group: dict[str, Counts] = field(default_factory=dict)
    by_team: dict[str, Counts] = field(default_factory=dict)

    def count(self, event: AnswerEvent | FailureEvent) -> None:
        """Add a request by its end."""
        self.total.count(event)
        call = event.call
        for counts, name in (
            (self.by_group, call.model_group or call.model),
            (self.by_team, call.team_alias or call.team_id),
        ):
            shown = name if name in counts or len(counts) < MOST_NAMES else OTHERS
            counts.setdefault(shown, Counts()).count(event)


@dataclass(slots=True)
class Figures:
    """Everything that the page shows.

    `done` has the sums of enforced requests, `would` those of observed ones as they would have been, and `by_time` both.
    `notable` has other events by name; `step_times` and `step_tokens` each step's requests and removed tokens.
    """

    events: int = 0
    unreadable: int = 0
    first_seconds: float | None = None
    last_seconds: float | None = None
    done: Sums = field(default_factory=Sums)
    would: Sums = field(default_factory=Sums)
    by_time: Series = field(default_factory=Series)
    notable: Counter[str] = field(default_factory=Counter)
    step_times: Counter[str] = field(default_factory=Counter)
    step_tokens: Counter[str] = field(default_factory=Counter)
    largest: Largest = field(default_factory=Largest)

    def count(self, event: Event | RequestEvent | None) -> None:
        """Add one event, None for a line that is none."""
        if event is None or (isinstance(event, RequestEvent) and not 0 <= event.time_seconds < LATEST_SECONDS):
            self.unreadable += 1
            return
        self.events += 1
        if isinstance(event, RequestEvent):
            at = event.time_seconds
            self.first_seconds = min(at, self.first_seconds or at)
            self.last_seconds = max(at, self.last_seconds or at)
        if isinstance(event, (AnswerEvent, FailureEvent)):
            mode = "enforce" if event.mode == "enforce" else "observe"
            (self.done if mode == "enforce" else self.would).count(event)
            self.by_time.at(event.time_seconds)[mode].count(event)
        elif isinstance(event, DecisionEvent):
            saved = (event.provider_tokens_before or 0) - (event.provider_tokens_after or 0)
            for step in all_steps(event.steps, saved):
                self.step_times[step.name] += 1
                self.step_tokens[step.name] += step.tokens_saved
            self.largest.note(event)
        else:
            self.notable[event.name] += 1


DRAWN = {
    "Savings of input tokens": (
        ("saved", "done", "enforce", "tokens_saved"),
        ("would have been saved", "would", "observe", "tokens_saved"),
    ),
    "Too long for their model": (
        ("answered shorter", "done", "enforce", "shorter"),
        ("would have been answered shorter", "would", "observe", "shorter"),
        ("went to a fallback", "other", "enforce", "fallback"),
        ("failed", "bad", "enforce", "failed"),
        ("went to a fallback, observed", "other", "observe", "fallback"),
        ("failed, observed", "bad", "observe", "failed"),
    ),
}
"""The layers of each chart: its words, the class of its colour, a mode and a name of `Counts`."""


@dataclass(frozen=True, slots=True)
class Chart:
    """Bars in layers: words, a class of colour, and a value for each slot, whose `times` are in full and for the axis."""

    title: str
    layers: Sequence[tuple[str, str, Sequence[float]]]
    times: Sequence[tuple[str, str]]

    @property
    def most(self) -> float:
        """The value at the upper edge."""
        return nice(max(map(sum, zip(*(values for _, _, values in self.layers), strict=True))))

    def bars(self) -> Iterator[tuple[str, int, float, float]]:
        """Yield each bar: the class of its colour, its slot, its upper edge and its height in percent of the chart's."""
        below, most = [0.0] * len(self.times), self.most
        for _, style, values in self.layers:
            for slot, value in enumerate(values):
                below[slot] += value
                if value:
                    yield style, slot, 100 - 100 * below[slot] / most, 100 * value / most

    def hints(self) -> list[str]:
        """Return the values of each slot in words."""
        return [
            f"{time}: {', '.join(f'{short(values[slot])} {label}' for label, _, values in self.layers)}"
            for slot, (time, _) in enumerate(self.times)
        ]


def charts(series: Series) -> list[Chart]:
    """Return the charts of savings and of requests that are too long; empty charts are left out."""
    slots, width, found = series.slots(), series.width_seconds, []
    days = [f"{start.day} {start:%b}" for start, _ in slots]
    clocks = ["" if width >= DAY_SECONDS else f" {start:%H:%M}" for start, _ in slots]
    # The axis shows only the day if it has several days, and only the hour below that.
    times = [(day + at, day if width > HOUR_SECONDS else at.strip()) for day, at in zip(days, clocks, strict=True)]
    for title, layers in DRAWN.items():
        drawn = [
            (words, style, [max(0, by_mode[mode][name]) for _, by_mode in slots]) for words, style, mode, name in layers
        ]
        if shown := [layer for layer in drawn if any(layer[2])]:
            found.append(Chart(title, shown, times))
    return found
