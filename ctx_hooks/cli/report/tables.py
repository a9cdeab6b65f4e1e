"""The tables of the report. Names come from callers: each is escaped here, where it enters the page."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timezone
from html import escape

from ctx_hooks.cli.report.counts import Tally
from ctx_hooks.cli.report.figures import OTHERS, Figures, Loss, Named, id_of
from ctx_hooks.cli.report.numbers import MINUS, dollars, milliseconds, percent, whole

MOST_ROWS = 12
"""Of a table by name; the rest is one row."""
NO_NAME = "(none)"
BAR = ""
"""The head of a column of bars."""
WORDS = {
    "silent_truncation": "Answers to requests that a provider cut silently",
    "limit_learned": "Limits learned from providers",
    "compression_timeout": "Requests too large or too slow to compress",
    "after_summary": "Summaries that a model was asked for",
    "retrieval": "Calls of the retrieval tool",
    "archive": "Batches of texts for the archive",
}
"""The rarer events."""


def by_name(title: str, named: Named, *, observes: bool) -> str:
    """Return the table of a kind of names, those that save most first.

    Args:
        title: what is named.
        named: the tallies by name.
        observes: whether anything was only observed; else there is no column for it.
    """
    ordered = sorted(named.tallies.items(), key=lambda item: (item[0] == OTHERS, *_order(item[1]), item[0]))
    shown, rest = ordered[:MOST_ROWS], ordered[MOST_ROWS:]
    most = max((abs(t.done.tokens_saved) for _, t in shown), default=0)
    rows = [_row(_name(name, "first"), tally, most, observes=observes) for name, tally in shown]
    if rest:
        others = Tally()
        for _, tally in rest:
            others.add(tally)
        rows.append(_row(f'<td class="first rest">{whole(len(rest))} more</td>', others, most, observes=observes))
    heads = ["Tokens saved", BAR, "Dollars saved", *(["Would save"] if observes else [])]
    return _table(title, [*heads, "Requests", "Changed", "Beyond window", "Failed", "From cache"], rows)


def phases(figures: Figures) -> str:
    """Return the table of phases, the slowest first."""
    found = sorted(((q.at(0.95), q.at(0.5), q.count, name) for name, q in figures.phases.items()), reverse=True)
    longest = max((p95 for p95, *_ in found), default=0.0)
    rows = [
        _name(name, "first") + _cell(whole(n)) + _cell(milliseconds(median)) + _bar(milliseconds(p95), p95, longest)
        for p95, median, n, name in found[:MOST_ROWS]
    ]
    return _table("Slowest phases of a decision", ["Times", "Median", "95th percentile", BAR], rows)


def steps(figures: Figures) -> str:
    """Return the table of steps, those that save most first."""
    found = sorted(figures.steps.items(), key=lambda item: -item[1].tokens_saved)[:MOST_ROWS]
    most = max((counts.tokens_saved for _, counts in found), default=0)
    rows = [
        _name(name.replace("_", " "), "first") + _cell(whole(c.times)) + _bar(whole(c.tokens_saved), c.tokens_saved, most)
        for name, c in found
    ]
    return _table("Steps of compactions", ["Attempts", "Local tokens less", BAR], rows)


def rare(figures: Figures) -> str:
    """Return the table of what requests ended in, and of the rarer events."""
    decided = [
        _cell(f"{escape(decision)}{'' if mode == 'enforce' else ', observed'}", "first") + _cell(whole(n))
        for (mode, decision), n in sorted(figures.ends.items(), key=lambda item: (item[0][0], -item[1], item[0]))
    ]
    noted = [_cell(WORDS[n], "first") + _cell(whole(times)) for n, times in sorted(figures.notable.items())]
    return _table("What requests ended in, and rarer events", ["Times"], decided[: 2 * MOST_ROWS] + noted)


def largest_losses(figures: Figures) -> str:
    """Return the table of the requests that lost most."""
    heads = ["Time", "Model", "Team", "Client", "Tokens before", "After", "Lost", ""]
    return _table("", heads, [_loss_row(loss) for loss in figures.losses()], "Requests that lost most", names=4)


def _loss_row(loss: Loss) -> str:
    event, call = loss.event, loss.event.call
    before, after = event.provider_tokens_before or 0, event.provider_tokens_after or 0
    observed = event.mode != "enforce"
    tag = f'<span class="tag{" would" if observed else ""}">{"would be " if observed else ""}{escape(event.decision)}</span>'
    at = datetime.fromtimestamp(event.time_seconds, timezone.utc)
    names = (call.model_group or call.model, call.team_alias or call.team_id, call.client)
    return (
        _name(id_of(call), "first id")
        + _cell(f"{at.day} {at:%b %H:%M}", "name")
        + "".join(_name(name) for name in names)
        + _cell(whole(before))
        + _cell(whole(after))
        + _cell(percent(loss.tokens / max(1, before)))
        + _cell(tag)
    )


def _row(name: str, tally: Tally, most: float, *, observes: bool) -> str:
    done, would = tally.done, tally.would
    both = done.together_with(would)
    return (
        name
        + _bar(whole(done.tokens_saved), done.tokens_saved, most)
        + _cell(dollars(done.dollars))
        + (_cell(whole(would.tokens_saved), "soft") if observes else "")
        + _cell(whole(both.answers))
        + _cell(whole(done.changed))
        + _cell(whole(done.beyond_window))
        + _cell(whole(both.failed))
        + _cell(percent(both.cache_fraction))
    )


def _order(tally: Tally) -> tuple[int, int]:
    done, would = tally.done, tally.would
    return -(done.tokens_saved + would.tokens_saved), -(done.answers + would.answers)


def _table(caption: str, heads: Sequence[str], rows: Iterable[str], heading: str = "", names: int = 0) -> str:
    """Return a table, "" without rows.

    Args:
        caption: its title, the head of the first column too.
        heads: of the other columns.
        rows: the cells of each row.
        heading: of the section that the table is alone in.
        names: how many columns after the first hold words.
    """
    body = "".join(f"<tr>{row}</tr>" for row in rows)
    if not body:
        return ""
    styles = ("name" if i < names else "" if head else "wide" for i, head in enumerate(heads))
    cells = "".join(f'<th class="{style}">{head}</th>' for style, head in zip(styles, heads, strict=True))
    title = f"<caption>{caption}</caption>" if caption else ""
    first = "Request" if heading else ""
    head = f'<thead><tr><th class="first">{first}</th>{cells}</tr></thead>'
    table = f'<div class="table"><table>{title}{head}<tbody>{body}</tbody></table></div>'
    return f"<h2>{heading}</h2>{table}" if heading else table


def _name(name: str, style: str = "") -> str:
    text = escape(name) or NO_NAME
    return f'<td class="name {style}" title="{text}">{text}</td>'


def _cell(text: str, style: str = "") -> str:
    negative = " neg" if text.startswith(MINUS) else ""
    return f'<td class="{style}{negative}">{text}</td>'


def _bar(text: str, value: float, most: float) -> str:
    """Return the cell of a value, and that of a bar which a narrow screen leaves out."""
    part = 100 * max(0.0, value) / most if most else 0.0
    drawn = f'<i style="--part:{part:.1f}%"></i>' if part else ""
    return f'{_cell(text)}<td class="bar wide">{drawn}</td>'
