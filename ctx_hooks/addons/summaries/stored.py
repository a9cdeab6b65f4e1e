"""The written summaries of conversations, which compaction holds which, and the flight of the next one.

Known in this process, and to the other workers through LiteLLM's Redis when it has one, a record each. A field is
only ever swapped: it changes where it still has the value that the writer has read, so of two workers one is first, and the
other takes what the first has written. Summaries are text of conversations: they are encrypted where the operator has a
secret, and Redis and each process forget them after KEPT_SECONDS.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b

from ctx_hooks.addons.summaries.record import (
    CHOSEN,
    FLIGHT,
    LARGEST_VALUE_BYTES,
    WRITTEN,
    Entry,
    Flight,
    Signed,
    Stored,
    fields_of,
    flight_entry,
    put,
    record_of,
    stored_of,
)
from ctx_hooks.compaction.summary.model_written import Choice, WrittenSummary
from ctx_hooks.formats.fields import compact_json
from ctx_hooks.runtime.deadline import Deadline
from ctx_hooks.runtime.worker import Workers
from ctx_hooks.store.sealing import opened, sealed, secret_of_environment, tenant_key
from ctx_hooks.store.shared_store import DEAD_SECONDS, SharedStore, UnavailableError

KEY_PREFIX = "ctx_hooks:summaries:"
KEPT_SECONDS = 3 * 24 * 3600
"""After the last write: a session that is taken up again after a weekend finds its summary. What is forgotten costs a cache
rewrite and a call."""
FLIGHT_TIMEOUT_SECONDS = 5.0
"""No request is held up by this one. An event loop with a hundred requests takes seconds to hear what Redis has answered,
and a worker that gives up pays for the same summary once more."""
MOST_CONVERSATIONS = 500
"""Kept in this process; the one that was used longest ago is forgotten first. With a dozen compactions each, whose summaries
are as long as the budget allows (2 to 8 KB), these are some 50 MB."""
LARGEST_RECORD_BYTES = 2_000_000
"""Of a conversation in Redis; as many compactions as are kept, each with a longest summary in Chinese, have 1.6 MB."""
HANDLE = "summaries"
"""What a record is sealed under."""


@dataclass(slots=True)
class _Kept:
    """What this process knows of a conversation: its fields, when it forgets them, and the record that it has read.

    Attributes:
        read_digest: of that record, b"" where another one has to be read: a record of 2 MB takes 20 ms to open.
    """

    until_seconds: float
    fields: dict[str, Entry] = field(default_factory=dict)
    read_digest: bytes = b""


class StoredSummaries:
    """What is stored, by the key of a conversation. Used on the event loop only; records are opened in a thread."""

    def __init__(self, store: SharedStore) -> None:
        self._store = store
        self._secret = secret_of_environment()
        self._workers = Workers()
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    async def of(self, conversation: str, wait_seconds: float | None = None) -> Stored:
        """Return what is stored of a conversation, as far as this process knows it if Redis is slow.

        `wait_seconds`: how long one can wait who has the time; None for a request that has none.
        """
        if self._store.is_shared:
            with suppress(UnavailableError):  # what this process knows has to do
                if wait_seconds is None:
                    await self._store.briefly(partial(self._read, conversation), KEY_PREFIX + conversation)
                else:
                    await self._read(conversation, wait_seconds)
        return stored_of(conversation, self._known(conversation).fields)

    async def fly(self, conversation: str, old: Flight, new: Flight) -> bool:
        """Replace a flight by its next state; return whether it still was as it was read."""
        entry = flight_entry(new)
        return await self._swap(conversation, FLIGHT, flight_entry(old), entry) == entry

    async def write(self, conversation: str, summary: WrittenSummary, signed: Signed | None = None) -> None:
        """Store a summary that was accepted; one of the same prefix that is there already stays."""
        entry: Entry = (round(time.time(), 3), summary.length, *(signed or (summary.text,)))
        if len(compact_json(entry).encode("utf-8", "replace")) <= LARGEST_VALUE_BYTES:
            await self._swap(conversation, WRITTEN + summary.prefix, None, entry)

    def signed(self, conversation: str, prefix: str) -> Signed | None:
        """Return a provider's own summary that this process knows, None for one that is only text."""
        _, _, *texts = self._known(conversation).fields.get(WRITTEN + prefix, (0, 0))
        return Signed(*texts) if len(texts) > 1 else None

    async def forget_signature(self, conversation: str, prefix: str) -> None:
        """Store a summary as text only, for all workers: its provider does not take the signature."""
        entry = self._known(conversation).fields.get(WRITTEN + prefix)
        if entry is not None:
            await self._swap(conversation, WRITTEN + prefix, entry, entry[:3])

    async def choose(self, conversation: str, choice: Choice) -> str:
        """Store which summary a compaction holds, unless that is settled; return the prefix that it holds from now on.

        A request waits for it. What a slow Redis answers too late holds for the requests after this one.
        """
        name, entry = CHOSEN + choice.compaction, (round(time.time(), 3), choice.prefix)
        try:
            found = await self._store.briefly(partial(self._swap, conversation, name, None, entry))
        except UnavailableError:
            found = self._swap_here(conversation, name, None, entry)
        return found[1] if found else ""

    async def _read(self, conversation: str, wait_seconds: float = DEAD_SECONDS) -> None:
        record = await self._store.read(KEY_PREFIX + conversation, LARGEST_RECORD_BYTES, wait_seconds)
        read_digest = self._known(conversation).read_digest

        def opened_if_new() -> tuple[bytes, dict[str, Entry] | None]:
            digest = blake2b(record).digest()
            return digest, None if digest == read_digest else self._opened(conversation, record)

        digest, found = await self._workers.run(opened_if_new, Deadline())
        if found is None:
            return
        kept = self._known(conversation)
        kept.fields.update(found)
        put(kept.fields, FLIGHT, found.get(FLIGHT))  # Redis knows of every worker's, this process of its own
        kept.read_digest = digest

    async def _swap(self, conversation: str, name: str, old: Entry | None, new: Entry | None) -> Entry | None:
        """Write a field in Redis, and of this process, where it says `old`; return what it says then."""
        found: dict[str, Entry] = {}

        def changed(record: bytes) -> bytes:
            nonlocal found
            found = self._opened(conversation, record)
            if found.get(name) != old:
                return record
            put(found, name, new)
            tenant = tenant_key(HANDLE, conversation, self._secret)
            return sealed(record_of(found), tenant, HANDLE, "none", self._secret)

        async def change(record: bytes) -> bytes:
            return await self._workers.run(lambda: changed(record), Deadline())

        bounds = LARGEST_RECORD_BYTES, KEPT_SECONDS, FLIGHT_TIMEOUT_SECONDS
        try:
            await self._store.change(KEY_PREFIX + conversation, change, *bounds)
        except UnavailableError:
            return self._swap_here(conversation, name, old, new)
        return self._settle(conversation, name, found.get(name))

    def _opened(self, conversation: str, record: bytes) -> dict[str, Entry]:
        """Return the fields of a record that say something: whoever has the Redis can write anything there."""
        text = opened(record, tenant_key(HANDLE, conversation, self._secret), HANDLE, self._secret)
        return fields_of(text or "", time.time())

    def _swap_here(self, conversation: str, name: str, old: Entry | None, new: Entry | None) -> Entry | None:
        """Write a field of this process where it says `old`; return what it says then."""
        known = self._known(conversation).fields.get(name)
        return self._settle(conversation, name, new if known == old else known)

    def _settle(self, conversation: str, name: str, entry: Entry | None) -> Entry | None:
        """Note what a field says after a swap, and return it, None where it is forgotten at once."""
        kept = self._known(conversation)
        put(kept.fields, name, entry)
        kept.read_digest = b""
        kept.until_seconds = time.monotonic() + KEPT_SECONDS
        return kept.fields.get(name)

    def _known(self, conversation: str) -> _Kept:
        """Return what is known of a conversation, and forget the others that Redis has forgotten by now, or are too many."""
        now = time.monotonic()
        kept = self._kept.pop(conversation, None)
        if kept is None or kept.until_seconds < now:
            kept = _Kept(now + KEPT_SECONDS)
        self._kept[conversation] = kept
        while len(self._kept) > MOST_CONVERSATIONS or next(iter(self._kept.values())).until_seconds < now:
            self._kept.popitem(last=False)
        return kept
