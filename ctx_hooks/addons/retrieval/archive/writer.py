"""Writes texts to one store behind the requests, in the order of arrival, and remembers its recent writes."""

import asyncio
import math
import time
from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from sys import getsizeof
from typing import Literal, TypeAlias

from ctx_hooks.addons.retrieval.archive.disk import Disk
from ctx_hooks.addons.retrieval.archive.redis import Redis
from ctx_hooks.policy.addon_settings import ArchiveSettings
from ctx_hooks.runtime.deadline import Deadline
from ctx_hooks.runtime.warnings import warn_once
from ctx_hooks.runtime.worker import pool
from ctx_hooks.store.sealing import fits, sealed, tenant_name
from ctx_hooks.telemetry.addon_events import ArchiveEvent
from ctx_hooks.telemetry.listeners import emit

Store: TypeAlias = Disk | Redis
"""A backend. It sees names of tenants and sealed texts; its errors cost no request anything."""

QUEUE_BYTES = 32_000_000
"""Memory of the texts that wait to be written; running requests have the same texts in memory. It suffices for some thirty
requests that lose their whole window, or for some seconds without an answer of the store."""
BATCH_BYTES = 2_000_000
"""Size of one batch: sealed in some 50 ms, during which a reader of Redis waits for a few texts."""
SEAL_SECONDS = 10.0
"""Limit for a batch, on a machine that is busy with other work."""
MOST_KNOWN = 50_000
"""Handles that this process has written lately, 23 MB at most (measured): a hundred of each of 500 conversations."""
KNOWN_FRACTION = 0.5
"""Share of the retention: a text that is removed again after it is written again, so it is kept while it is in use."""


@dataclass(slots=True, eq=False)
class Batch:
    """Texts of one tenant that wait to be written together, by their handles.

    Attributes:
        size_bytes: their memory.
        written: resolves to whether they were written.
    """

    settings: ArchiveSettings
    tenant: bytes
    written: asyncio.Future[bool]
    texts: dict[str, str] = field(default_factory=dict, repr=False)
    size_bytes: int = 0


class Writer:
    """The queue of one store, bounded in bytes. Used on the event loop only.

    Attributes:
        store: the store that it writes to.
        read_again_at: after a failure, when requests read from it again, by the monotonic clock.
    """

    def __init__(self, store: Store, secret: bytes) -> None:
        self.store, self._secret = store, secret
        self.read_again_at = 0.0
        self._queue: deque[Batch] = deque()
        self._newest: dict[tuple[bytes, str], Batch] = {}
        self._known: OrderedDict[tuple[bytes, str], float] = OrderedDict()
        self._bytes = 0
        self._running: asyncio.Task[None] | None = None

    def add(self, settings: ArchiveSettings, tenant: bytes, texts: Mapping[str, str]) -> Batch | None:
        """Queue texts by their handles and return the last text's batch, None if that text is dropped.

        A text that is too large, or finds the queue full, is dropped.
        """
        batch, dropped = None, 0
        for handle, text in texts.items():
            size_bytes = getsizeof(text)
            if not fits(text) or self._bytes + size_bytes > QUEUE_BYTES:
                batch, dropped = None, dropped + 1
                continue
            batch = self._batch(settings, tenant, size_bytes)
            batch.texts[handle] = text
            batch.size_bytes += size_bytes
            self._bytes += size_bytes
            self._newest[tenant, handle] = batch
        if dropped:
            emit(ArchiveEvent("archive", time.time(), "dropped", dropped, settings.backend))
        if self._queue and (self._running is None or self._running.done()):
            self._running = asyncio.get_running_loop().create_task(self._write_all())
        return batch

    def _batch(self, settings: ArchiveSettings, tenant: bytes, size_bytes: int) -> Batch:
        """Return the last batch if it has room and the same owner and settings, else a new one after it."""
        last = self._queue[-1] if self._queue else None
        if last is None or (last.tenant, last.settings) != (tenant, settings) or last.size_bytes + size_bytes > BATCH_BYTES:
            last = Batch(settings, tenant, asyncio.get_running_loop().create_future())
            self._queue.append(last)
        return last

    def waiting(self, tenant: bytes, handle: str) -> str | None:
        """Return a text that is not written yet, None for any other."""
        found = self._newest.get((tenant, handle))
        return None if found is None else found.texts[handle]

    def has(self, settings: ArchiveSettings, tenant: bytes, handle: str) -> bool:
        """Whether a text waits to be written, or was written lately."""
        written_at = self._known.get((tenant, handle), -math.inf)
        is_known = time.monotonic() - written_at < settings.retention_seconds * KNOWN_FRACTION
        return is_known or (tenant, handle) in self._newest

    def lose(self, tenant: bytes, handle: str) -> None:
        """Note that the store has lost a text."""
        self._known.pop((tenant, handle), None)

    async def _write_all(self) -> None:
        while self._queue:
            batch, written = self._queue.popleft(), False
            try:
                written = await self._write(batch)
            finally:  # also if this task is cancelled
                self._end(batch, written=written)

    def _end(self, batch: Batch, *, written: bool) -> None:
        """Release a batch, and report to its waiters whether it is written."""
        outcome: Literal["stored", "failed"] = "stored" if written else "failed"
        emit(ArchiveEvent("archive", time.time(), outcome, len(batch.texts), batch.settings.backend))
        self._bytes -= batch.size_bytes
        for key in ((batch.tenant, handle) for handle in batch.texts):
            if self._newest.get(key) is batch:
                del self._newest[key]
            if written:
                self._known[key] = time.monotonic()
                self._known.move_to_end(key)
        while len(self._known) > MOST_KNOWN:
            self._known.popitem(last=False)
        if not batch.written.done():  # the waiter may have left
            batch.written.set_result(written)

    async def _write(self, batch: Batch) -> bool:
        settings, tenant, secret = batch.settings, batch.tenant, self._secret

        def values() -> dict[str, bytes]:
            return {handle: sealed(text, tenant, handle, secret) for handle, text in batch.texts.items()}

        try:
            found = await pool.run(tenant, values, Deadline(SEAL_SECONDS))
            await self.store.write(tenant_name(tenant), found, settings.retention_seconds, settings.size_limit_bytes)
        except Exception as error:  # noqa: BLE001 - a store may fail in any way; the log names neither text nor owner
            warn_once(f"ctx_hooks cannot write to the archive ({settings.backend}): {type(error).__name__}")
            return False
        return True
