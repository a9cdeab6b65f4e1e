"""How long each phase of the work on one request took. No result depends on it."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


class Timings(dict[str, float]):
    """The milliseconds of each phase so far; a phase that is entered again adds up.

    >>> timings = Timings()
    >>> with timings.phase("counting"):
    ...     pass
    >>> list(timings)
    ['counting']
    """

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time of the block to a phase, also where it fails."""
        started = time.perf_counter()
        try:
            yield
        finally:
            self[name] = self.get(name, 0.0) + (time.perf_counter() - started) * 1e3
