"""The archive of a worker process: the store that a policy names, and the queue of writes before it."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from ctx_hooks.addons.retrieval.archive import MOST_READ_BYTES
from ctx_hooks.addons.retrieval.archive.disk import Disk, Memory
from ctx_hooks.addons.retrieval.archive.redis import Redis
from ctx_hooks.addons.retrieval.archive.writer import Store, Writer
from ctx_hooks.conversation.cut_texts import is_handle
from ctx_hooks.policy.addon_settings import ArchiveSettings
from ctx_hooks.runtime.deadline import Deadline
from ctx_hooks.runtime.warnings import warn_once
from ctx_hooks.runtime.worker import pool
from ctx_hooks.store.sealing import opened, secret_of_environment, tenant_key, tenant_name
from ctx_hooks.store.shared_store import SharedStore, UnavailableError

Place: TypeAlias = tuple[str, str | None]
"""A backend, and the folder of one on disk."""

GET_SECONDS = 0.3
"""How long a request waits: longer than HURRY_SECONDS for a Redis, short beside a model's answer. A late text is
made again from the request."""
READ_AGAIN_SECONDS = 10.0
"""The pause after a failure: only one request waits for a store that hangs."""


class Archives:
    """Removed texts by tenant and handle. Used on the event loop only; none of its methods fails.

    Args:
        store: what the workers share.
        secret: the operator's; if unset, the environment's. With a secret, stored texts are encrypted.
    """

    def __init__(self, store: SharedStore, secret: bytes | None = None) -> None:
        self._store = store
        self._secret = secret_of_environment() if secret is None else secret
        self._writers: dict[Place, Writer] = {}

    def tenant(self, kind: str, identifier: str) -> bytes:
        """Return the key of a tenant; its kind and id are as `Call.owner` returns them."""
        return tenant_key(kind, identifier, self._secret)

    def put(self, settings: ArchiveSettings, tenant: bytes, texts: Mapping[str, str | None]) -> bool:
        """Queue texts to be stored, by their handles, and return at once.

        A text that is too large, or finds the queue full, is dropped. A text that was stored lately is not stored again.
        None represents an unknown text.

        Returns:
            Whether each text waits to be written, or was written by this process lately.
        """
        writer = self._at(settings)
        new = {h: text for h, text in texts.items() if text is not None and not writer.has(settings, tenant, h)}
        writer.add(settings, tenant, new)
        return all(writer.has(settings, tenant, handle) for handle in texts)

    async def get(self, settings: ArchiveSettings, tenant: bytes, handle: str) -> str | None:
        """Return a text of a tenant, None if it is absent, expired, broken, another tenant's, or not read in time."""
        return (await self.get_all(settings, tenant, [handle])).get(handle) if is_handle(handle) else None

    async def get_all(self, settings: ArchiveSettings, tenant: bytes, handles: Sequence[str]) -> dict[str, str]:
        """Return the texts of a tenant by their handles, without those that `get` returns None for.

        Beyond MOST_READ_BYTES, the last handles are not read.
        """
        writer = self._at(settings)
        waiting = ((handle, writer.waiting(tenant, handle)) for handle in handles)
        texts = {handle: text for handle, text in waiting if text is not None}
        stored = [handle for handle in handles if handle not in texts]
        if not stored or time.monotonic() < writer.read_again_at:
            return texts
        try:
            texts |= await asyncio.wait_for(self._read(writer.store, tenant, stored), GET_SECONDS)
        except UnavailableError:
            return texts  # Redis has one breaker for all who use it
        except Exception as error:  # noqa: BLE001 - a store may fail in any way; the log names neither text nor owner
            writer.read_again_at = time.monotonic() + READ_AGAIN_SECONDS
            warn_once(f"ctx_hooks cannot read from the archive ({settings.backend}): {type(error).__name__}")
            return texts
        for handle in stored:
            if handle not in texts:
                writer.lose(tenant, handle)
        return texts

    async def _read(self, store: Store, tenant: bytes, handles: Sequence[str]) -> dict[str, str]:
        values = await store.read(tenant_name(tenant), handles)

        def texts() -> dict[str, str]:
            found, left_chars = {}, MOST_READ_BYTES
            for handle, value in values.items():
                text = opened(value, tenant, handle, self._secret) if left_chars > 0 else None
                if text is not None:
                    found[handle] = text
                    left_chars -= len(text)
            return found

        return await pool.run(tenant, texts, Deadline(GET_SECONDS)) if values else {}

    def _at(self, settings: ArchiveSettings) -> Writer:
        place = settings.backend, settings.path if settings.backend == "disk" else None
        if place not in self._writers:
            if settings.backend == "redis":
                store: Store = Redis(self._store)
            else:
                store = Disk(Path(settings.path) if settings.backend == "disk" and settings.path else Memory())
            self._writers[place] = Writer(store, self._secret)
        return self._writers[place]
