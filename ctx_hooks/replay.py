"""Compaction as a pure function of the history: what a stateful session, compacted along the way, would send now.

A gateway sees single requests. So the points at which the client must have sent one are walked from the start; where the
compressed form so far and what came since exceed the high-water mark, everything up to there is compacted, from the
originals, to the low-water mark. Between two compactions messages are only appended: consecutive requests share their
prefix byte for byte, on any worker and after any restart.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import accumulate, takewhile
from typing import TYPE_CHECKING

from ctx_hooks import invariants, pipeline, recall
from ctx_hooks.content_cache import ContentCache
from ctx_hooks.ledger import Entry, chain, request_points
from ctx_hooks.pipeline import Outcome, StepReport
from ctx_hooks.steps.oversized_results import least_capped_chars, on_arrival

if TYPE_CHECKING:
    from collections.abc import Callable

    from ctx_hooks.budget import Budget
    from ctx_hooks.conversation import Conversation, Message

_compactions: ContentCache[Compaction] = ContentCache(share=0.05)
_recalls: ContentCache[str] = ContentCache(share=0.02)


@dataclass(frozen=True, slots=True)
class Compaction:
    """The compressed form of the first `length` messages; `tokens` are those of its messages."""

    length: int
    messages: tuple[Message, ...]
    tokens: int
    steps: tuple[StepReport, ...] = ()
    reason: str | None = None


NONE_YET = Compaction(0, (), 0)


@dataclass(frozen=True, slots=True)
class Marks:
    """The budget whose goal is the high-water mark, and the low-water mark in tokens."""

    high: Budget
    low_tokens: int

    @property
    def key(self) -> tuple[object, ...]:
        """What a compaction depends on beside the history."""
        budget = self.high
        return (
            budget.goal_tokens,
            self.low_tokens,
            budget.window_tokens,
            budget.counter.vocabulary,
            budget.policy,
            budget.cut_newest,
        )


@dataclass(frozen=True, slots=True)
class History:
    """A conversation with the ledger of its messages and the digest of what precedes them.

    `read(start, end)` returns the conversation with these of its messages alone: only what is needed is ever read.
    """

    read: Callable[[int, int], Conversation]
    entries: tuple[Entry, ...]
    preamble_tokens: int
    preamble_digest: bytes
    continues: bool = False

    @property
    def tokens(self) -> int:
        """The tokens of the whole request."""
        return self.preamble_tokens + sum(e.tokens for e in self.entries)

    @property
    def fixed_tokens(self) -> int:
        """The tokens in front of the conversation that no compaction makes smaller."""
        return self.preamble_tokens + sum(e.tokens for e in takewhile(lambda e: e.role == "system", self.entries))


def replay(history: History, marks: Marks, *, repair: bool = True) -> tuple[Outcome, int]:
    """Return the conversation as it is to be sent, and how many compactions led to it.

    Cost is linear in the messages; what an earlier request of the same conversation had compacted is remembered.
    """
    digests = chain(history.preamble_digest, history.entries)
    walk = _Walk(history, marks, digests, repair=repair)
    for length in request_points(history.entries):
        walk.to(length)
    return walk.outcome(), walk.compactions


class _Walk:
    """One way through a history, from request to request."""

    def __init__(self, history: History, marks: Marks, digests: tuple[bytes, ...], *, repair: bool) -> None:
        self.compactions = 0
        self._history = history
        self._marks = marks
        self._digests = digests
        self._repair = repair
        self._arrived = {i: self._cut(i) for i in self._oversized()}
        self._sums = (0, *accumulate(self._tokens(i) for i in range(len(history.entries))))
        self._last = NONE_YET
        self._recalled: dict[int, str] = {}
        self._recalled_tokens = 0

    def to(self, length: int) -> None:
        """Go on to the request of the first `length` messages."""
        if not self._exceeds(length):
            self._recall(length)
        if self._exceeds(length):
            self._last = self._compacted(length)
            self._recalled, self._recalled_tokens = {}, 0
            self.compactions += 1

    def _exceeds(self, length: int) -> bool:
        since = self._sums[length] - self._sums[self._last.length] + self._recalled_tokens
        return self._history.preamble_tokens + self._last.tokens + since > self._marks.high.goal_tokens

    def outcome(self) -> Outcome:
        """Return the request at which the walk has arrived."""
        budget = self._marks.high
        since = self._read(self._last.length, len(self._history.entries))
        tail = (self._with_recall(i, m) for i, m in enumerate(since.messages, self._last.length))
        sent = replace(since, messages=(*self._last.messages, *tail))
        if self._repair:
            sent, _ = invariants.repair(sent, continues=self._history.continues)
        tokens = budget.counter.conversation(sent)
        fits = tokens <= budget.goal_tokens
        return Outcome(sent, self._history.tokens, tokens, fits, self._last.steps, None if fits else self._last.reason)

    def _oversized(self) -> list[int]:
        """Return the messages with a result that is too large for this window: each is cut as it arrives."""
        most = least_capped_chars(self._marks.high.window_tokens, self._marks.high.policy)
        return [i for i, e in enumerate(self._history.entries) if e.result_chars > most]

    def _tokens(self, index: int) -> int:
        cut = self._arrived.get(index)
        if cut is None:
            return self._history.entries[index].tokens
        return self._marks.high.counter.message(cut.messages[0], cut.format)

    def _cut(self, index: int) -> Conversation:
        read = self._history.read(index, index + 1)
        return read.with_messages((on_arrival(read.messages[0], self._marks.high),))

    def _read(self, start: int, end: int) -> Conversation:
        """Return these messages as they have arrived."""
        read = self._history.read(start, end)
        if not self._arrived:
            return read
        cut = ((self._arrived.get(i), m) for i, m in enumerate(read.messages, start))
        return read.with_messages(tuple(c.messages[0] if c is not None else m for c, m in cut))

    def _to_compact(self, length: int) -> Conversation:
        """Return the originals of these messages; only the newest results, which stay whole, as they have arrived."""
        read = self._history.read(0, length)
        messages = list(read.messages)
        for i in self._arrived.keys() & set(read.newest_loop):
            messages[i] = self._arrived[i].messages[0]
        return read.with_messages(tuple(messages))

    def _compacted(self, length: int) -> Compaction:
        """Return the compaction of the first `length` messages."""
        key = (self._marks.key, self._digests[length], self._repair)

        def compute() -> Compaction:
            conversation = self._to_compact(length)
            if self._repair:
                conversation, _ = invariants.repair(conversation, continues=self._history.continues)
            high = self._marks.high
            # The newest results are cut for the window's sake alone, never to reach the low-water mark.
            low = replace(high, goal_tokens=self._marks.low_tokens, cut_newest=False)
            outcome = pipeline.compress(conversation, low)
            if not outcome.fits and outcome.tokens_after > high.goal_tokens:
                outcome = pipeline.compress(conversation, high)
            sent = outcome.conversation.messages
            tokens = high.counter.messages(sent, conversation.format)
            return Compaction(length, sent, tokens, outcome.steps, outcome.reason)

        return _compactions.get(key, compute, lambda c: 8 * c.tokens)

    def _recall(self, length: int) -> None:
        """Put back what the newest user turn asks for, if it was said after the last compaction."""
        i = length - 1
        marks = self._marks
        if not self.compactions or i < self._last.length or i in self._recalled or not self._history.entries[i].is_request:
            return
        key = (marks.key, self._digests[self._last.length], self._digests[length])
        text = _recalls.get(key, lambda: recall.block(self._history.read(0, length), self._last, marks.high), len)
        if text:
            self._recalled[i] = text
            self._recalled_tokens += marks.high.counter.text(text)

    def _with_recall(self, index: int, message: Message) -> Message:
        text = self._recalled.get(index)
        return recall.added(message, text) if text else message
