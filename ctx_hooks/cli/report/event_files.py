"""Event files, read once or as they grow; and `ctx-hooks tail`, which prints a coloured line for each thing that happens."""

import glob
import heapq
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Any

import click

from ctx_hooks.cli.report.sessions import Turn
from ctx_hooks.cli.terminal import CommandError, printable
from ctx_hooks.telemetry.event_file import from_json
from ctx_hooks.telemetry.events import DecisionEvent, RequestEvent
from ctx_hooks.telemetry.listeners import Event
from ctx_hooks.telemetry.prometheus import LONG_ID

PATTERN = "events.*.jsonl*"
MOST_REQUESTS = 20_000
"""Requests of about 5 KB; older ones are forgotten."""
MOST_NOTES = 200
POLL_SECONDS = 0.5
LINES = {"decision": "cyan", "overflow": "yellow", "limit_learned": "magenta"}
LINES |= dict.fromkeys(("rejection", "failure", "fault"), "red")
COLOURS = {"fits": "green", "failed": "red", "failed_open": "red", "fallback": "blue"}


def event_files(names: Iterable[str]) -> list[Path]:
    """Return the files of paths and patterns, and the event files of folders, each once and sorted.

    Raises CommandError if a name has none, and OSError if one cannot be read.
    """
    found: dict[Path, Path] = {}
    for name in names:
        paths = [name] if Path(name).exists() else glob.glob(name, recursive=True)  # noqa: PTH207 - it takes no absolute one
        if not paths:
            raise CommandError(f"{name}: there is no such file or folder")
        for path in map(Path, paths):
            listed = path.glob(PATTERN) if path.is_dir() else [path]
            found |= {file.resolve(): file for file in listed if not file.is_dir()}
    return sorted(found.values())


def read_events(paths: Iterable[Path]) -> Iterator[Event | None]:
    """Yield each event, None for a line that is none, such as the last line of a killed process."""
    for path in paths:
        with path.open("rb") as lines:
            for line in lines:
                try:
                    yield from_json(line)
                except ValueError:
                    yield None


class Watched:
    """The newest requests in event files, which are named by files, folders and patterns; `turns` has them, oldest first."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._read: dict[tuple[int, int], int] = {}
        self.turns: dict[str, Turn] = {}
        self.notes: dict[str, deque[Event]] = {kind: deque(maxlen=MOST_NOTES) for kind in ("limit_learned", "fault")}
        self.events = self.unreadable = 0
        self.read_bytes = self.all_bytes = 0

    def follow(self) -> None:
        """Read until the process ends."""
        while True:
            deque(self.new_events(), maxlen=0)
            time.sleep(POLL_SECONDS)

    def new_events(self) -> Iterator[Event]:
        """Read what was added since the last call, and yield each event in the order of time: each worker has its files."""
        paths = event_files(self._names)
        self.all_bytes = sum(path.stat().st_size for path in paths if path.exists())
        self.read_bytes = 0
        yield from heapq.merge(*map(self._new_events, paths), key=attrgetter("time_seconds"))

    def _new_events(self, path: Path) -> Iterator[Event]:
        try:
            file = path.open("rb")
        except OSError:  # rotated away since it was listed
            return
        with file:
            status = path.stat()
            place = (status.st_dev, status.st_ino)  # a rotated file keeps its inode
            start = self._read.get(place, 0)
            file.seek(start if start <= status.st_size else 0)
            self.read_bytes += file.tell()
            for line in file:
                if not line.endswith(b"\n"):
                    break  # the rest of it follows
                self._read[place] = file.tell()
                self.read_bytes += len(line)
                try:
                    event = from_json(line)
                except ValueError:
                    self.unreadable += 1
                    continue
                self._note(event)
                yield event

    def _note(self, event: Event) -> None:
        self.events += 1
        if event.name in self.notes:
            self.notes[event.name].append(event)
        if isinstance(event, RequestEvent):
            if event.call.request_id not in self.turns and len(self.turns) >= MOST_REQUESTS:
                del self.turns[next(iter(self.turns))]
            self.turns.setdefault(event.call.request_id, Turn()).events.append(event)

    def repeats(self, event: Event) -> bool:
        """Whether an event is the decision about the fallback's own attempt: its request has gone there already."""
        if not isinstance(event, DecisionEvent) or event.decision != "fallback":
            return False
        noted = self.turns[event.call.request_id].events
        return sum(isinstance(e, DecisionEvent) and e.decision == "fallback" for e in noted) > 1


def tail(*, events: Sequence[str], follow: bool) -> None:
    """Print a coloured line for each decision, refusal, failure, fault and learned limit, and go on with `follow`."""
    watched = Watched(events)
    while True:
        for event in watched.new_events():
            if event.name in LINES and not watched.repeats(event):
                click.echo(line_of(event))
        if not follow:
            return
        time.sleep(POLL_SECONDS)


def line_of(event: Any) -> str:
    """Return a line for an event: its time, its outcome, sizes in tokens, who asked, and why."""
    at, call = time.strftime("%H:%M:%S", time.localtime(event.time_seconds)), getattr(event, "call", None)
    outcome, sizes = getattr(event, "decision", event.name), ""
    if event.name == "decision":
        counts = (event.provider_tokens_before, event.provider_tokens_after)
        sizes = " → ".join(f"{tokens:>9,}" for tokens in counts if tokens is not None)
    elif event.name == "limit_learned":
        sizes = f"{event.limit_tokens:>9,}"
    deployment = LONG_ID.sub(r"\1", getattr(event, "deployment", ""))
    who = f"{call.model_group} {call.team_alias or call.team_id}" if call else deployment
    why = next(filter(None, (getattr(event, name, "") for name in ("reason", "consequence", "kind"))), "")
    mode = " (observed)" if getattr(event, "mode", "") == "observe" else ""
    word = click.style(f"{outcome:<14}", fg=COLOURS.get(outcome, LINES[event.name]))
    return f"{at}  {word} {sizes:<21}  {printable(who)}  {printable(why)}{mode}".rstrip()
