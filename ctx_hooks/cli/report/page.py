"""The report as one page of HTML: no script, nothing from elsewhere, and every name from an event escaped."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import click

from ctx_hooks.cli.files import STDIN
from ctx_hooks.cli.rendering import render
from ctx_hooks.cli.report.event_files import event_files, read_events
from ctx_hooks.cli.report.figures import OTHERS, Counts, Figures, charts
from ctx_hooks.cli.report.sessions import MARKS, Session
from ctx_hooks.cli.terminal import CommandError, counted, tell, working
from ctx_hooks.telemetry.events import Outcome

MOST_ROWS = 12
"""Rows of a table; further names share one row."""
WORDS = {
    "overflow": "Attempts that a provider refused as too long",
    "rejection": "Changed requests that a provider refused as invalid",
    "limit_learned": "Limits learned from providers",
    "summary": "Summaries requested from a model",
    "retrieval": "Calls of the retrieval tool",
    "compaction_item": "Compaction items that clients asked for or sent",
    "archive": "Batches of texts sent to the archive",
    "fault": "Faults of the plugin",
    "settings_ignored": "Requests with ignored settings",
    "start": "Starts of a worker",
}
"""The rarer events."""


def run(*, events: Sequence[str], output: Path) -> None:
    """Write the report of files, folders and patterns; raises CommandError, or OSError, if there is no event to read."""
    paths = event_files(events)
    files, figures = counted(len(paths), "file"), Figures()
    with working(f"Reading {files}"):
        for event in read_events(paths):
            figures.count(event)
        sessions = figures.largest.sessions(read_events(paths))
    if not figures.events:
        read = f"; {counted(figures.unreadable, 'line')} of something else" if figures.unreadable else ""
        raise CommandError(f"{' '.join(events)}: no events{read}. {output} is left as it is.")
    made = page(figures, sessions)
    if output == STDIN:
        click.echo(made)
        return
    output.write_text(made, encoding="utf-8")
    written = {"events": figures.events, "files": len(paths), "unreadable_lines": figures.unreadable}
    missing = f"; left out: {counted(figures.unreadable, 'line')}, no events" if figures.unreadable else ""
    tell({"output": str(output), **written}, f"{output}: {counted(figures.events, 'event')} of {files}{missing}")


def page(figures: Figures, sessions: Sequence[Session] = ()) -> str:
    """Return the page of figures, and of the sessions with the largest cuts."""
    return render("report.html", sessions=sessions, marks=MARKS, **shown(figures))


def shown(figures: Figures) -> dict[str, Any]:
    """Return what the template of figures needs, for the report and for the live page."""
    sums = {"done": figures.done, "would": figures.would}
    return {
        "figures": figures,
        "modes": {style: each.total for style, each in sums.items() if each.total},
        "tables": {s: {"Model group": _rows(each.by_group), "Team": _rows(each.by_team)} for s, each in sums.items()},
        "charts": charts(figures.by_time),
        "outcomes": get_args(Outcome),
        "steps": figures.step_tokens.most_common(MOST_ROWS),
        "notable": [(WORDS.get(name, name), times) for name, times in sorted(figures.notable.items())],
    }


def _rows(named: Mapping[str, Counts]) -> list[tuple[str, Counts]]:
    """Return the rows of a table of names, those that save most first; the last one has the sums of all further names."""

    def order(name: str) -> tuple[bool, float, float, str]:
        return name == OTHERS, -named[name]["tokens_saved"], -named[name]["requests"], name

    ordered = [(name, named[name]) for name in sorted(named, key=order)]
    further = [counts for _, counts in ordered[MOST_ROWS:]]
    return ordered[:MOST_ROWS] + ([(f"{len(further):,} more", sum(further, Counts()))] if further else [])
