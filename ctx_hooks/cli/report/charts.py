"""Charts over time: bars with their positions, and words."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from ctx_hooks.cli.rendering import nice, short
from ctx_hooks.cli.report.figures import Series

DAY_SECONDS, HOUR_SECONDS = 86_400, 3_600
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
        ("failed, observed", "bad", "observe", "failed"),
    ),
}
"""The layers of each chart: its words, the class of its colour, a mode and a name of `Counts`."""


class Layer(NamedTuple):
    """One kind of bar: its label in the legend, the class of its colour, and a value for each slot of time."""

    label: str
    style: str
    values: Sequence[float]


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart of bars, the layers upon each other; `times` has each slot's in words: in full, and short for the axis."""

    title: str
    layers: Sequence[Layer]
    times: Sequence[tuple[str, str]]

    @property
    def most(self) -> float:
        """The value at the upper edge."""
        return nice(max(map(sum, zip(*(layer.values for layer in self.layers), strict=True))))

    def bars(self) -> Iterator[tuple[str, int, float, float]]:
        """Yield each bar: the class of its colour, its slot, its upper edge and its height in percent of the chart's."""
        below, most = [0.0] * len(self.times), self.most
        for layer in self.layers:
            for slot, value in enumerate(layer.values):
                below[slot] += value
                if value:
                    yield layer.style, slot, 100 - 100 * below[slot] / most, 100 * value / most

    def hints(self) -> list[str]:
        """Return the values of each slot in words."""
        shown = [
            [f"{short(value)} {layer.label}" for layer in self.layers for value in (layer.values[n],)]
            for n in range(len(self.times))
        ]
        return [f"{time}: {', '.join(words)}" for (time, _), words in zip(self.times, shown, strict=True)]


def charts(series: Series) -> list[Chart]:
    """Return the charts of savings and of requests that are too long; empty charts are left out."""
    slots = series.slots()
    times = [_time(start, series.width_seconds) for start, _ in slots]
    found = []
    for title, layers in DRAWN.items():
        drawn = [
            Layer(label, style, [max(0, counts[mode][name]) for _, counts in slots]) for label, style, mode, name in layers
        ]
        if shown := [layer for layer in drawn if any(layer.values)]:
            found.append(Chart(title, shown, times))
    return found


def _time(start: datetime, width_seconds: int) -> tuple[str, str]:
    """Return the time of a slot; the axis shows only the day if it has several days, and only the hour below that."""
    day = f"{start.day} {start:%b}"
    if width_seconds >= DAY_SECONDS:
        return day, day
    return f"{day} {start:%H:%M}", day if width_seconds > HOUR_SECONDS else f"{start:%H:%M}"
