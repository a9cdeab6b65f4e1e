"""The archive of a worker process: the stores that policies name, and the queue of writes before them."""

import asyncio
import secrets
import shutil
import time
import weakref
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from sys import getsizeof
from tempfile import mkdtemp
from typing import TypeAlias

from ctx_hooks.addons.retrieval.archive.disk import Disk
from ctx_hooks.addons.retrieval.archive.redis import Redis
from ctx_hooks.policy.addon_settings import ArchiveSettings
from ctx_hooks.runtime.deadline import Deadline
from ctx_hooks.runtime.warnings import warn_once
from ctx_hooks.runtime.worker import pool
from ctx_hooks.store.sealing import fits, opened, sealed, secret_of_environment, tenant_key, tenant_name
from ctx_hooks.store.shared_store import SharedStore, UnavailableError
from ctx_hooks.telemetry.events import ArchiveEvent, ArchiveOutcome
from ctx_hooks.telemetry.listeners import emit

GET_SECONDS = 0.3
"""How long a request waits: longer than HURRY_SECONDS for a Redis, short beside a model's answer."""
QUEUE_BYTES = 32_000_000
"""Memory of the texts that wait to be written: of some thirty requests that lose their whole window."""
SEAL_SECONDS = 10.0
"""Limit for the texts of one compaction, on a machine that is busy with other work."""
MOST_WRITTEN = 50_000
"""Handles that this process remembers to have written: a hundred of each of 500 conversations."""
WRITTEN_FRACTION = 0.5
"""Share of the retention after which a text that is removed again is written again, so that it is kept while in use."""
_Key: TypeAlias = tuple[ArchiveSettings, bytes, str]
"""Settings, tenant and handle of a text."""


class Archive:
    """Removed texts by tenant and handle. Used on the event loop only, except `store`. None of its methods fails."""

    def __init__(self, shared: SharedStore, secret: bytes | None = None) -> None:
        self._shared = shared
        self._secret = secret_of_environment() if secret is None else secret
        self._stores: dict[tuple[str, str | None], tuple[Disk | Redis, bytes]] = {}
        self._writes = asyncio.Lock()  # one thread at a time: compressions need the others
        self._waiting: dict[_Key, str] = {}
        self._waiting_bytes = 0
        self._write_again_at: dict[_Key, float] = {}
        self.writing: set[asyncio.Task[None]] = set()

    def tenant(self, kind: str, identifier: str) -> bytes:
        """Return the key of a tenant; its kind and id are as `Call.owner` returns them."""
        return tenant_key(kind, identifier, self._secret)

    def store(
        self, loop: asyncio.AbstractEventLoop, settings: ArchiveSettings, tenant: bytes, texts: Mapping[str, str]
    ) -> None:
        """Queue texts to be written by their handles, in any thread, and return at once; `loop` is the event loop.

        A text that is too large, or finds the queue full, is dropped. A text that was written lately is not written again.
        """
        with suppress(RuntimeError):  # the loop is closed: the process ends
            loop.call_soon_threadsafe(self._queue, settings, tenant, texts)

    async def get(self, settings: ArchiveSettings, tenant: bytes, handle: str) -> str | None:
        """Return a text of a tenant, None if it is absent, expired, broken, another tenant's, or not read in time."""
        key = settings, tenant, handle
        text = self._waiting.get(key)
        if text is not None:
            return text
        try:
            store, secret = self._at(settings)
            value = await asyncio.wait_for(store.read(tenant_name(tenant), handle), GET_SECONDS)
            if value is not None:
                text = await pool.run(tenant, lambda: opened(value, tenant, handle, secret), Deadline(GET_SECONDS))
        except UnavailableError:
            return None  # Redis has one breaker for all who use it
        except Exception as error:  # noqa: BLE001 - a store may fail in any way; the log names neither text nor owner
            warn_once(f"ctx_hooks cannot read from the archive ({settings.backend}): {type(error).__name__}")
            return None
        if text is None:  # the store has lost it
            self._write_again_at.pop(key, None)
        return text

    def _at(self, settings: ArchiveSettings) -> tuple[Disk | Redis, bytes]:
        """Return the store that settings name, and the secret of its texts."""
        place = settings.backend, settings.path if settings.backend == "disk" else None
        if place not in self._stores:
            if settings.backend == "redis":
                self._stores[place] = Redis(self._shared), self._secret
            elif settings.path is not None:
                self._stores[place] = Disk(Path(settings.path)), self._secret
            else:  # what a killed process leaves, nobody can read
                folder = mkdtemp(prefix="ctx_hooks_")
                weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
                self._stores[place] = Disk(Path(folder)), secrets.token_bytes(32)
        return self._stores[place]

    def _queue(self, settings: ArchiveSettings, tenant: bytes, texts: Mapping[str, str]) -> None:
        queued, dropped = dict[str, str](), 0
        for handle, text in texts.items():
            key, size_bytes = (settings, tenant, handle), getsizeof(text)
            if key in self._waiting or time.monotonic() < self._write_again_at.get(key, 0.0):
                continue
            if fits(text) and self._waiting_bytes + size_bytes <= QUEUE_BYTES:
                queued[handle] = self._waiting[key] = text
                self._waiting_bytes += size_bytes
            else:
                dropped += 1
        if dropped:
            _tell("dropped", dropped, settings)
        if queued:
            task = asyncio.get_running_loop().create_task(self._write(settings, tenant, queued))
            self.writing.add(task)
            task.add_done_callback(self.writing.discard)

    async def _write(self, settings: ArchiveSettings, tenant: bytes, texts: Mapping[str, str]) -> None:
        outcome: ArchiveOutcome = "failed"
        try:
            async with self._writes:
                store, secret = self._at(settings)

                def values() -> dict[str, bytes]:
                    return {handle: sealed(text, tenant, handle, secret) for handle, text in texts.items()}

                found = await pool.run(tenant, values, Deadline(SEAL_SECONDS))
                await store.write(tenant_name(tenant), found, settings.retention_seconds, settings.size_limit_bytes)
            outcome = "stored"
            if len(self._write_again_at) > MOST_WRITTEN:
                self._write_again_at.clear()
            again_at = time.monotonic() + settings.retention_seconds * WRITTEN_FRACTION
            self._write_again_at |= {(settings, tenant, handle): again_at for handle in texts}
        except Exception as error:  # noqa: BLE001 - a store may fail in any way; the log names neither text nor owner
            warn_once(f"ctx_hooks cannot write to the archive ({settings.backend}): {type(error).__name__}")
        finally:  # also if this task is cancelled
            for handle, text in texts.items():
                del self._waiting[settings, tenant, handle]
                self._waiting_bytes -= getsizeof(text)
            _tell(outcome, len(texts), settings)


def _tell(outcome: ArchiveOutcome, texts: int, settings: ArchiveSettings) -> None:
    emit(ArchiveEvent("archive", time.time(), outcome, texts, settings.backend))
