"""Summaries that a model has written: what they stand for, which one a compaction holds, and what is summarised next.

A summary belongs to the first messages of a history, by their digest. It becomes part of a request at a compaction alone,
and a compaction that was once sent in one form is always sent in it: that is what `Choice` is for.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ctx_hooks.compaction.message_index import chain, digest_of
from ctx_hooks.compaction.summary.extractive import allowed_tokens
from ctx_hooks.conversation.exchanges import is_request
from ctx_hooks.formats.fields import unmarked

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ctx_hooks.compaction.history import History
    from ctx_hooks.compaction.message_index import MessageStats
    from ctx_hooks.conversation.model import Format, Message
    from ctx_hooks.formats.reader import MessageReader
    from ctx_hooks.policy.settings import Policy
    from ctx_hooks.policy.summary_settings import SummarySettings


@dataclass(frozen=True, slots=True)
class WrittenSummary:
    """A summary that a model has written and that was accepted.

    Attributes:
        prefix: the digest of the messages that it stands for, in hexadecimal.
        length: how many messages of the history these are.
        text: what the model has written.

    >>> WrittenSummary("5f2c", 40, "## Goal: tune the piano.").length
    40
    """

    prefix: str
    length: int
    text: str


@dataclass(frozen=True, slots=True)
class Summaries:
    """What is known of the summaries of one conversation, frozen for one attempt.

    Attributes:
        conversation: the key of the conversation; "" where no summary is written of it.
        written: the summaries, by prefix.
        chosen: which form each compaction has, by its digest: the prefix of the summary that it holds, "" for the
            deterministic form.
    """

    conversation: str = ""
    written: Mapping[str, WrittenSummary] = field(default_factory=dict)
    chosen: Mapping[str, str] = field(default_factory=dict)


NO_SUMMARIES = Summaries()


@dataclass(frozen=True, slots=True)
class Choice:
    """Which form the newest compaction of a request has.

    Attributes:
        compaction: its digest.
        prefix: of the summary that it holds, "" for the deterministic form.
        length: how many messages of the history are compacted.
        removes: whether a summary has a place in it: nothing stands for messages that were only shortened.
    """

    compaction: str
    prefix: str
    length: int
    removes: bool = True


@dataclass(frozen=True, slots=True)
class SummaryTask:
    """What is to be summarised next.

    Attributes:
        prefix: the digest of the messages that the summary will stand for, in hexadecimal.
        length: how many messages of the history these are.
        format: their format.
        messages: those of them that the summary before does not stand for.
        before: the summary that is updated, "" for none.
    """

    prefix: str
    length: int
    format: Format
    messages: tuple[Message, ...]
    before: str = ""


def applies_to(policy: Policy) -> bool:
    """Whether summaries are written under a policy.

    A gentle compaction removes nothing that a summary could stand for, and where only the newest turns are sent each request
    begins with others.
    """
    return policy.summary is not None and policy.compaction == "full" and policy.max_turns is None


def fitted(settings: SummarySettings, budget_tokens: float) -> SummarySettings:
    """Return the settings that ask for a summary no longer than the budget has room for.

    That is as long as an extractive one beside the users' words, which stand behind a model's summary in any case. A longer
    one takes the room of lines that later steps need (`benchmarks/summaries.py`).
    """
    room_tokens = allowed_tokens(budget_tokens, most_tokens=math.inf)
    return settings.model_copy(update={"max_tokens": min(settings.max_tokens, int(room_tokens))})


def conversation_key(messages: MessageReader, tenant: str, settings: SummarySettings) -> str:
    """Return the key that all summaries of a conversation share; "" where nobody has asked and was answered yet.

    It stands for the messages up to the first answer: sessions that begin with the same request part there. System text is
    in no key and no prefix: it is sent beside each summary, and clients write the time there.

    Args:
        messages: of the request as it came.
        tenant: who asks: no summary is ever found by another tenant.
        settings: who writes the summaries, and what is asked of it.

    Raises:
        MalformedConversationError: a message that has to be read is none.
    """
    beginning: list[Any] = []
    is_asked = False
    for i, item in enumerate(messages.items):
        message = messages.message(i)
        if message.role == "system":
            continue
        beginning.append(unmarked(item))
        if is_asked and message.role == "assistant":
            return digest_of((tenant, settings.model, settings.prompt, messages.format, beginning)).hex()
        is_asked = is_asked or is_request(message)
    return ""


def prefixes(history: History, start: bytes, *, with_system: bool = False) -> tuple[bytes, ...]:
    """Return for each length the digest of the first messages, whichever of them carry cache markers: clients move these.

    Args:
        history: the conversation as the client sent it.
        start: stands for all that belongs to the digests beside the messages.
        with_system: whether they depend on what the system messages say, as the bytes of a compaction do.
    """

    def said(stats: MessageStats, item: Any) -> MessageStats:
        if stats.role == "system" and not with_system:
            return stats._replace(digest=b"system")
        return stats if (bare := unmarked(item)) is item else stats._replace(digest=digest_of(bare))

    return chain(start, [said(s, i) for s, i in zip(history.index, history.messages.items, strict=False)])


def task_of(history: History, summaries: Summaries, length: int, after: int) -> SummaryTask | None:
    """Return what is to be summarised so that a summary stands for the first `length` messages.

    None where one is known that stands for more than `after` of them: it is used before another one is written.

    Args:
        history: the conversation as the client sent it.
        summaries: what is known of it.
        length: how many messages the summary will stand for: those of the compaction that waits for it, else all.
        after: how many messages the newest compaction before has, 0 for none.
    """
    digests = _prefixes_in(history, summaries)
    before = newest_within(summaries, digests, length)
    if before is not None and before.length > after:
        return None
    start = before.length if before is not None else 0
    messages = history.messages.conversation(start, length)
    text = before.text if before is not None else ""
    return SummaryTask(digests[length].hex(), length, messages.format, messages.messages, text)


def newest_within(summaries: Summaries, digests: Sequence[bytes], length: int) -> WrittenSummary | None:
    """Return the summary of the most of the first `length` messages, None where none is known."""
    known = (s for s in summaries.written.values() if s.length <= length and digests[s.length].hex() == s.prefix)
    return max(known, key=lambda s: s.length, default=None)


class Forms:
    """Which form the compactions of one history have: that in which one was sent before, else the newest summary's."""

    def __init__(self, history: History, summaries: Summaries, start: bytes) -> None:
        self._summaries = summaries
        self._prefixes = _prefixes_in(history, summaries)
        self._compactions = prefixes(history, start, with_system=True)

    def summary_of(self, length: int) -> WrittenSummary | None:
        """Return the summary that a compaction of the first `length` messages holds, None for the deterministic form."""
        chosen = self._summaries.chosen.get(self._compactions[length].hex())
        if chosen is not None:
            return self._summaries.written.get(chosen)
        return newest_within(self._summaries, self._prefixes, length)

    def choice(self, length: int, summary: WrittenSummary | None, *, removes: bool) -> Choice:
        """Return the choice that a compaction of the first `length` messages was made by."""
        return Choice(self._compactions[length].hex(), "" if summary is None else summary.prefix, length, removes)


def _prefixes_in(history: History, summaries: Summaries) -> tuple[bytes, ...]:
    return prefixes(history, bytes.fromhex(summaries.conversation))
