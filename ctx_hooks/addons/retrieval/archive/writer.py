"""Writes texts to one store behind the requests, in the order in which they came, and knows what it has written lately."""

from __future__ import annotations

import asyncio
import math
import time
from collections import OrderedDict, deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from sys import getsizeof
from typing import Literal

from ctx_hooks.addons.retrieval.archive import Store
from ctx_hooks.policy.addon_settings import ArchiveSettings
from ctx_hooks.runtime.deadline import Deadline
from ctx_hooks.runtime.warnings import warn_once
from ctx_hooks.runtime.worker import Workers
from ctx_hooks.store.sealing import fits, sealed, tenant_name
from ctx_hooks.telemetry.addon_events import ArchiveEvent
from ctx_hooks.telemetry.listeners import emit

QUEUE_BYTES = 32_000_000
"""Memory of the texts that wait to be written, which the requests hold as well while they run: some thirty requests whose
whole window was cut, or what comes in while a store does not answer for some seconds."""
BATCH_BYTES = 2_000_000
"""Of texts that are written at once: sealed in some 50 ms, during which a reader of Redis waits for a few of them."""
SEAL_SECONDS = 10.0
"""Most for a batch, on a machine that is busy with other things."""
MOST_KNOWN = 50_000
"""Handles that this process has written lately, 23 MB at most (measured): a hundred of each of 500 conversations."""
KNOWN_FRACTION = 0.5
"""Of the retention: a text that is cut again later than that is written again, and so is kept as long as it is in use."""


@dataclass(frozen=True, slots=True, eq=False)
class Waiting:
    """A text that waits to be written. `written` tells whether it was, once that is known."""

    settings: ArchiveSettings
    tenant: bytes
    handle: str
    text: str
    written: asyncio.Future[bool] = field(repr=False)

    @property
    def size_bytes(self) -> int:
        """Memory of the text, in bytes."""
        return getsizeof(self.text)


class Writer:
    """The queue of one store, bounded in bytes. Used on the event loop only.

    Attributes:
        store: what it writes to.
        read_again_at: until when no request reads from it, by the monotonic clock: after a failure.
    """

    def __init__(self, store: Store, secret: bytes, workers: Workers) -> None:
        self.store, self._secret, self._workers = store, secret, workers
        self.read_again_at = 0.0
        self._queue: deque[Waiting] = deque()
        self._newest: dict[tuple[bytes, str], Waiting] = {}
        self._known: OrderedDict[tuple[bytes, str], float] = OrderedDict()
        self._bytes = 0
        self._running: asyncio.Task[None] | None = None

    def add(self, settings: ArchiveSettings, tenant: bytes, texts: Mapping[str, str]) -> list[asyncio.Future[bool]]:
        """Queue texts by their handles and return what tells whether each was written.

        Nothing for those that are dropped: they are too large, or the queue is full. One event tells how many.
        """
        loop = asyncio.get_running_loop()
        queued = []
        for handle, text in texts.items():
            waiting = Waiting(settings, tenant, handle, text, loop.create_future())
            if fits(text) and self._bytes + waiting.size_bytes <= QUEUE_BYTES:
                self._queue.append(waiting)
                self._newest[tenant, handle] = waiting
                self._bytes += waiting.size_bytes
                queued.append(waiting.written)
        if len(queued) < len(texts):
            emit(ArchiveEvent("archive", time.time(), "dropped", len(texts) - len(queued), settings.backend))
        if queued and (self._running is None or self._running.done()):
            self._running = loop.create_task(self._write_all())
        return queued

    def waiting(self, tenant: bytes, handle: str) -> str | None:
        """Return a text that is not written yet, None for any other."""
        found = self._newest.get((tenant, handle))
        return None if found is None else found.text

    def has(self, settings: ArchiveSettings, tenant: bytes, handle: str) -> bool:
        """Whether a text waits to be written, or was written lately."""
        written_at = self._known.get((tenant, handle), -math.inf)
        is_known = time.monotonic() - written_at < settings.retention_seconds * KNOWN_FRACTION
        return is_known or (tenant, handle) in self._newest

    def lose(self, tenant: bytes, handle: str) -> None:
        """Note that the store has a text no longer."""
        self._known.pop((tenant, handle), None)

    async def _write_all(self) -> None:
        while self._queue:
            batch = self._next_batch()
            written = False
            try:
                written = await self._write(batch)
            finally:  # also where this task is cancelled
                self._end(batch, written=written)

    def _end(self, batch: list[Waiting], *, written: bool) -> None:
        """Let go of a batch, and tell those who wait whether it is written."""
        outcome: Literal["stored", "failed"] = "stored" if written else "failed"
        emit(ArchiveEvent("archive", time.time(), outcome, len(batch), batch[0].settings.backend))
        for waiting in batch:
            key = waiting.tenant, waiting.handle
            self._bytes -= waiting.size_bytes
            if self._newest.get(key) is waiting:
                del self._newest[key]
            if written:
                self._known[key] = time.monotonic()
                self._known.move_to_end(key)
                if len(self._known) > MOST_KNOWN:
                    self._known.popitem(last=False)
            if not waiting.written.done():  # who waited for it may have gone
                waiting.written.set_result(written)

    def _next_batch(self) -> list[Waiting]:
        """Return the next texts of one tenant and one policy."""
        batch, size_bytes = [self._queue.popleft()], 0
        tenant, settings = batch[0].tenant, batch[0].settings
        while self._queue and (self._queue[0].tenant, self._queue[0].settings) == (tenant, settings):
            size_bytes += batch[-1].size_bytes
            if size_bytes + self._queue[0].size_bytes > BATCH_BYTES:
                break
            batch.append(self._queue.popleft())
        return batch

    async def _write(self, batch: list[Waiting]) -> bool:
        settings, tenant = batch[0].settings, batch[0].tenant
        try:
            values = await self._workers.run(
                lambda: {w.handle: sealed(w.text, tenant, w.handle, settings.compress, self._secret) for w in batch},
                Deadline(SEAL_SECONDS),
            )
            await self.store.write(tenant_name(tenant), values, settings.retention_seconds, settings.size_limit_bytes)
        except Exception as error:  # noqa: BLE001 - a store may fail in any way; whose text it was, and what, is not told
            warn_once(f"ctx_hooks cannot write to the archive ({settings.backend}): {type(error).__name__}")
            return False
        return True
