"""The charts of the report."""

from __future__ import annotations

from datetime import datetime

from ctx_hooks.cli.report.charts import Layer, bars
from ctx_hooks.cli.report.counts import Counts
from ctx_hooks.cli.report.numbers import dollars, percent, short
from ctx_hooks.cli.report.series import Series

DAY_SECONDS = 86_400


def over_time(series: Series) -> str:
    """Return the charts of savings, rescues, compactions and cache; one that would be empty is left out."""
    starts, tallies = zip(*series.slots(), strict=True)
    times = [_time(start, series.width_seconds) for start in starts]
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
            "Requests beyond the window",
            [
                Layer("rescued", "done", [c.rescued for c in done]),
                Layer("not retried", "bad", [c.not_retried for c in done]),
                Layer("refused, observed", "would", [c.refused for c in would]),
            ],
            times,
        ),
        _chart(
            "Requests sent compacted",
            [
                Layer("compacted", "done", [c.changed for c in done]),
                Layer("would have been", "would", [c.changed for c in would]),
            ],
            times,
        ),
        _chart("Share of billed input from prompt caches", [_cache(done, would)], times, show=percent, most=1.0),
    ]
    return f'<div class="charts">{"".join(charts)}</div>'


def _chart(title: str, layers: list[Layer], times: list[str], show: object = short, most: float = 0.0) -> str:
    shown = [layer for layer in layers if any(layer.values)]
    return bars(title, shown, times, show, most) if shown else ""  # type: ignore[arg-type]


def _cache(done: list[Counts], would: list[Counts]) -> Layer:
    """Return the share of both modes together: providers bill them alike."""
    both = [Counts() for _ in done]
    for counts, first, second in zip(both, done, would, strict=True):
        counts.add(first)
        counts.add(second)
    return Layer("cached", "done", [counts.cache_fraction for counts in both])


def _time(start: datetime, width_seconds: int) -> str:
    return f"{start:%-d %b}" if width_seconds >= DAY_SECONDS else f"{start:%-d %b %H:%M}"
