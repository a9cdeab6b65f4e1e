"""What the event file says of one request: each attempt, refusal and answer. The file has figures and names, never text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from ctx_hooks.cli.configuration import read_configuration
from ctx_hooks.cli.rendering import render
from ctx_hooks.cli.report import files_of, read_events
from ctx_hooks.cli.terminal import CommandError, console, print_json, working
from ctx_hooks.telemetry.event_file import Recorded, to_json
from ctx_hooks.telemetry.events import AnswerEvent, DecisionEvent, OverflowEvent
from ctx_hooks.telemetry.figures import CallNames

NO_FILE = (
    "No event file is known. The proxy writes one with `events: {path: FOLDER}` under callback_settings.ctx_hooks: name the "
    "folder with --events, or the configuration with --config."
)
STATED = (DecisionEvent, AnswerEvent, OverflowEvent)
"""The events that say whose request it is."""


def explain_last(config: Path | None, events: str | None, wanted: str | None, *, as_json: bool) -> None:
    """Print what was done with the last request, or with the one of an id.

    Raises:
        CommandError: no event file is known, or it does not have the request.
    """
    paths = sorted(_files(config, events))
    with working("Reading events"):
        request_id = _id_of(paths, wanted)
        found = [event for event in read_events(paths) if event is not None and _request_id(event) == request_id]
    if as_json:
        print_json([json.loads(to_json(event)) for event in found])
        return
    first = next(event for event in found if isinstance(event, STATED))
    console().print(render("last.txt", events=found, call=first.call, time_seconds=first.time_seconds).rstrip("\n"))


def _files(config: Path | None, events: str | None) -> set[Path]:
    folder = events
    if folder is None and config is not None:
        settings = read_configuration(config).settings
        folder = settings.events.path if settings.events else None
    if folder is None:
        raise CommandError(NO_FILE)
    found = files_of(folder)
    if not found:
        raise CommandError(f"{folder}: there is no event file")
    return found


def _id_of(paths: Sequence[Path], wanted: str | None) -> str:
    """Return the id that a process has given the request."""
    newest: tuple[float, str] | None = None
    for event in read_events(paths):
        if not isinstance(event, STATED):
            continue
        if wanted and wanted not in (event.call.call_id, event.call.request_id):
            continue
        if newest is None or event.time_seconds >= newest[0]:
            newest = (event.time_seconds, event.call.request_id)
    if newest is None:
        of_id = f" of {wanted}" if wanted else ""
        raise CommandError(f"No event{of_id} is in {', '.join(str(path) for path in paths)}")
    return newest[1]


def _request_id(event: Recorded) -> str:
    call = getattr(event, "call", None)
    return call.request_id if isinstance(call, CallNames) else str(getattr(event, "request_id", ""))
