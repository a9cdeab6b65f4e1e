"""The sink that writes each event as a line of JSON to a rotating file, which `ctx-hooks report` reads.

A request only puts its event into a queue; a thread writes the waiting events. Each process has its own files, since several
processes that rotate the same file lose lines.
"""

import json
import os
import stat
import threading
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields, is_dataclass
from pathlib import Path
from queue import SimpleQueue
from typing import IO, Annotated, Any

import orjson
from pydantic import Field, TypeAdapter

from ctx_hooks.runtime.warnings import warn_once
from ctx_hooks.telemetry.listeners import EVENTS, Event
from ctx_hooks.tokens.usage import Billed

NOT_WRITTEN = frozenset({"before_compaction", "after_compaction", "before_summary"})
"""Their figures are in the decision, and in the event after the summary."""
WRITTEN = tuple(name for name in EVENTS if name not in NOT_WRITTEN)
MOST_WAITING = 4_096
"""Events that wait to be written, of 1 to 2 KB each: more of them mean that the disk has stopped, not that it is slow."""
CLOSE_SECONDS = 5.0
"""A disk that is only slow writes 4,096 events in this time; one that hangs must not hold up the end of the proxy."""
MOST_AT_ONCE = 64
"""Events that are written together: a system call for each would be half of what the file costs a busy proxy."""


_EVENT: TypeAdapter[Event] = TypeAdapter(Annotated[Event, Field(discriminator="name")])


def to_json(event: Event) -> str:
    """Return an event as one line of JSON, without the line break."""
    try:
        return orjson.dumps(event, default=_plain).decode()
    except TypeError:
        # orjson refuses integers of more than 64 bits, and a caller may ask for that much output.
        return json.dumps(event, default=_plain)


def from_json(line: str | bytes) -> Event:
    """Return the event of a line.

    Raises ValueError if the line is no event; a field that this version does not know is left out.
    """
    return _EVENT.validate_json(line)


def _plain(value: Any) -> dict[str, Any]:
    if isinstance(value, Billed):
        return value._asdict()
    if isinstance(value, Mapping):
        return dict(value)
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    raise TypeError(f"{type(value).__name__} has no JSON")


class EventFile:
    """The files of one process: `events.N.jsonl`, and `events.N.jsonl.1` and so on for rotated files. Thread-safe.

    N is the least number that no other process uses, so that restarts continue the existing files. Only their owner can read
    them. Pipes are not rotated.
    """

    def __init__(self, folder: Path, max_bytes: int, keep: int) -> None:
        """Open the file.

        Args:
            folder: the folder of the files; it has to exist.
            max_bytes: size at which a file is rotated.
            keep: most files, including the one in use.

        Raises:
            OSError: if the folder does not exist, or cannot be written to.
        """
        self._path, self._lock_file = _own_path(folder)
        self._max_bytes, self._keep = max_bytes, keep
        self._open()
        self._waiting: SimpleQueue[Event | None] = SimpleQueue()
        self._failure: Exception | None = None
        self._thread = threading.Thread(target=self._write, name="ctx_hooks events", daemon=True)
        self._thread.start()

    def hear(self, event: Event) -> None:
        """Queue an event for writing, unless MOST_WAITING wait. Raises the error of an earlier one."""
        if self._failure is not None:
            raise self._failure
        if self._waiting.qsize() < MOST_WAITING:
            self._waiting.put(event)
        else:
            warn_once("events come faster than their file can be written: some are left out")

    def close(self) -> None:
        """Write the waiting events, and close the file; events that a hanging disk has not written by then are lost."""
        self._waiting.put(None)
        self._thread.join(CLOSE_SECONDS)
        if self._thread.is_alive():
            warn_once(f"the disk of the events takes nothing for {CLOSE_SECONDS:g} seconds: the last events are lost")
            return  # the lock stays with the thread, which may still write
        self._lock_file.close()

    def _write(self) -> None:
        """Write waiting events until the end mark, or until a failure: then waiting and later events are lost."""
        try:
            events: list[Event | None] = []
            while None not in events:
                events = [self._waiting.get() for _ in range(max(1, min(self._waiting.qsize(), MOST_AT_ONCE)))]
                self._append([to_json(event).encode() + b"\n" for event in events if event is not None])
        except Exception as error:  # noqa: BLE001 - `hear` raises it for the next event
            self._failure = error
        finally:
            with suppress(OSError):  # a full disk refuses the same data again here
                self._file.close()

    def _append(self, lines: list[bytes]) -> None:
        """Write lines; a deleted file is made anew, since lines written to it would be lost."""
        if os.fstat(self._file.fileno()).st_nlink == 0:
            self._file.close()
            self._open()
        for line in lines:
            if self._is_regular and self._size_bytes and self._size_bytes + len(line) > self._max_bytes:
                self._rotate()
            self._file.write(line)
            self._size_bytes += len(line)
        self._file.flush()

    def _rotate(self) -> None:
        self._file.close()
        paths = [self._path, *(self._path.with_name(f"{self._path.name}.{n}") for n in range(1, self._keep))]
        for n in range(self._keep - 1, 0, -1):
            with suppress(FileNotFoundError):  # there are fewer files, or somebody has deleted one
                paths[n - 1].replace(paths[n])
        self._open()

    def _open(self) -> None:
        self._file = _open_private(self._path)
        status = os.fstat(self._file.fileno())
        self._size_bytes, self._is_regular = status.st_size, stat.S_ISREG(status.st_mode)


def _own_path(folder: Path) -> tuple[Path, IO[bytes]]:
    """Return a path that no other process writes to, and the open file whose lock reserves it until it is closed."""
    import fcntl  # noqa: PLC0415 - Windows has none: there only this sink is off

    number = 0
    while True:
        number += 1
        lock = _open_private(folder / f".events.{number}.lock")
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
        else:
            return folder / f"events.{number}.jsonl", lock


def _open_private(path: Path) -> IO[bytes]:
    return open(path, "ab", opener=lambda name, flags: os.open(name, flags, 0o600))
