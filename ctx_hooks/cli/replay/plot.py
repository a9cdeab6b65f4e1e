"""The prompts of the largest sessions, request by request, as an SVG that needs nothing else."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from ctx_hooks.cli.replay.bills import SessionBills
from ctx_hooks.cli.report.numbers import nice, short

MOST_PANELS = 4
"""Sessions that are drawn, those with the largest prompts."""
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 860, 200, 64, 848, 34, 34
"""Of a panel in pixels: its size, and where the drawing begins and ends in it."""
LEGEND = 30
MARGIN = 1.1
"""Of the scale above the window and the largest prompt that is sent."""
MOST_POINTS = 800
"""More than one a pixel is not seen; of several requests the largest prompt is drawn."""
COLOURS = ("#8a8f98", "#1f6feb", "#d9480f", "#2b8a3e", "#9c36b5", "#b08900")
"""Without the plugin, and the ways in turn; told apart in grey as well by the order of the legend."""
STYLE = "text{font:12px system-ui,sans-serif;fill:#333}.axis{stroke:#bbb}.window{stroke:#c92a2a;stroke-dasharray:6 4}"


def plot(sessions: Sequence[SessionBills], names: Sequence[str]) -> str:
    """Return the drawing.

    Args:
        sessions: of which the largest are drawn.
        names: of the lines: without the plugin, and each way.
    """
    shown = sorted((s for s in sessions if s.sizes[0]), key=lambda s: -max(map(max, s.sizes)))[:MOST_PANELS]
    height = LEGEND + HEIGHT * max(1, len(shown))
    panels = "".join(
        f'<g transform="translate(0 {LEGEND + n * HEIGHT})">{_panel(session)}</g>' for n, session in enumerate(shown)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
        f'role="img"><title>Prompt tokens, request by request</title><style>{STYLE}</style>'
        f'<rect width="100%" height="100%" fill="#fff"/>{_legend(names)}{panels}</svg>\n'
    )


def _legend(names: Sequence[str]) -> str:
    drawn, x = "", LEFT
    for n, name in enumerate([*names, "window"]):
        style = 'class="window"' if n == len(names) else f'stroke="{_colour(n)}" stroke-width="2"'
        drawn += f'<line {style} x1="{x}" x2="{x + 18}" y1="16" y2="16"/><text x="{x + 24}" y="20">{escape(name)}</text>'
        x += 44 + 7 * len(name)
    return drawn


def _panel(session: SessionBills) -> str:
    """Return the drawing of a session; prompts far above the window leave it at its upper edge."""
    most = nice(MARGIN * max(_shown_window(session), *map(max, session.sizes[1:])))
    count = len(session.sizes[0])
    title = escape(f"{session.name}: prompt tokens of {count:,} requests, {session.model}")
    lines = "".join(
        f'<polyline fill="none" stroke="{_colour(n)}" stroke-width="1.5" points="{_points(sizes, most)}"/>'
        for n, sizes in enumerate(session.sizes)
    )
    window = f'<line class="window" {_level(session.window_tokens, most)}/>' if _shown_window(session) else ""
    ticks = "".join(
        f'<line class="axis" {_level(value, most)}/><text x="{LEFT - 6}" y="{_y(value, most) + 4:.1f}" '
        f'text-anchor="end">{short(value)}</text>'
        for value in (0, most / 2, most)
    )
    y = HEIGHT - 12
    ends = f'<text x="{LEFT}" y="{y}">1</text><text x="{RIGHT}" y="{y}" text-anchor="end">{count:,}</text>'
    box = f'x="{LEFT}" y="{TOP}" width="{RIGHT - LEFT}" height="{HEIGHT - TOP - BOTTOM}"'
    clipped = f'<svg {box} viewBox="{LEFT} {TOP} {RIGHT - LEFT} {HEIGHT - TOP - BOTTOM}">{lines}</svg>'
    return f'<text x="{LEFT}" y="22">{title}</text>{ticks}{clipped}{window}{ends}'


def _shown_window(session: SessionBills) -> int:
    """Return the window where it is near enough to the prompts to be drawn, else 0."""
    return session.window_tokens if session.window_tokens <= 2 * max(map(max, session.sizes)) else 0


def _points(sizes: Sequence[int], most: float) -> str:
    each = max(1, -(-len(sizes) // MOST_POINTS))
    drawn = [(i, max(sizes[i : i + each])) for i in range(0, len(sizes), each)]
    span = max(1, len(sizes) - 1)
    return " ".join(f"{LEFT + (RIGHT - LEFT) * i / span:.1f},{_y(size, most):.1f}" for i, size in drawn)


def _level(value: float, most: float) -> str:
    return f'x1="{LEFT}" x2="{RIGHT}" y1="{_y(value, most):.1f}" y2="{_y(value, most):.1f}"'


def _y(value: float, most: float) -> float:
    return TOP + (HEIGHT - TOP - BOTTOM) * (1 - value / most)


def _colour(place: int) -> str:
    return COLOURS[0] if not place else COLOURS[1 + (place - 1) % (len(COLOURS) - 1)]
