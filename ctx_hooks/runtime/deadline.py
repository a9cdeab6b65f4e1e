"""When the work on one request has to stop. Whatever is computed before then never depends on the clock."""

from __future__ import annotations

import math
import time


class CompressionTimeoutError(Exception):
    """The time for a compression is over, or nobody waits for it any more."""


class Deadline:
    """Stops the work of one request: long loops call `check`, which raises CompressionTimeoutError when time is up.

    Without `seconds` it is only reached by `stop`: for work that holds up no event loop.
    """

    __slots__ = ("_ends_at", "_stopped")

    def __init__(self, seconds: float = math.inf) -> None:
        self._ends_at = time.monotonic() + seconds
        self._stopped = False

    def check(self) -> None:
        """Raise CompressionTimeoutError when the seconds are over, or `stop` was called in whatever thread."""
        if self._stopped or time.monotonic() >= self._ends_at:
            raise CompressionTimeoutError

    @property
    def seconds_left(self) -> float | None:
        """The seconds until the deadline, 0 behind it, None without one."""
        return None if self._ends_at == math.inf else max(0.0, self._ends_at - time.monotonic())

    def stop(self) -> None:
        """Let the next `check` raise."""
        self._stopped = True
