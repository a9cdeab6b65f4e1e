"""The written summaries of conversations, which compaction holds which, and the flight of the next one.

Known in this process, and to the other workers through LiteLLM's Redis when it has one, a record each. A record
changes only where it still is as its writer has read it, so of two workers one is first, and the other takes what the first
has written. Summaries are text of conversations: they are encrypted where the operator has a
secret, and Redis and each process forget them after KEPT_SECONDS.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from hashlib import blake2b

from ctx_hooks.addons.summaries.record import (
    LARGEST_VALUE_BYTES,
    MOST_MESSAGES,
    NOTHING,
    Flight,
    Record,
    Written,
    record_of,
    text_of,
)
from ctx_hooks.compaction.summary.model_written import Choice, WrittenSummary
from ctx_hooks.runtime.deadline import Deadline
from ctx_hooks.runtime.worker import pool
from ctx_hooks.store.sealing import opened, sealed, secret_of_environment, tenant_key
from ctx_hooks.store.shared_store import DEAD_SECONDS, SharedStore, UnavailableError

KEY_PREFIX = "ctx_hooks:summary_record:"
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
    """What this process knows of a conversation, when it forgets that, and which record of Redis it has read last.

    Attributes:
        read_digest: of that record, b"" where another one has to be read: a record of 2 MB takes 20 ms to open.
    """

    until_seconds: float
    record: Record = NOTHING
    read_digest: bytes = b""


class StoredSummaries:
    """What is stored, by the key of a conversation. Used on the event loop only; records are opened in a thread."""

    def __init__(self, store: SharedStore) -> None:
        self._store = store
        self._secret = secret_of_environment()
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    async def of(self, conversation: str, wait_seconds: float | None = None) -> Record:
        """Return what is stored of a conversation, as far as this process knows it if Redis is slow.

        `wait_seconds`: how long one can wait who has the time; None for a request that has none.
        """
        if self._store.is_shared:
            with suppress(UnavailableError):  # what this process knows has to do
                if wait_seconds is None:
                    await self._store.briefly(partial(self._read, conversation), KEY_PREFIX + conversation)
                else:
                    await self._read(conversation, wait_seconds)
        return self._known(conversation).record

    async def fly(self, conversation: str, old: Flight, new: Flight) -> bool:
        """Replace a flight by its next state; return whether it still was as it was read."""
        return (await self._change(conversation, lambda record: record.flown(old, new))).flight == new

    async def write(self, conversation: str, summary: WrittenSummary) -> None:
        """Store a summary that was accepted; one of the same prefix that is there already stays."""
        written = Written(summary.length, summary.text)
        if len(written.text.encode()) <= LARGEST_VALUE_BYTES and summary.length <= MOST_MESSAGES:
            await self._change(conversation, lambda record: record.with_summary(summary.prefix, written))

    async def choose(self, conversation: str, choice: Choice) -> str:
        """Store which summary a compaction holds, unless that is settled; return the prefix that it holds from now on.

        A request waits for it. What a slow Redis answers too late holds for the requests after this one.
        """

        def chosen(record: Record) -> Record:
            return record.with_choice(choice)

        try:
            found = await self._store.briefly(partial(self._change, conversation, chosen))
        except UnavailableError:
            found = self._change_here(conversation, chosen)
        return found.chosen[choice.compaction]

    async def _read(self, conversation: str, wait_seconds: float = DEAD_SECONDS) -> None:
        value = await self._store.read(KEY_PREFIX + conversation, LARGEST_RECORD_BYTES, wait_seconds)
        read_digest = self._known(conversation).read_digest

        def opened_if_new() -> tuple[bytes, Record | None]:
            digest = blake2b(value).digest()
            return digest, None if digest == read_digest else self._opened(conversation, value)

        digest, found = await pool.run(conversation.rpartition(":")[0], opened_if_new, Deadline())
        if found is not None:
            kept = self._known(conversation)
            kept.record, kept.read_digest = kept.record.merged(found), digest

    async def _change(self, conversation: str, change: Callable[[Record], Record]) -> Record:
        """Change the record in Redis, and that of this process; return the one in Redis as it is then."""
        found = NOTHING

        def changed(value: bytes) -> bytes:
            nonlocal found
            before = self._opened(conversation, value)
            found = change(before)
            if found is before:
                return value
            return sealed(text_of(found), tenant_key(HANDLE, conversation, self._secret), HANDLE, self._secret)

        async def changed_in_thread(value: bytes) -> bytes:
            return await pool.run(conversation.rpartition(":")[0], lambda: changed(value), Deadline())

        bounds = LARGEST_RECORD_BYTES, KEPT_SECONDS, FLIGHT_TIMEOUT_SECONDS
        try:
            await self._store.change(KEY_PREFIX + conversation, changed_in_thread, *bounds)
        except UnavailableError:
            return self._change_here(conversation, change)
        self._settle(conversation, self._known(conversation).record.merged(found))
        return found

    def _opened(self, conversation: str, value: bytes) -> Record:
        """Return the record of a value: whoever has the Redis can write anything there."""
        return record_of(opened(value, tenant_key(HANDLE, conversation, self._secret), HANDLE, self._secret) or "")

    def _change_here(self, conversation: str, change: Callable[[Record], Record]) -> Record:
        """Change the record of this process, and return it."""
        found = change(self._known(conversation).record)
        self._settle(conversation, found)
        return found

    def _settle(self, conversation: str, record: Record) -> None:
        kept = self._known(conversation)
        kept.record, kept.read_digest = record, b""
        kept.until_seconds = time.monotonic() + KEPT_SECONDS

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
