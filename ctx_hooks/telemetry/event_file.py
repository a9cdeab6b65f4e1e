"""The sink that writes events as lines of JSON to rotating files of this process, in a thread."""

import os
import queue
import threading
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import IO, Annotated

from pydantic import Field, TypeAdapter

from ctx_hooks.runtime.warnings import warn_once
from ctx_hooks.telemetry.listeners import EVENTS, Event

NOT_WRITTEN = frozenset({"before_compaction", "after_compaction"})
"""Their figures are in the decision, and in the event after the summary."""
WRITTEN = tuple(name for name in EVENTS if name not in NOT_WRITTEN)
MOST_WAITING = 4_096
"""Events that wait to be written, of 1 to 2 KB each: more of them mean that the disk has stopped, not that it is slow."""
CLOSE_SECONDS = 5.0
"""A disk that is only slow writes 4,096 events in this time; one that hangs must not hold up the end of the proxy."""

_EVENT: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="name")])


def to_json(event: Event) -> str:
    """Return an event as one line of JSON, without the line break."""
    return _EVENT.dump_json(event).decode()


def from_json(line: str | bytes) -> Event:
    """Return the event of a line, without fields that this version does not know; raises ValueError if it is none."""
    return _EVENT.validate_json(line)


class EventFile:
    """The files of one process: `events.N.jsonl`, N the least number that is free, and `events.N.jsonl.1` and so on."""

    def __init__(self, folder: Path, max_bytes: int, keep: int) -> None:
        """Open the file; it is rotated at `max_bytes`, and `keep` files remain. Raises OSError if that is impossible."""
        path, self._lock_file = _own_path(folder)
        self._paths = [path, *(path.with_name(f"{path.name}.{n}") for n in range(1, keep))]
        self._max_bytes = max_bytes
        self._file = open(path, "ab", opener=_private)  # noqa: SIM115 - it stays open
        self._waiting: queue.Queue[Event | None] = queue.Queue(MOST_WAITING)
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._write, name="ctx_hooks events", daemon=True)
        self._thread.start()

    def hear(self, event: Event) -> None:
        """Queue an event for writing, unless MOST_WAITING wait. Raises the error of an earlier one."""
        if self._failure is not None:
            raise self._failure
        try:
            self._waiting.put_nowait(event)
        except queue.Full:
            warn_once("events come faster than their file can be written: some are left out")

    def close(self) -> None:
        """Write the waiting events, and close the file; events that a hanging disk has not written by then are lost."""
        with suppress(queue.Full):
            self._waiting.put(None, timeout=CLOSE_SECONDS)
        self._thread.join(CLOSE_SECONDS)
        if self._thread.is_alive():
            warn_once(f"the disk of the events takes nothing for {CLOSE_SECONDS:g} seconds: the last events are lost")
            return  # the lock stays with the thread, which may still write
        self._lock_file.close()

    def _write(self) -> None:
        """Write waiting events until the end mark, or until a failure: then waiting and later events are lost."""
        try:
            is_regular = self._paths[0].is_file()  # a pipe is not rotated
            while (event := self._waiting.get()) is not None:
                line = to_json(event).encode() + b"\n"
                if is_regular and self._file.tell() and self._file.tell() + len(line) > self._max_bytes:
                    self._rotate()
                self._file.write(line)
                self._file.flush()
        except Exception as error:  # noqa: BLE001 - `hear` raises it for the next event
            self._failure = error
        finally:
            with suppress(OSError):  # a full disk refuses the same data again here
                self._file.close()

    def _rotate(self) -> None:
        self._file.close()
        for newer, older in reversed(list(pairwise(self._paths))):
            with suppress(FileNotFoundError):  # there are fewer files, or somebody has deleted one
                newer.replace(older)
        self._file = open(self._paths[0], "ab", opener=_private)  # noqa: SIM115 - it stays open


def _own_path(folder: Path) -> tuple[Path, IO[bytes]]:
    """Return a path that no other process writes to, and the open file whose lock reserves it until it is closed."""
    import fcntl  # noqa: PLC0415 - Windows has none: there only this sink is off

    number = 0
    while True:
        number += 1
        lock = open(folder / f".events.{number}.lock", "ab", opener=_private)  # noqa: SIM115 - it stays open
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
        else:
            return folder / f"events.{number}.jsonl", lock


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)
