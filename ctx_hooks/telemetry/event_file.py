"""The sink that writes each event as a line of JSON to a rotating file, which `ctx-hooks report` reads.

A request does no more than put its event into a queue; a thread writes it. Each process has files of its own, since
several processes that rotate the same file lose lines.
"""

from __future__ import annotations

import logging
import os
import queue
import sys
import threading
from contextlib import suppress
from logging.handlers import QueueListener, RotatingFileHandler
from pathlib import Path
from typing import TYPE_CHECKING, cast

from ctx_hooks.runtime.warnings import warn_once
from ctx_hooks.telemetry.event_json import DroppedEvents, to_json

if TYPE_CHECKING:
    from io import TextIOWrapper
    from typing import TextIO

    from ctx_hooks.telemetry.event_json import Recorded
    from ctx_hooks.telemetry.events import EventName

WRITTEN: tuple[EventName, ...] = (
    "decision",
    "answer",
    "overflow",
    "silent_truncation",
    "limit_learned",
    "compression_timeout",
    "after_summary",
)
MOST_WAITING = 4_096
"""Events that wait to be written, of 1 to 2 KB each: more of them mean that the disk has stopped, not that it is slow."""


class EventFile:
    """The files of one process: `events.N.jsonl`, and `events.N.jsonl.1` and so on for what was rotated. Thread-safe.

    N is the least number that no other process uses, so that restarts go on with the files there are.
    """

    def __init__(self, folder: Path, max_bytes: int, keep: int, most_waiting: int = MOST_WAITING) -> None:
        """Open the file.

        Args:
            folder: where the files are; it has to exist.
            max_bytes: size at which a file is rotated.
            keep: most files, the one that is written to included.
            most_waiting: events that wait at most; further ones are dropped and counted.

        Raises:
            OSError: where the folder does not exist, or cannot be written to.
        """
        self._writer = _Writer(*_own_path(folder), max_bytes, keep)
        self._waiting: queue.Queue[logging.LogRecord] = queue.Queue(most_waiting)
        self._thread = QueueListener(self._waiting, self._writer)
        self._lock = threading.Lock()
        self._dropped = 0
        self._thread.start()

    def hear(self, event: Recorded) -> None:
        """Have an event written soon. Raises what an earlier one failed with."""
        if self._writer.failure is not None:
            raise self._writer.failure
        with self._lock:
            try:
                if self._dropped:
                    self._waiting.put_nowait(_record(DroppedEvents("dropped", self._dropped)))
                    self._dropped = 0
                self._waiting.put_nowait(_record(event))
            except queue.Full:
                self._dropped += 1
                warn_once("events come faster than their file can be written: some are left out, and counted in it")

    def close(self) -> None:
        """Write what waits, and close the file."""
        self._waiting.join()  # a full queue has no place for the mark that ends the thread
        self._thread.stop()
        if self._dropped:
            self._writer.handle(_record(DroppedEvents("dropped", self._dropped)))
        self._writer.close()


class _Writer(RotatingFileHandler):
    """Writes events as JSON into files that only their owner can read, and remembers what it failed with."""

    def __init__(self, path: Path, lock: TextIO, max_bytes: int, keep: int) -> None:
        self.failure: BaseException | None = None
        self._lock_file = lock
        super().__init__(path, maxBytes=max_bytes, backupCount=keep - 1, encoding="utf-8")

    def emit(self, record: logging.LogRecord) -> None:
        if self.failure is None:
            record.msg = to_json(cast("Recorded", record.msg))
            super().emit(record)

    def format(self, record: logging.LogRecord) -> str:
        return str(record.msg)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: ARG002, N802 - the name and the argument are logging's
        self.failure = sys.exc_info()[1]

    def close(self) -> None:
        with suppress(OSError):  # what a full disk refuses is refused once more here; `failure` says so already
            super().close()
        self._lock_file.close()

    def _open(self) -> TextIOWrapper:
        return _open_private(self.baseFilename)


def _own_path(folder: Path) -> tuple[Path, TextIO]:
    """Return a path that no other process writes to, and the open file whose lock says so until it is closed."""
    import fcntl  # noqa: PLC0415 - Windows has none: there the sink is switched off, and nothing else

    number = 0
    while True:
        number += 1
        lock = _open_private(str(folder / f".events.{number}.lock"))
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            lock.close()
        else:
            return folder / f"events.{number}.jsonl", lock


def _open_private(path: str) -> TextIOWrapper:
    return open(path, "a", encoding="utf-8", opener=lambda name, flags: os.open(name, flags, 0o600))


def _record(event: Recorded) -> logging.LogRecord:
    return logging.LogRecord("ctx_hooks", logging.INFO, "", 0, event, None, None)
