"""Charts over time, with the positions of their bars and words."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from ctx_hooks.cli.rendering import nice, short
from ctx_hooks.cli.report.figures import Series

DAY_SECONDS = 86_400
HOUR_SECONDS = 3_600


class Layer(NamedTuple):
    """One kind of bar: its label in the legend, the class of its colour, and a value for each slot of time."""

    label: str
    style: str
    values: Sequence[float]


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart of bars, the layers upon each other.

    Attributes:
        times: the time of each slot in words: in full, and as short as the axis needs it.
    """

    title: str
    layers: Sequence[Layer]
    times: Sequence[tuple[str, str]]

    @property
    def most(self) -> float:
        """The value at the upper edge."""
        return nice(max(map(sum, zip(*(layer.values for layer in self.layers), strict=True))))

    def bars(self) -> Iterator[tuple[str, int, float, float]]:
        """Yield each bar: the class of its colour, its slot, its upper edge and its height in percent of the chart's."""
        below = [0.0] * len(self.times)
        for layer in self.layers:
            for slot, value in enumerate(layer.values):
                below[slot] += value
                if value:
                    yield layer.style, slot, 100 - 100 * below[slot] / self.most, 100 * value / self.most

    def hint(self, slot: int) -> str:
        """Return the values of a slot in words."""
        return ", ".join(f"{short(layer.values[slot])} {layer.label}" for layer in self.layers)


def charts(series: Series) -> list[Chart]:
    """Return the charts of savings, and of the outcomes of requests beyond the window; empty charts are left out."""
    times = [_time(start, series.width_seconds) for start, _ in series.slots()]
    done, would = ([getattr(tally, mode) for _, tally in series.slots()] for mode in ("done", "would"))
    drawn = {
        "Input tokens saved": (
            Layer("saved", "done", [max(0, counts["tokens_saved"]) for counts in done]),
            Layer("would have been saved", "would", [max(0, counts["tokens_saved"]) for counts in would]),
        ),
        "Beyond the window": (
            Layer("answered", "done", [counts["beyond_window"] for counts in done]),
            Layer("failed", "bad", [counts["failed"] for counts in done]),
            Layer("failed, observed", "would", [counts["failed"] for counts in would]),
        ),
    }
    shown = {title: [layer for layer in layers if any(layer.values)] for title, layers in drawn.items()}
    return [Chart(title, layers, times) for title, layers in shown.items() if layers]


def _time(start: datetime, width_seconds: int) -> tuple[str, str]:
    """Return the time of a slot; the axis shows only the day if it has several days, and only the hour below that."""
    day = f"{start.day} {start:%b}"
    if width_seconds >= DAY_SECONDS:
        return day, day
    return f"{day} {start:%H:%M}", day if width_seconds > HOUR_SECONDS else f"{start:%H:%M}"
