"""Sealed texts in the memory of one worker process, bounded in bytes and time."""

from __future__ import annotations

import heapq
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence

ENTRY_BYTES = 400
"""Memory of an entry beside its text: names, key, value, and its places in the map and the queue (measured: 380)."""

_NONE: tuple[bytes | None, float] = (None, 0.0)
MOST_STALE = 1_000
"""A text that is written again leaves its old place in the queue. With more such places than texts the queue is rebuilt."""


class Memory:
    """The store of one process. Used on the event loop only."""

    def __init__(self) -> None:
        self._values: dict[str, OrderedDict[str, tuple[bytes, float]]] = {}
        self._sizes: dict[str, int] = {}
        self._queue: list[tuple[float, str, str]] = []
        self._bytes = 0

    @property
    def size_bytes(self) -> int:
        """The memory that is used, in bytes."""
        return self._bytes

    async def write(self, tenant: str, sealed: Mapping[str, bytes], kept_seconds: float, max_bytes: int) -> None:
        """Store sealed texts; expired ones go, and above the bound the oldest of the tenant that has the most."""
        now = time.time()
        expires_at = now + kept_seconds
        for handle, value in sealed.items():
            self._forget(tenant, handle)
            self._values.setdefault(tenant, OrderedDict())[handle] = value, expires_at
            self._resize(tenant, ENTRY_BYTES + len(value))
            heapq.heappush(self._queue, (expires_at, tenant, handle))
        while self._queue and self._queue[0][0] <= now:
            at, owner, handle = heapq.heappop(self._queue)
            if self._found(owner, handle)[1] == at:  # else it was written again since
                self._forget(owner, handle)
        while self._bytes > max_bytes:
            self._shrink_largest(max_bytes)
        if len(self._queue) > MOST_STALE + 2 * sum(map(len, self._values.values())):
            self._queue = [(at, owner, h) for owner, held in self._values.items() for h, (_, at) in held.items()]
            heapq.heapify(self._queue)

    async def read(self, tenant: str, handles: Sequence[str]) -> Mapping[str, bytes]:
        """Return the sealed texts that there still are, by their handles."""
        now, found = time.time(), ((handle, *self._found(tenant, handle)) for handle in handles)
        return {handle: value for handle, value, expires_at in found if value is not None and expires_at > now}

    def _found(self, tenant: str, handle: str) -> tuple[bytes | None, float]:
        held = self._values.get(tenant)
        return held.get(handle, _NONE) if held is not None else _NONE

    def _shrink_largest(self, max_bytes: int) -> None:
        """Remove the oldest texts of the tenant that has the most, until there is room or it has an equal share."""
        largest = max(self._sizes, key=self._sizes.__getitem__)
        share_bytes = max_bytes / len(self._sizes)
        while largest in self._sizes:
            self._forget(largest, next(iter(self._values[largest])))
            if self._bytes <= max_bytes or self._sizes.get(largest, 0) <= share_bytes:
                return

    def _forget(self, tenant: str, handle: str) -> None:
        value, _ = self._found(tenant, handle)
        if value is not None:
            del self._values[tenant][handle]
            self._resize(tenant, -ENTRY_BYTES - len(value))

    def _resize(self, tenant: str, added_bytes: int) -> None:
        self._bytes += added_bytes
        self._sizes[tenant] = self._sizes.get(tenant, 0) + added_bytes
        if not self._sizes[tenant]:
            del self._sizes[tenant], self._values[tenant]
