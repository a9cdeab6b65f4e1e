"""`ctx-hooks report EVENTS... -o report.html`: what the plugin did, or would have done, as one self-contained page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ctx_hooks.cli.files import paths_of
from ctx_hooks.cli.terminal import CommandError, json_option, print_json, print_text, working

if TYPE_CHECKING:
    from ctx_hooks.cli.report.figures import Figures
    from ctx_hooks.telemetry.event_json import Recorded


@click.command()
@click.argument("events", nargs=-1, required=True)
@click.option("-o", "--output", type=click.Path(path_type=Path), default="report.html", show_default=True, help="The page.")
@json_option
def command(*, events: Sequence[str], output: Path, as_json: bool) -> None:
    """Make a page of what was done, or would have been, from event files.

    EVENTS are files, folders or patterns; the proxy writes them with `events: {path: FOLDER}` under
    callback_settings.ctx_hooks.
    """
    run(events, output, as_json=as_json)


def run(events: Sequence[str], output: Path, *, as_json: bool = False) -> int:
    """Write the report of files, folders and patterns of files; return 0.

    Raises:
        CommandError: one of them is not there or cannot be read, none holds an event, or the page cannot be written.
    """
    from ctx_hooks.cli.report.page import page  # noqa: PLC0415 - slow to load, and not for --help

    paths = {path for name in events for path in files_of(name)}
    with working(f"Reading {len(paths):,} file{'s' * (len(paths) != 1)}"):
        figures = figures_of(sorted(paths))
    if not figures.events and not figures.dropped:
        read = f"; {figures.unreadable:,} lines are something else" if figures.unreadable else ""
        raise CommandError(f"{' '.join(events)}: no events{read}. {output} is left as it is.")
    try:
        output.write_text(page(figures), encoding="utf-8")
    except OSError as error:
        raise CommandError(f"{output}: {error.strerror}") from None
    if as_json:
        told = {"events": figures.events, "files": len(paths), "unreadable_lines": figures.unreadable}
        print_json({"output": str(output), **told})
        return 0
    read = f"{figures.events:,} events of {len(paths):,} file{'s' * (len(paths) != 1)}"
    missing = f"; {figures.unreadable:,} lines are no events" if figures.unreadable else ""
    print_text(f"{output}: {read}{missing}")
    return 0


def files_of(name: str) -> set[Path]:
    """Return the files of a path or a pattern; a folder may be empty.

    Raises:
        CommandError: there is nothing of that name.
    """
    found = paths_of(name)
    return {p.resolve() for path in found for p in (path.glob("events.*.jsonl*") if path.is_dir() else [path])}


def figures_of(paths: Sequence[Path]) -> Figures:
    """Return the figures of files of events, which are read line by line."""
    from ctx_hooks.cli.report.figures import Figures  # noqa: PLC0415

    figures = Figures()
    for event in read_events(paths):
        figures.count(event)
    return figures


def read_events(paths: Sequence[Path]) -> Iterator[Recorded | None]:
    """Yield each event, None for a line that is none, as the last one of a process that was killed.

    Raises:
        CommandError: a file cannot be read.
    """
    from ctx_hooks.telemetry.event_json import from_json  # noqa: PLC0415

    for path in paths:
        try:
            with path.open("rb") as lines:
                for line in lines:
                    try:
                        yield from_json(line)
                    except ValueError:
                        yield None
        except OSError as error:
            raise CommandError(f"{path}: {error.strerror}") from None
