"""Event files that grow, read in a thread: the newest requests, and what else happened. Bounded memory."""

from __future__ import annotations

import threading
import time
from collections import Counter, deque
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

from ctx_hooks.telemetry.event_file import from_json
from ctx_hooks.telemetry.events import AnswerEvent, DecisionEvent, FailureEvent, LimitEvent, OverflowEvent
from ctx_hooks.telemetry.process_events import FaultEvent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from ctx_hooks.telemetry.listeners import Event

MOST_REQUESTS = 50_000
"""Rows of about 1 KB; older requests are forgotten."""
MOST_NOTES = 200
POLL_SECONDS = 0.5
SHORTENED = ("compressed", "retried")


@dataclass(slots=True)
class Row:
    """What is known of one request; figures in provider tokens."""

    id: str
    at: float = 0.0
    group: str = ""
    team: str = ""
    key: str = ""
    session: str = ""
    client: str = ""
    mode: str = ""
    outcome: str = "running"
    before: int | None = None
    after: int | None = None
    window: int | None = None
    refused: int = 0
    beyond: bool = False
    input: int | None = None
    cached: int | None = None
    saved: int | None = None
    dollars: float | None = None
    seconds: float | None = None
    lines: list[bytes] = field(default_factory=list)

    @property
    def is_too_long(self) -> bool:
        """Whether the request was too long for its model, as counted or as a provider said."""
        return self.beyond or self.refused > 0 or self.outcome in ("failed", "fallback", *SHORTENED)

    def shown(self) -> dict[str, Any]:
        """Return the row without the lines of its events."""
        return {name: getattr(self, name) for name in self.__slots__ if name != "lines"}


class Watched:
    """The state of event files. Thread-safe.

    Args:
        paths: returns the present files.
    """

    def __init__(self, paths: Callable[[], list[Path]]) -> None:
        self._paths = paths
        self._read: dict[tuple[int, int], int] = {}
        self._lock = threading.Lock()
        self._rows: dict[str, Row] = {}
        self.notes: dict[str, deque[dict[str, Any]]] = {kind: deque(maxlen=MOST_NOTES) for kind in ("limits", "faults")}
        self.kinds: Counter[str] = Counter()
        self.unreadable = 0
        self.read_bytes = self.all_bytes = 0
        self.version = 0

    def follow(self) -> None:
        """Read until the process ends."""
        while True:
            for _ in self.new_events():
                pass
            time.sleep(POLL_SECONDS)

    def new_events(self) -> Iterator[Event]:
        """Read what was added since the last call, and yield each event."""
        paths = self._paths()
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
                self._note(event, line)
                yield event

    def _note(self, event: Event, line: bytes) -> None:
        with self._lock:
            self.version += 1
            self.kinds[event.name] += 1
            if isinstance(event, LimitEvent):
                self.notes["limits"].append(asdict(event))
            elif isinstance(event, FaultEvent):
                self.notes["faults"].append(asdict(event))
            elif isinstance(event, (DecisionEvent, OverflowEvent, AnswerEvent, FailureEvent)):
                self._add(event, line)

    def _add(self, event: DecisionEvent | OverflowEvent | AnswerEvent | FailureEvent, line: bytes) -> None:
        call = event.call
        row = self._rows.get(call.request_id)
        if row is None:
            while len(self._rows) >= MOST_REQUESTS:
                del self._rows[next(iter(self._rows))]
            row = self._rows[call.request_id] = Row(call.request_id, event.time_seconds)
            row.group, row.session = call.model_group or call.model, call.session
            row.team, row.key, row.client = call.team_alias or call.team_id, call.key_alias, call.client
        row.mode = event.mode
        row.lines.append(line)
        if isinstance(event, DecisionEvent):
            row.before = event.provider_tokens_before if row.before is None else row.before
            row.after, row.window = event.provider_tokens_after, event.window_tokens
        elif isinstance(event, OverflowEvent):
            row.refused += 1
        elif isinstance(event, FailureEvent):
            row.outcome = "failed"
        else:
            row.outcome, row.beyond = event.decision, event.beyond_window
            row.saved, row.dollars, row.seconds = event.provider_tokens_saved, event.dollars_saved, event.duration_seconds
            if event.billed is not None:
                row.input, row.cached = event.billed.input_tokens, event.billed.cached_tokens

    def rows(self, **wanted: str) -> list[Row]:
        """Return the requests whose fields have the wanted values, the oldest first; "" is any value."""
        with self._lock:
            rows = list(self._rows.values())
        asked = {name: value for name, value in wanted.items() if value}
        return [row for row in rows if all(getattr(row, name) == value for name, value in asked.items())]

    def row(self, request_id: str) -> Row | None:
        """Return a request, None for an unknown one."""
        with self._lock:
            return self._rows.get(request_id)
