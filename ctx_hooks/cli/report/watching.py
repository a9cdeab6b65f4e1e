"""Event files that grow: the newest requests, and what else happened. Bounded memory."""

import threading
import time
from collections import deque
from collections.abc import Iterator, Sequence
from pathlib import Path

from ctx_hooks.cli.files import files_of
from ctx_hooks.cli.report.page import EVENT_FILES
from ctx_hooks.cli.report.requests import Turn
from ctx_hooks.telemetry.event_file import from_json
from ctx_hooks.telemetry.events import RequestEvent
from ctx_hooks.telemetry.listeners import Event

MOST_REQUESTS = 20_000
"""Requests of about 5 KB; older ones are forgotten."""
MOST_NOTES = 200
POLL_SECONDS = 0.5


class Watched:
    """The state of event files, which are named by files, folders and patterns. Thread-safe."""

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names
        self._read: dict[tuple[int, int], int] = {}
        self._lock = threading.Lock()
        self._turns: dict[str, Turn] = {}
        self.notes: dict[str, deque[Event]] = {kind: deque(maxlen=MOST_NOTES) for kind in ("limit_learned", "fault")}
        self.events = self.unreadable = 0
        self.read_bytes = self.all_bytes = 0

    def follow(self) -> None:
        """Read until the process ends."""
        while True:
            for _ in self.new_events():
                pass
            time.sleep(POLL_SECONDS)

    def new_events(self) -> Iterator[Event]:
        """Read what was added since the last call, and yield each event."""
        paths = files_of(self._names, EVENT_FILES)
        self.all_bytes = sum(path.stat().st_size for path in paths if path.exists())
        self.read_bytes = 0
        for path in paths:
            yield from self._new_events(path)

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
        with self._lock:
            self.events += 1
            if event.name in self.notes:
                self.notes[event.name].append(event)
            if isinstance(event, RequestEvent):
                if event.call.request_id not in self._turns:
                    while len(self._turns) >= MOST_REQUESTS:
                        del self._turns[next(iter(self._turns))]
                self._turns.setdefault(event.call.request_id, Turn()).events.append(event)

    def turns(self) -> list[Turn]:
        """Return the requests, the oldest first."""
        with self._lock:
            return list(self._turns.values())
