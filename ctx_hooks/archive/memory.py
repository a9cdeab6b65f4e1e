"""Sealed texts in the memory of one worker process, bounded in bytes and time."""

from __future__ import annotations

import heapq
import time
from collections.abc import Mapping

ENTRY_BYTES = 400
"""Memory of an entry beside its text: names, key, value, and its places in the map and the queue (measured: 380)."""

MOST_STALE = 1_000
"""A text that is written again leaves its old place in the queue. With more such places than texts the queue is rebuilt."""


class Memory:
    """The store of one process. Used on the event loop alone."""

    def __init__(self) -> None:
        self._values: dict[tuple[str, str], tuple[bytes, float]] = {}
        self._queue: list[tuple[float, tuple[str, str]]] = []
        self._bytes = 0

    @property
    def size_bytes(self) -> int:
        """The memory that is used, in bytes."""
        return self._bytes

    async def write(self, tenant: str, sealed: Mapping[str, bytes], kept_seconds: float, max_bytes: int) -> None:
        """Store sealed texts; expired ones go, and above the bound those that would expire first."""
        now = time.time()
        expires_at = now + kept_seconds
        for handle, value in sealed.items():
            self._forget((tenant, handle))
            self._values[tenant, handle] = value, expires_at
            self._bytes += ENTRY_BYTES + len(value)
            heapq.heappush(self._queue, (expires_at, (tenant, handle)))
        while self._queue and (self._queue[0][0] <= now or self._bytes > max_bytes):
            at, key = heapq.heappop(self._queue)
            if key in self._values and self._values[key][1] == at:  # else it was written again since
                self._forget(key)
        if len(self._queue) > MOST_STALE + 2 * len(self._values):
            self._queue = [(at, key) for key, (_, at) in self._values.items()]
            heapq.heapify(self._queue)

    async def read(self, tenant: str, handle: str) -> bytes | None:
        """Return a sealed text, None where there is none, or none any more."""
        value, expires_at = self._values.get((tenant, handle), (None, 0.0))
        return value if expires_at > time.time() else None

    def _forget(self, key: tuple[str, str]) -> None:
        value, _ = self._values.pop(key, (b"", 0.0))
        self._bytes -= ENTRY_BYTES + len(value) if value else 0
