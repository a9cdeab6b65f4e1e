"""The prompts of the largest sessions, request by request, as an SVG that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate, chain, cycle, islice

from ctx_hooks.cli.rendering import nice, render
from ctx_hooks.cli.replay.sessions import Session

MOST_PANELS = 4
"""Sessions that are drawn, those with the largest prompts."""
LEFT, RIGHT, TOP, BOTTOM = 64, 848, 34, 166
"""Where the drawing of a panel begins and ends in it, in pixels; `templates/replay.svg` has the same."""
MARGIN = 1.1
"""Of the scale above the window and the largest prompt that is sent."""
MOST_POINTS = 800
"""More than one a pixel is not seen; of several requests the largest prompt is drawn."""
COLOURS = ("#1f6feb", "#d9480f", "#2b8a3e", "#9c36b5", "#b08900")
"""Of the ways in turn; told apart in grey as well by the order of the legend."""
WITHOUT_COLOUR = "#8a8f98"


@dataclass(frozen=True, slots=True)
class Panel:
    """The drawing of a session; prompts far above the window leave it at its upper edge, which is at `most` tokens.

    `window_tokens` is 0 where the window is too far from the prompts to be drawn; `sizes` has the prompts of each line.
    """

    title: str
    requests: int
    window_tokens: int
    most: float
    sizes: Sequence[Sequence[int]]

    def y(self, tokens: float) -> float:
        """Return how far below the panel's upper edge a size is."""
        return TOP + (BOTTOM - TOP) * (1 - tokens / self.most)

    @property
    def lines(self) -> list[tuple[str, str]]:
        """The points of each line, and its colour."""
        return list(zip(map(self._points, self.sizes), _colours(len(self.sizes)), strict=True))

    def _points(self, sizes: Sequence[int]) -> str:
        each = max(1, -(-len(sizes) // MOST_POINTS))
        drawn = [(i, max(sizes[i : i + each])) for i in range(0, len(sizes), each)]
        span = max(1, len(sizes) - 1)
        return " ".join(f"{LEFT + (RIGHT - LEFT) * i / span:.1f},{self.y(size):.1f}" for i, size in drawn)


def plot(sessions: Sequence[Session], names: Sequence[str]) -> str:
    """Return the drawing of the largest sessions; the names are those of the lines: without the plugin, and each way."""
    drawn = ((session, [course.sizes for course in session.courses]) for session in sessions)
    shown = sorted(((s, sizes) for s, sizes in drawn if sizes[0]), key=lambda d: -max(map(max, d[1])))[:MOST_PANELS]
    places = accumulate((44 + 7 * len(name) for name in names), initial=LEFT)
    legend = zip(places, [*names, "window"], [*_colours(len(names)), ""], strict=True)
    return render("replay.svg", legend=legend, panels=[_panel(*each) for each in shown])


def _panel(session: Session, sizes: Sequence[Sequence[int]]) -> Panel:
    count = len(sizes[0])
    title = f"{session.name}: prompt tokens of {count:,} requests, {session.model}"
    window = session.window_tokens if session.window_tokens <= 2 * max(map(max, sizes)) else 0
    return Panel(title, count, window, nice(MARGIN * max(window, *map(max, sizes[1:]))), sizes)


def _colours(lines: int) -> list[str]:
    return list(islice(chain([WITHOUT_COLOUR], cycle(COLOURS)), lines))
