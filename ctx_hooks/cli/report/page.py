"""The report as one page of HTML: no script, nothing from elsewhere, and every name from an event escaped."""

from __future__ import annotations

from datetime import datetime, timezone
from html import escape

from ctx_hooks.cli.report.charts import Layer, Slot, bars
from ctx_hooks.cli.report.counts import Counts
from ctx_hooks.cli.report.figures import Figures, Series
from ctx_hooks.cli.report.numbers import dollars, percent, short, whole
from ctx_hooks.cli.report.style import STYLE
from ctx_hooks.cli.report.tables import by_name, largest_losses, phases, rare, steps

NOTES = """
<p>Tokens are the provider's. Saved are those that would have been billed as input without ctx_hooks, less those that were:
an estimate from the bill of what was sent. Dollars follow from the deployment's prices, with the provider's prompt cache as
it would have been without ctx_hooks; a compaction that rewrites the cache is a cost, below zero, in the request that makes
it.</p>
<p>A request beyond the window was answered though it exceeds its model's window. Without ctx_hooks it would have had no
answer and no bill, so it saves neither tokens nor dollars. Each request is counted once. Refusals are counted by attempt:
one request may have several.</p>
<p>Times are UTC. The times of phases are exact within 1 %. This page holds figures and names, no text of any message.</p>
"""


def page(figures: Figures) -> str:
    """Return the page."""
    title = (
        "What ctx_hooks did" if figures.total.done.answers or not _observes(figures) else "What ctx_hooks would have done"
    )
    return (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        '<meta name="color-scheme" content="light dark">'
        # Whatever a name holds, nothing is run and nothing is fetched.
        "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">"
        f"<title>{title}</title><style>{STYLE}</style></head>\n<body><main>\n"
        f'<header><h1>{title}</h1><p class="soft">{_period(figures)}</p>{_missing(figures)}</header>\n'
        + "\n".join(_sections(figures) if figures.events else ["<p>There are no events.</p>"])
        + f'\n<section class="notes">{NOTES}</section>\n</main></body></html>\n'
    )


def _sections(figures: Figures) -> list[str]:
    slots = figures.by_time.slots()
    observes = _observes(figures)
    sections = []
    if figures.total.done != Counts():
        sections.append(_done(figures.total.done))
    if observes:
        sections.append(_would(figures.total.would))
    if slots:
        sections.append(f"<h2>Over time, by {figures.by_time.width}</h2>{over_time(figures.by_time)}")
        names = (("Model", figures.by_model), ("Team", figures.by_team), ("Client", figures.by_client))
        sections.append("<h2>By model, team and client</h2>" + "".join(by_name(n, t, observes=observes) for n, t in names))
    sections.append(f'<h2>The work</h2><div class="columns">{phases(figures)}{steps(figures)}{rare(figures)}</div>')
    sections.append(largest_losses(figures))
    return sections


def _observes(figures: Figures) -> bool:
    return figures.total.would != Counts()


def _done(counts: Counts) -> str:
    without = counts.input_tokens + counts.tokens_saved
    saved = f"{percent(counts.tokens_saved / without)} of what would have been billed" if without > 0 else ""
    ends = f"{whole(counts.retried)} retried, {whole(counts.failed)} failed; {whole(counts.refused)} attempts refused"
    return _kpis(
        "",
        ("Input tokens saved", short(counts.tokens_saved), whole(counts.tokens_saved), saved),
        ("Dollars saved", dollars(counts.dollars), dollars(counts.dollars), _spent(counts, "saved")),
        ("Answered beyond the window", whole(counts.beyond_window), whole(counts.beyond_window), ends),
        _cache(counts),
    )


def _would(counts: Counts) -> str:
    changed = f"in {whole(counts.changed)} of {whole(counts.answers)} answered requests, all sent as they came"
    share = f"{percent(counts.tokens_saved / counts.input_tokens)} of what was billed, " if counts.input_tokens else ""
    refused = "a smaller one would have been sent" if counts.refused else ""
    spent = _spent(counts, "would have been saved")
    return "<h2>Observed: what would have been done</h2>" + _kpis(
        " would",
        ("Input tokens that would have been saved", short(counts.tokens_saved), whole(counts.tokens_saved), share + changed),
        ("Dollars that would have been saved", dollars(counts.dollars), dollars(counts.dollars), spent),
        ("Attempts refused as too long", whole(counts.refused), whole(counts.refused), refused),
        _cache(counts),
    )


def _spent(counts: Counts, saved: str) -> str:
    unpriced = f"; {whole(counts.unpriced)} requests without a price" if counts.unpriced else ""
    spent = f"<span>{dollars(counts.dollars_spent)}</span> for rewriting caches"
    return f"{dollars(counts.dollars_saved)} {saved}, {spent}{unpriced}"


def _cache(counts: Counts) -> tuple[str, str, str, str]:
    billed = f"of {short(counts.input_tokens)} billed input tokens, {whole(counts.answers)} answers"
    return "Read from prompt caches", percent(counts.cache_fraction), whole(counts.cached_tokens), billed


def _kpis(style: str, *each: tuple[str, str, str, str]) -> str:
    """Return figures in a row, each of its name, its short and its exact value, and what more there is to say."""
    cells = (
        f'<div><dt>{name}</dt><dd class="figure{" neg" if value.startswith("−") else ""}" title="{exact}">{value}</dd>'
        f'<dd class="more">{more}</dd></div>'
        for name, value, exact, more in each
    )
    return f'<dl class="kpis{style}">{"".join(cells)}</dl>'


def _period(figures: Figures) -> str:
    if figures.first_seconds is None or figures.last_seconds is None:
        return f"{whole(figures.events)} events"
    first, last = (datetime.fromtimestamp(s, timezone.utc) for s in (figures.first_seconds, figures.last_seconds))
    answers = figures.total.done.answers + figures.total.would.answers
    days = f"{first.day} {first:%B %Y, %H:%M} – {last.day} {last:%B %Y, %H:%M} UTC"
    return f"{days} · {whole(answers)} answered requests · {whole(figures.events)} events"


def _missing(figures: Figures) -> str:
    told = [
        f"{whole(figures.dropped)} events are missing: they came faster than they could be written." * bool(figures.dropped),
        f"{whole(figures.unreadable)} lines are no events and were left out." * bool(figures.unreadable),
    ]
    text = " ".join(filter(None, told))
    return f'<p class="warning">{escape(text)}</p>' if text else ""


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
        _chart("Share of billed input from prompt caches", [_cache_over_time(done, would)], times, show=percent, most=1.0),
    ]
    return f'<div class="charts">{"".join(charts)}</div>'


def _chart(title: str, layers: list[Layer], times: list[Slot], show: object = short, most: float = 0.0) -> str:
    shown = [layer for layer in layers if any(layer.values)]
    return bars(title, shown, times, show, most) if shown else ""  # type: ignore[arg-type]


def _cache_over_time(done: list[Counts], would: list[Counts]) -> Layer:
    """Return the share of both modes together: providers bill them alike."""
    return Layer("cached", "done", [d.together_with(w).cache_fraction for d, w in zip(done, would, strict=True)])


def _slot(start: datetime, width_seconds: int) -> Slot:
    """Return the time of a slot; the axis shows the day alone where it has several days, and the hour alone before that."""
    day = f"{start.day} {start:%b}"
    if width_seconds >= DAY_SECONDS:
        return Slot(day, day)
    return Slot(f"{day} {start:%H:%M}", day if width_seconds > HOUR_SECONDS else f"{start:%H:%M}")
