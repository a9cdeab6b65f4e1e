"""How long each phase of the work on one request took. No result depends on it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import MappingProxyType


class Timings:
    """The milliseconds of each phase so far; a phase that is entered again adds up.

    >>> timings = Timings()
    >>> with timings.phase("counting"):
    ...     pass
    >>> list(timings.milliseconds)
    ['counting']
    """

    __slots__ = ("_milliseconds",)

    def __init__(self) -> None:
        self._milliseconds: dict[str, float] = {}

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Add the time of the block to a phase, also where it fails."""
        started = time.perf_counter()
        try:
            yield
        finally:
            spent = (time.perf_counter() - started) * 1e3
            self._milliseconds[name] = self._milliseconds.get(name, 0.0) + spent

    @property
    def milliseconds(self) -> Mapping[str, float]:
        """The milliseconds by phase, as they are now."""
        return MappingProxyType(dict(self._milliseconds))
