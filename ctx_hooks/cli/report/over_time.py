"""The charts of the report."""

from __future__ import annotations

from datetime import datetime

from ctx_hooks.cli.report.charts import Layer, Slot, bars
from ctx_hooks.cli.report.counts import Counts
from ctx_hooks.cli.report.numbers import dollars, percent, short
from ctx_hooks.cli.report.series import Series

DAY_SECONDS = 86_400
HOUR_SECONDS = 3_600


def over_time(series: Series) -> str:
    """Return the charts of what was saved, answered, changed and cached; one that would be empty is left out."""
    starts, tallies = zip(*series.slots(), strict=True)
    times = [_slot(start, series.width_seconds) for start in starts]
    done, would = [t.done for t in tallies], [t.would for t in tallies]
    charts = [
        _chart(
            "Input tokens saved",
            [
                Layer("saved", "done", [c.tokens_saved for c in done]),
                Layer("would have been saved", "would", [c.tokens_saved for c in would]),
            ],
            times,
        ),
        _chart(
            "Dollars",
            [
                Layer("saved", "done", [c.dollars_saved for c in done]),
                Layer("for rewriting caches", "bad", [c.dollars_spent for c in done]),
            ],
            times,
            show=dollars,
        ),
        _chart(
            "Beyond the window",
            [
                Layer("answered", "done", [c.beyond_window for c in done]),
                Layer("failed", "bad", [c.failed for c in done]),
                Layer("failed, observed", "would", [c.failed for c in would]),
            ],
            times,
        ),
        _chart(
            "Requests changed",
            [
                Layer("changed", "done", [c.changed for c in done]),
                Layer("would have been", "would", [c.changed for c in would]),
            ],
            times,
        ),
        _chart("Share of billed input from prompt caches", [_cache(done, would)], times, show=percent, most=1.0),
    ]
    return f'<div class="charts">{"".join(charts)}</div>'


def _chart(title: str, layers: list[Layer], times: list[Slot], show: object = short, most: float = 0.0) -> str:
    shown = [layer for layer in layers if any(layer.values)]
    return bars(title, shown, times, show, most) if shown else ""  # type: ignore[arg-type]


def _cache(done: list[Counts], would: list[Counts]) -> Layer:
    """Return the share of both modes together: providers bill them alike."""
    return Layer("cached", "done", [d.together_with(w).cache_fraction for d, w in zip(done, would, strict=True)])


def _slot(start: datetime, width_seconds: int) -> Slot:
    """Return the time of a slot; the axis shows the day alone where it has several days, and the hour alone before that."""
    day = f"{start.day} {start:%b}"
    if width_seconds >= DAY_SECONDS:
        return Slot(day, day)
    return Slot(f"{day} {start:%H:%M}", day if width_seconds > HOUR_SECONDS else f"{start:%H:%M}")
