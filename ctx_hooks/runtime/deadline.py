"""The deadline of the work on one request, and the time of each of its phases. No result depends on the clock."""

import math
import time

COMPRESSION_SECONDS = 10.0
"""A request that takes longer to compress loses its oldest turns instead. The wait for a thread counts."""


class CompressionTimeoutError(Exception):
    """The time for a compression is over, or its caller has left."""


class Deadline:
    """Stops the work on one request, which calls `check`, some seconds from now, or once `stop` is called."""

    __slots__ = ("_ends_at", "_stopped")

    def __init__(self, seconds: float = math.inf) -> None:
        self._ends_at = time.monotonic() + seconds
        self._stopped = False

    def check(self) -> None:
        """Raise CompressionTimeoutError when the time is over or any thread has called `stop`."""
        if self._stopped or self.seconds_left == 0:
            raise CompressionTimeoutError

    @property
    def seconds_left(self) -> float | None:
        """The seconds until the deadline: 0 after it, None without one."""
        return None if self._ends_at == math.inf else max(0.0, self._ends_at - time.monotonic())

    def stop(self) -> None:
        """Make every later `check` raise."""
        self._stopped = True


def compression_deadline() -> Deadline:
    """Return the deadline of a compression that begins now."""
    return Deadline(COMPRESSION_SECONDS)


class Timings(dict[str, float]):
    """The milliseconds of each phase so far; a phase that is entered again adds up."""

    def add(self, phase: str, started: float) -> None:
        """Add the time since `started`, by `time.perf_counter`, to a phase."""
        self[phase] = self.get(phase, 0.0) + (time.perf_counter() - started) * 1e3
