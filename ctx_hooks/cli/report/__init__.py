"""What the plugin did, or would have done, as one self-contained page; and the events that it is made of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from ctx_hooks.cli.files import paths_of
from ctx_hooks.telemetry.event_file import from_json
from ctx_hooks.telemetry.listeners import Event


def files_of(name: str) -> set[Path]:
    """Return the files of a path or a pattern; a folder may be empty.

    Raises:
        CommandError: there is nothing of that name.
    """
    found = paths_of(name)
    return {p.resolve() for path in found for p in (path.glob("events.*.jsonl*") if path.is_dir() else [path])}


def read_events(paths: Iterable[Path]) -> Iterator[Event | None]:
    """Yield each event, None for a line that is none, as the last one of a process that was killed."""
    for path in paths:
        with path.open("rb") as lines:
            for line in lines:
                try:
                    yield from_json(line)
                except ValueError:
                    yield None
