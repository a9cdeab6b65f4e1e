"""Charts over time: bars with their positions, and words."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime

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


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart of bars, the layers upon each other: their words, the class of their colour, and a value for each slot.

    `times` has each slot's time in words: in full, and short for the axis.
    """

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
        shown = []
        for slot, (time, _) in enumerate(self.times):
            shown.append(f"{time}: {', '.join(f'{short(values[slot])} {label}' for label, _, values in self.layers)}")
        return shown


def charts(series: Series) -> list[Chart]:
    """Return the charts of savings and of requests that are too long; empty charts are left out."""
    slots = series.slots()
    times = [_time(start, series.width_seconds) for start, _ in slots]
    found = []
    for title, layers in DRAWN.items():
        drawn = [
            (words, style, [max(0, by_mode[mode][name]) for _, by_mode in slots]) for words, style, mode, name in layers
        ]
        if shown := [layer for layer in drawn if any(layer[2])]:
            found.append(Chart(title, shown, times))
    return found


def _time(start: datetime, width_seconds: int) -> tuple[str, str]:
    """Return the time of a slot; the axis shows only the day if it has several days, and only the hour below that."""
    day = f"{start.day} {start:%b}"
    if width_seconds >= DAY_SECONDS:
        return day, day
    return f"{day} {start:%H:%M}", day if width_seconds > HOUR_SECONDS else f"{start:%H:%M}"
