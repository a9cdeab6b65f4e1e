"""Summaries that a model has written: the messages that they replace, and which one a compaction contains.

A summary belongs to the first messages of a history, by their digest. Only a compaction adds it to a request. A compaction
that was sent in one form is always sent in this form: the `Choice` in its `Outcome` records it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from ctx_hooks.compaction.history import History, MessageStats, chain, digest_of
from ctx_hooks.formats.fields import unmarked

CURRENT_FRACTION = 1 / 3
"""A new summary replaces one of fewer messages at the next compaction, although the prompt cache has the old prefix."""


@dataclass(frozen=True, slots=True)
class WrittenSummary:
    """A model's accepted summary of the first `length` messages of a history; `prefix` is their digest in hexadecimal."""

    prefix: str
    length: int
    text: str


@dataclass(frozen=True, slots=True)
class Summaries:
    """The known summaries of one conversation, by prefix, frozen for one attempt."""

    conversation: str = ""
    """The key of the conversation; "" if no model summarises it."""
    written: Mapping[str, WrittenSummary] = field(default_factory=dict)
    chosen: Mapping[str, str] = field(default_factory=dict)
    """The form of each compaction, by its digest: the prefix of its summary, "" for the deterministic form."""


NO_SUMMARIES = Summaries()


def prefixes(history: History, start: bytes, *, with_system: bool = False) -> tuple[bytes, ...]:
    """Return for each length the digest of the first messages, without cache markers; with system texts if asked for."""

    def said(stats: MessageStats, item: Any) -> MessageStats:
        if stats.role == "system" and not with_system:
            return stats._replace(digest=b"system")
        return stats if (bare := unmarked(item)) is item else stats._replace(digest=digest_of(bare))

    return chain(start, [said(s, i) for s, i in zip(history.index, history.messages.items, strict=False)])


def newest_within(summaries: Summaries, digests: Sequence[bytes], length: int) -> WrittenSummary | None:
    """Return the summary that covers the most of the first `length` messages, None if none is known."""
    known = (s for s in summaries.written.values() if s.length <= length and digests[s.length].hex() == s.prefix)
    return max(known, key=lambda s: s.length, default=None)


def is_current(summary: WrittenSummary | None, length: int) -> bool:
    """Whether there is a summary that covers enough of the first `length` messages for the compactions after them."""
    return summary is not None and summary.length >= length * CURRENT_FRACTION


class Forms:
    """The forms of the compactions of one history: the form that was sent before, else one with the newest summary."""

    def __init__(self, history: History, summaries: Summaries, start: bytes) -> None:
        self.conversation = summaries.conversation
        self._summaries = summaries
        self._prefixes = prefixes(history, summaries.conversation.encode()) if summaries.written else ()
        self._compactions = prefixes(history, start, with_system=True) if summaries.conversation else ()

    def digest(self, length: int) -> str:
        """Return the digest of a compaction of the first `length` messages."""
        return self._compactions[length].hex()

    def summary_of(self, length: int, base_length: int | None) -> WrittenSummary | None:
        """Return the summary in a compaction of the first `length` messages, None for the deterministic form.

        A sent compaction keeps its form, and one on top of `base_length` messages its current summary.
        """
        if not self._summaries.written or self.digest(length) in self._summaries.chosen:
            return self.held(length)
        before = self.held(base_length) if base_length is not None else None
        if base_length is not None and is_current(before, base_length):
            return before
        return newest_within(self._summaries, self._prefixes, length)

    def held(self, length: int) -> WrittenSummary | None:
        """Return the summary with which a compaction of the first `length` messages was sent, None if it was not."""
        chosen = self._summaries.chosen.get(self.digest(length)) if self._summaries.written else None
        return self._summaries.written.get(chosen) if chosen else None
