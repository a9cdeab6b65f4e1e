"""Charts over time as inline SVG; their words are HTML, so that they have one size on every screen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

from ctx_hooks.cli.report.numbers import nice

WIDTH = 10
"""Width of a slot in the units of the drawing, which is stretched to the width of the page."""
GAP = 2
MOST_TIMES = 4
"""Named besides the first: more would run into each other."""
HEIGHT = 100


@dataclass(frozen=True, slots=True)
class Layer:
    """One kind of bar.

    Attributes:
        label: what it is, for the legend.
        style: the class of its colour.
        values: a value for each slot, None where there is none; what is below zero hangs under the axis.
    """

    label: str
    style: str
    values: Sequence[float | None]


@dataclass(frozen=True, slots=True)
class Scale:
    """The values at the upper and the lower edge of a chart."""

    most: float
    least: float

    def y(self, value: float) -> float:
        """Return where a value is, from the upper edge."""
        return HEIGHT * (self.most - value) / (self.most - self.least)

    @property
    def ticks(self) -> tuple[float, ...]:
        """The values that have a line."""
        return (self.most, 0.0, self.least) if self.least else (self.most, self.most / 2, 0.0)


@dataclass(frozen=True, slots=True)
class Slot:
    """The time of a slot in words.

    Attributes:
        name: the time in full.
        mark: the same under the axis, where it has to be short.
    """

    name: str
    mark: str


def bars(title: str, layers: Sequence[Layer], slots: Sequence[Slot], show: Callable[[float], str], most: float = 0.0) -> str:
    """Return a chart of bars, the layers upon each other.

    Args:
        title: what it shows.
        layers: the kinds of bars.
        slots: the time of each slot.
        show: how a value is written.
        most: the value at the upper edge; 0 for what the values need.
    """
    stacks = [[layer.values[n] or 0.0 for layer in layers] for n in range(len(slots))]
    highest = max(sum(v for v in stack if v > 0) for stack in stacks)
    lowest = min(sum(v for v in stack if v < 0) for stack in stacks)
    scale = Scale(most or nice(max(highest, -lowest / 4)), -nice(max(-lowest, highest / 4)) if lowest < 0 else 0.0)
    drawn = "".join(_stack(n, stack, layers, scale) for n, stack in enumerate(stacks))
    hints = "".join(_hint(n, _told(slot.name, n, layers, show)) for n, slot in enumerate(slots))
    lines = "".join(_line(tick, scale.y(tick), WIDTH * len(slots)) for tick in scale.ticks)
    svg = (
        f'<svg viewBox="0 0 {WIDTH * len(slots)} {HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-label="{escape(title)}">{lines}{drawn}{hints}</svg>'
    )
    return (
        f'<figure class="chart"><figcaption><h3>{escape(title)}</h3>{_legend(layers)}</figcaption>'
        f'<div class="plot">{_y_axis(scale, show)}{svg}</div>{_x_axis(slots)}</figure>'
    )


def _line(value: float, y: float, width: int) -> str:
    return f'<line class="{"grid" if value else "axis"}" x2="{width}" y1="{y:.2f}" y2="{y:.2f}"/>'


def _stack(slot: int, stack: Sequence[float], layers: Sequence[Layer], scale: Scale) -> str:
    drawn, above, below = "", 0.0, 0.0
    for value, layer in zip(stack, layers, strict=True):
        if not value:
            continue
        start = above if value > 0 else below
        upper, lower = scale.y(max(start, start + value)), scale.y(min(start, start + value))
        above, below = above + max(value, 0.0), below + min(value, 0.0)
        drawn += (
            f'<rect class="{layer.style}" x="{slot * WIDTH + GAP / 2:g}" y="{upper:.2f}" width="{WIDTH - GAP}" '
            f'height="{lower - upper:.2f}"/>'
        )
    return drawn


def _hint(slot: int, text: str) -> str:
    """Return a part of the chart that shows its text under the pointer."""
    return f'<rect class="hint" x="{slot * WIDTH}" width="{WIDTH}" height="{HEIGHT}"><title>{escape(text)}</title></rect>'


def _told(slot: str, n: int, layers: Sequence[Layer], show: Callable[[float], str]) -> str:
    values = ((layer.label, layer.values[n]) for layer in layers)
    return f"{slot}: " + (", ".join(f"{show(v)} {label}" for label, v in values if v is not None) or "none")


def _legend(layers: Sequence[Layer]) -> str:
    keys = (f'<span><i class="{layer.style}"></i>{escape(layer.label)}</span>' for layer in layers)
    return f'<p class="legend">{"".join(keys)}</p>'


def _y_axis(scale: Scale, show: Callable[[float], str]) -> str:
    ticks = (f'<span style="top:{scale.y(tick):.2f}%">{escape(show(tick))}</span>' for tick in scale.ticks)
    return f'<div class="y" aria-hidden="true">{"".join(ticks)}</div>'


def _x_axis(slots: Sequence[Slot]) -> str:
    """Return the times at the edges and between them; a narrow screen leaves out every second one."""
    last = len(slots) - 1
    places = sorted({round(part * last / MOST_TIMES) for part in range(MOST_TIMES + 1)})
    named = "".join(
        _place(slots[n].mark, (n + 0.5) / len(slots), wide=i % 2 == 1 and n != last) for i, n in enumerate(places)
    )
    return f'<div class="x" aria-hidden="true">{named}</div>'


def _place(text: str, fraction: float, *, wide: bool) -> str:
    return f'<span{" class=wide" if wide else ""} style="left:{100 * fraction:.2f}%">{escape(text)}</span>'
