"""The summaries of conversations: what has to be summarised next, what is stored, and which worker has begun.

LiteLLM's Redis keeps them for all workers, sealed for the tenant; each worker has a copy, and only its own without Redis.
"""

import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple, TypeVar

from pydantic import TypeAdapter, ValidationError

from ctx_hooks.compaction.history import History, digest_of
from ctx_hooks.compaction.steps import Choice
from ctx_hooks.compaction.summary.model_written import Summaries, WrittenSummary, newest_within, prefixes
from ctx_hooks.conversation.model import Message, is_request
from ctx_hooks.formats import MessageReader
from ctx_hooks.formats.fields import unmarked
from ctx_hooks.policy.addon_settings import SummarySettings
from ctx_hooks.runtime.deadline import Deadline
from ctx_hooks.runtime.worker import pool
from ctx_hooks.store.sealing import opened, sealed, secret_of_environment, tenant_key
from ctx_hooks.store.shared_store import SharedStore, UnavailableError

KEY_PREFIX = "ctx_hooks:summary_record:"
KEPT_SECONDS = 3 * 24 * 3600
"""After the last write: a session that is taken up again after a weekend finds its summary."""
PAUSE_SECONDS = 600
"""For so long no worker begins another summary of a conversation."""
MOST_CONVERSATIONS = 500
"""In this process: some 50 MB, with a dozen summaries of 2 to 8 KB each."""
MOST_OF_A_CONVERSATION = 64
"""Compactions, and summaries, the newest. A session has a dozen for each model, window and policy that it is sent to."""
LARGEST_RECORD_BYTES = 2_000_000
"""MOST_OF_A_CONVERSATION summaries of 8,000 tokens of Chinese have 1.6 MB."""
HANDLE = "summaries"
"""What a record is sealed under."""
BEGIN = "return redis.call('SET', KEYS[1], '', 'NX', 'EX', ARGV[1])"
_RECORD = TypeAdapter(Summaries)
T = TypeVar("T")


def conversation_key(messages: MessageReader, tenant: str, settings: SummarySettings) -> str:
    """Return the key that all summaries of a conversation share; "" if nobody has asked and was answered yet.

    It is the digest of the messages up to the first answer, after the tenant's: no other tenant ever finds a summary, and an
    operator can erase those of one. Raises MalformedConversationError.
    """
    beginning: list[Any] = []
    is_asked = False
    for i, item in enumerate(messages.items):
        message = messages.message(i)
        if message.role == "system":
            continue  # no summary is written of it, and clients write the time there
        beginning.append(unmarked(item))
        if is_asked and message.role == "assistant":
            digest = digest_of((tenant, settings.model, settings.prompt, messages.format, beginning))
            return f"{tenant}:{digest.hex()}"
        is_asked = is_asked or is_request(message)
    return ""


class SummaryTask(NamedTuple):
    """What is to be summarised next: the messages behind the summary `before`, "" for none, which is updated.

    `prefix` is the digest of all `length` messages that the summary will stand for, in hexadecimal.
    """

    prefix: str
    length: int
    messages: tuple[Message, ...]
    before: str = ""


def task_of(history: History, summaries: Summaries, length: int, after: int) -> SummaryTask | None:
    """Return what is to be summarised so that a summary stands for the first `length` messages of a history.

    None if one is known that stands for more than the `after` messages of the newest compaction.
    """
    digests = prefixes(history, summaries.conversation.encode())
    before = newest_within(summaries, digests, length) or WrittenSummary("", 0, "")
    if before.length > after:
        return None
    messages = history.messages.conversation(before.length, length).messages
    return SummaryTask(digests[length].hex(), length, messages, before.text)


def with_more(known: Summaries, more: Summaries) -> Summaries:
    """Return the newest of what is known and of `more`; what is known stays as it is."""
    written = {**known.written, **more.written, **known.written}
    chosen = {**known.chosen, **more.chosen, **known.chosen}
    newest = -MOST_OF_A_CONVERSATION
    return Summaries(known.conversation, dict([*written.items()][newest:]), dict([*chosen.items()][newest:]))


