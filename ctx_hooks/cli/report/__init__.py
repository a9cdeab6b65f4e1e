"""`ctx-hooks report EVENTS... -o report.html`: what the plugin did, or would have done, as one self-contained page."""

from __future__ import annotations

import glob
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from ctx_hooks.cli.report.figures import Figures
from ctx_hooks.cli.report.page import page
from ctx_hooks.telemetry.event_json import Recorded, from_json


@click.command()
@click.argument("events", nargs=-1, required=True)
@click.option("-o", "--output", type=click.Path(path_type=Path), default="report.html", show_default=True, help="The page.")
def command(events: Sequence[str], output: Path) -> int:
    """Make a page of what was done, or would have been, from event files, folders or patterns."""
    return run(events, output)


def run(events: Sequence[str], output: Path) -> int:
    """Write the report of files, folders and patterns of files; return 1 where one of them is not there, else 0."""
    paths: set[Path] = set()
    for name in events:
        found = files_of(name)
        if found is None:
            print(f"{name}: there is no such file or folder")
            return 1
        paths |= found
    figures = figures_of(sorted(paths))
    output.write_text(page(figures), encoding="utf-8")
    read = f"{figures.events:,} events of {len(paths):,} file{'s' * (len(paths) != 1)}"
    missing = f"; {figures.unreadable:,} lines are no events" if figures.unreadable else ""
    print(f"{output}: {read}{missing}")
    return 0


def files_of(name: str) -> set[Path] | None:
    """Return the files of a path or a pattern; None where there are none, but a folder may be empty."""
    path = Path(name)
    if path.is_dir():
        return {p.resolve() for p in path.glob("events.*.jsonl*")}
    found = [name] if path.exists() else glob.glob(name, recursive=True)  # noqa: PTH207 - Path takes no absolute pattern
    return {Path(p).resolve() for p in found if Path(p).is_file()} or None


def figures_of(paths: Sequence[Path]) -> Figures:
    """Return the figures of files of events, which are read line by line."""
    figures = Figures()
    for event in read_events(paths):
        figures.count(event)
    return figures


def read_events(paths: Sequence[Path]) -> Iterator[Recorded | None]:
    """Yield each event, None for a line that is none, as the last one of a process that was killed."""
    for path in paths:
        with path.open("rb") as lines:
            for line in lines:
                try:
                    yield from_json(line)
                except ValueError:
                    yield None
