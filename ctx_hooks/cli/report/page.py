"""The report as one page of HTML: no script, nothing from elsewhere, and every name from an event escaped."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import click

from ctx_hooks.cli.files import STDIN, files_of
from ctx_hooks.cli.rendering import render
from ctx_hooks.cli.report.charts import charts
from ctx_hooks.cli.report.figures import OTHERS, Counts, Figures, Tally
from ctx_hooks.cli.report.sessions import MARKS, Session
from ctx_hooks.cli.terminal import CommandError, counted, tell, working
from ctx_hooks.telemetry.event_file import from_json
from ctx_hooks.telemetry.figures import names_for
from ctx_hooks.telemetry.listeners import EVENTS, Event

MOST_ROWS = 12
"""Rows of a table; further names share one row."""
WORDS = {
    "silent_truncation": "Answers to requests that a provider cut silently",
    "limit_learned": "Limits learned from providers",
    "after_summary": "Summaries that a model was asked for",
    "retrieval": "Calls of the retrieval tool",
    "archive": "Batches of texts for the archive",
}
"""The rarer events."""


def run(*, events: Sequence[str], output: Path) -> None:
    """Write the report of files, folders and patterns of files.

    Raises:
        CommandError: one of them is missing, or none contains an event.
        OSError: one cannot be read, or the page cannot be written.
    """
    paths = files_of(events, "events.*.jsonl*")
    files, figures = counted(len(paths), "file"), Figures()
    with working(f"Reading {files}"):
        for event in read_events(paths):
            figures.count(event)
    if not figures.events:
        read = f"; {counted(figures.unreadable, 'line')} of something else" if figures.unreadable else ""
        raise CommandError(f"{' '.join(events)}: no events{read}. {output} is left as it is.")
    with working("Reading the sessions"):
        sessions = figures.largest.sessions(read_events(paths))
    made = page(figures, sessions=sessions)
    if output == STDIN:
        click.echo(made)
        return
    output.write_text(made, encoding="utf-8")
    written = {"events": figures.events, "files": len(paths), "unreadable_lines": figures.unreadable}
    missing = f"; left out: {counted(figures.unreadable, 'line')}, no events" if figures.unreadable else ""
    tell({"output": str(output), **written}, f"{output}: {counted(figures.events, 'event')} of {files}{missing}")


def read_events(paths: Iterable[Path]) -> Iterator[Event | None]:
    """Yield each event, None for a line that is none, such as the last line of a killed process."""
    for path in paths:
        with path.open("rb") as lines:
            for line in lines:
                try:
                    yield from_json(line)
                except ValueError:
                    yield None


def page(figures: Figures, events: Mapping[str, Any] = EVENTS, sessions: Sequence[Session] = ()) -> str:
    """Return the page; the classes of events by name say which of their fields are columns of its tables."""
    columns = [each for kind in events.values() for each in names_for("column", kind)]
    done, would = figures.total.done, figures.total.would
    return render(
        "report.html",
        figures=figures,
        done=done,
        would=would,
        has_done=done != Counts(),
        observes=would != Counts(),
        charts=charts(figures.by_time) if figures.by_time.slots() else [],
        columns=list(dict.fromkeys(columns)),
        names={"Model": _rows(figures.by_model), "Team": _rows(figures.by_team)},
        steps=figures.step_tokens.most_common(MOST_ROWS),
        ends=_ends(figures),
        sessions=sessions,
        marks=MARKS,
    )


def _rows(tallies: Mapping[str, Tally]) -> list[tuple[str, Tally]]:
    """Return the rows of a table of names, those that save most first; the last one has the sums of all further names."""

    def order(name: str) -> tuple[bool, float, float, str]:
        both = tallies[name].both
        return name == OTHERS, -both["tokens_saved"], -both["answers"], name

    ordered = [(name, tallies[name]) for name in sorted(tallies, key=order)]
    further = [tally for _, tally in ordered[MOST_ROWS:]]
    return ordered[:MOST_ROWS] + ([(f"{len(further):,} more", sum(further, Tally()))] if further else [])


def _ends(figures: Figures) -> list[tuple[str, int]]:
    """Return the outcomes of requests, and the rarer events, each with its number."""
    ordered = sorted(figures.ends.items(), key=lambda item: (item[0][0], -item[1], item[0]))
    ends = [(decision if mode == "enforce" else f"{decision}, observed", times) for (mode, decision), times in ordered]
    return ends[: 2 * MOST_ROWS] + [(WORDS.get(name, name), times) for name, times in sorted(figures.notable.items())]