class StoredSummaries:
    """What is stored, by the key of a conversation. Used on the event loop only; records are opened in a thread."""

    def __init__(self, store: SharedStore) -> None:
        self._store = store
        self._secret = secret_of_environment()
        self._kept: dict[str, Summaries] = {}
        self._begun_at: dict[str, float] = {}

    async def of(self, conversation: str) -> Summaries:
        """Return what is stored, if Redis is slow as far as this process knows it."""
        if self._store.is_shared:
            with suppress(UnavailableError):
                await self._store.briefly(partial(self._read, conversation), KEY_PREFIX + conversation)
        return self._known(conversation)

    async def write(self, conversation: str, summary: WrittenSummary) -> None:
        """Store a summary that was accepted; one of the same prefix stays."""
        more = Summaries(conversation, {summary.prefix: summary})
        self._keep(with_more(self._known(conversation), more))
        with suppress(UnavailableError):
            await self._add(more)

    async def choose(self, conversation: str, choice: Choice) -> Summaries:
        """Store which summary a compaction has, unless that is settled; return what is stored then.

        A request waits for it. What a slow Redis answers too late holds for the requests after this one.
        """
        more = Summaries(conversation, chosen={choice.compaction: choice.prefix})
        self._keep(with_more(self._known(conversation), more))
        with suppress(UnavailableError):
            await self._store.briefly(partial(self._add, more))
        return self._known(conversation)

    async def begin(self, conversation: str) -> bool:
        """Whether this worker is to have the next summary written: none has begun one within PAUSE_SECONDS."""
        now = time.monotonic()
        self._begun_at = {each: at for each, at in self._begun_at.items() if at > now - PAUSE_SECONDS}
        is_first = self._begun_at.setdefault(conversation, now) == now
        with suppress(UnavailableError):
            return is_first and bool(await self._store.run(BEGIN, f"{KEY_PREFIX}{conversation}:begun", [PAUSE_SECONDS]))
        return is_first

    async def _read(self, conversation: str) -> None:
        value = await self._store.read(KEY_PREFIX + conversation, LARGEST_RECORD_BYTES)
        await self._keep_found(conversation, value)

    async def _add(self, more: Summaries) -> None:
        """Add to the record in Redis; raises UnavailableError."""
        conversation = more.conversation

        def changed(value: bytes) -> bytes:
            before = self._opened(conversation, value)
            if (after := with_more(before, more)) == before:
                return value
            text = _RECORD.dump_json(after).decode()
            return sealed(text, tenant_key(HANDLE, conversation, self._secret), HANDLE, self._secret)

        async def change(value: bytes) -> bytes:
            return await _off_loop(conversation, partial(changed, value))

        value = await self._store.change(KEY_PREFIX + conversation, change, LARGEST_RECORD_BYTES, KEPT_SECONDS)
        await self._keep_found(conversation, value)

    async def _keep_found(self, conversation: str, value: bytes) -> None:
        """Keep what Redis has, with what this process knows besides: its own summary may not be written there yet."""
        found = await _off_loop(conversation, partial(self._opened, conversation, value))
        self._keep(with_more(found, self._known(conversation)))

    def _opened(self, conversation: str, value: bytes) -> Summaries:
        """Return the record of a value; an empty one if it is none: whoever has the Redis can write anything there."""
        text = opened(value, tenant_key(HANDLE, conversation, self._secret), HANDLE, self._secret)
        try:
            return replace(_RECORD.validate_json(text or ""), conversation=conversation)
        except ValidationError:
            return Summaries(conversation)

    def _known(self, conversation: str) -> Summaries:
        return self._kept.get(conversation) or Summaries(conversation)

    def _keep(self, known: Summaries) -> None:
        self._kept.pop(known.conversation, None)
        self._kept[known.conversation] = known
        if len(self._kept) > MOST_CONVERSATIONS:
            del self._kept[next(iter(self._kept))]


async def _off_loop(conversation: str, work: Callable[[], T]) -> T:
    return await pool.run(conversation.rpartition(":")[0], work, Deadline())
