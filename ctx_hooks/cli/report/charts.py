"""Charts over time: which there are, and where the bars, lines and words of each are."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from ctx_hooks.cli.rendering import dollars, nice, percent, short
from ctx_hooks.cli.report.figures import Counts, Series

DAY_SECONDS = 86_400
HOUR_SECONDS = 3_600
MOST_TIMES = 4
"""Named besides the first: more would run into each other."""


class Layer(NamedTuple):
    """One kind of bar: its label in the legend, the class of its colour, and a value for each slot, None for none.

    What is below zero hangs under the axis.
    """

    label: str
    style: str
    values: Sequence[float | None]


class Bar(NamedTuple):
    """One bar: the class of its colour, its slot, its upper edge and its height in percent of the chart's."""

    style: str
    slot: int
    y: float
    height: float


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart of bars, the layers upon each other.

    Attributes:
        times: the time of each slot in words: in full, and as short as the axis needs it.
        show: how a value is written.
        most: the value at the upper edge.
        least: the value at the lower edge, 0 or below.
    """

    title: str
    layers: Sequence[Layer]
    times: Sequence[tuple[str, str]]
    show: Callable[[float], str]
    most: float
    least: float

    def y(self, value: float) -> float:
        """Return where a value is, in percent from the upper edge."""
        return 100 * (self.most - value) / (self.most - self.least)

    @property
    def ticks(self) -> tuple[float, ...]:
        """The values that have a line."""
        return (self.most, 0.0, self.least) if self.least else (self.most, self.most / 2, 0.0)

    def bars(self) -> Iterator[Bar]:
        """Yield the bars of each slot, from the axis outwards."""
        for slot in range(len(self.times)):
            above = below = 0.0
            for layer in self.layers:
                value = layer.values[slot] or 0.0
                if value > 0:
                    above += value
                    yield Bar(layer.style, slot, self.y(above), self.y(0) - self.y(value))
                elif value < 0:
                    yield Bar(layer.style, slot, self.y(below), self.y(value) - self.y(0))
                    below += value

    def hint(self, slot: int) -> str:
        """Return the values of a slot in words."""
        values = ((layer.label, layer.values[slot]) for layer in self.layers)
        return ", ".join(f"{self.show(value)} {label}" for label, value in values if value is not None) or "none"

    def marks(self) -> Iterator[tuple[int, bool]]:
        """Yield the slots named under the axis, at its edges and between; whether a narrow screen leaves the name out."""
        last = len(self.times) - 1
        for i, slot in enumerate(sorted({round(part * last / MOST_TIMES) for part in range(MOST_TIMES + 1)})):
            yield slot, i % 2 == 1 and slot != last


def charts(series: Series) -> list[Chart]:
    """Return the charts of what was saved, answered, changed and cached; one that would be empty is left out."""
    times = [_time(start, series.width_seconds) for start, _ in series.slots()]
    tallies = [tally for _, tally in series.slots()]

    def layer(label: str, style: str, value: Callable[[Counts], float]) -> Layer:
        return Layer(label, style, [value(tally.would if style == "would" else tally.done) for tally in tallies])

    saved = (
        layer("saved", "done", lambda c: c["tokens_saved"]),
        layer("would have been saved", "would", lambda c: c["tokens_saved"]),
    )
    balance = (
        layer("saved", "done", lambda c: c["dollars_saved"]),
        layer("for rewriting caches", "bad", lambda c: c["dollars_spent"]),
    )
    beyond = (
        layer("answered", "done", lambda c: c["beyond_window"]),
        layer("failed", "bad", lambda c: c["failed"]),
        layer("failed, observed", "would", lambda c: c["failed"]),
    )
    changed = layer("changed", "done", lambda c: c["changed"]), layer("would have been", "would", lambda c: c["changed"])
    cached = Layer("cached", "done", [tally.both.cache_fraction for tally in tallies])
    drawn = (
        _chart("Input tokens saved", saved, times),
        _chart("Dollars", balance, times, dollars),
        _chart("Beyond the window", beyond, times),
        _chart("Requests changed", changed, times),
        _chart("Share of billed input from prompt caches", (cached,), times, percent, most=1.0),
    )
    return [chart for chart in drawn if chart.layers]


def _chart(
    title: str,
    layers: Sequence[Layer],
    times: Sequence[tuple[str, str]],
    show: Callable[[float], str] = short,
    most: float = 0.0,
) -> Chart:
    """Return a chart of the layers that have a value; its upper edge is `most`, 0 for what the values need."""
    shown = [layer for layer in layers if any(layer.values)]
    stacks = [[layer.values[slot] or 0.0 for layer in shown] for slot in range(len(times))]
    highest = max(sum(value for value in stack if value > 0) for stack in stacks)
    lowest = min(sum(value for value in stack if value < 0) for stack in stacks)
    least = -nice(max(-lowest, highest / 4)) if lowest < 0 else 0.0
    return Chart(title, shown, times, show, most or nice(max(highest, -lowest / 4)), least)


def _time(start: datetime, width_seconds: int) -> tuple[str, str]:
    """Return the time of a slot; the axis shows only the day if it has several days, and only the hour below that."""
    day = f"{start.day} {start:%b}"
    if width_seconds >= DAY_SECONDS:
        return day, day
    return f"{day} {start:%H:%M}", day if width_seconds > HOUR_SECONDS else f"{start:%H:%M}"
