"""Compaction as a pure function of the history: what a stateful session, compacted along the way, would send now.

A gateway sees single requests. So the points at which the client must have sent one are walked from the start; where the
compressed form so far and what came since exceed the trigger tokens, everything up to there is compacted, from the
originals, to the target tokens. Between two compactions messages are only appended: consecutive requests share their
prefix byte for byte, on any worker and after any restart.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, takewhile
from sys import getsizeof
from typing import TYPE_CHECKING

from ctx_hooks import message_rules
from ctx_hooks.compaction import pipeline, retrieval
from ctx_hooks.compaction.message_index import MessageStats, chain, digest_of, request_points
from ctx_hooks.compaction.pipeline import Outcome, StepReport
from ctx_hooks.compaction.retrieval import CutText, Retrieval, cut_text
from ctx_hooks.compaction.steps.oversized_results import least_capped_chars, on_arrival
from ctx_hooks.compaction.summary.extractive import summary_tokens
from ctx_hooks.conversation.model import Opaque, ToolCall
from ctx_hooks.formats import CODECS
from ctx_hooks.runtime.content_cache import ContentCache, json_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ctx_hooks.conversation.model import Conversation, Message
    from ctx_hooks.tokens.budget import Budget
    from ctx_hooks.tokens.counter import Counter

LATER_RETRIEVAL_FRACTION = 0.5
"""What each later user turn after a compaction adds to the share of the first: it may use what those before it left."""

MESSAGE_BYTES, PART_BYTES = 160, 120
"""What a message and a part of it take beside their texts (measured)."""

_compactions: ContentCache[Compaction] = ContentCache(share=0.18)
_retrieved_texts: ContentCache[str] = ContentCache(share=0.02)
_cut_texts: ContentCache[CutText] = ContentCache(share=0.05)


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
class Thresholds:
    """A compaction is due above the goal of the budget `trigger`, and compacts down to `target_tokens`."""

    trigger: Budget
    target_tokens: int

    def digest(self) -> bytes:
        """Return 16 bytes that stand for what a compaction depends on beside the history."""
        budget = self.trigger
        policy = budget.policy.model_dump(mode="json")
        figures = (budget.goal_tokens, self.target_tokens, budget.window_tokens)
        return digest_of((*figures, budget.counter.vocabulary, policy, budget.cut_newest))


@dataclass(frozen=True, slots=True)
class History:
    """A conversation, the index of its messages and the digest of what precedes them.

    `read(start, end)` returns the conversation with these of its messages alone: only what is needed is ever read.
    """

    read: Callable[[int, int], Conversation]
    index: tuple[MessageStats, ...]
    preamble_tokens: int
    preamble_digest: bytes
    continues: bool = False

    @property
    def tokens(self) -> int:
        """The tokens of the whole request."""
        return self.preamble_tokens + sum(m.tokens for m in self.index)

    @property
    def fixed_tokens(self) -> int:
        """The tokens in front of the conversation that no compaction makes smaller."""
        return self.preamble_tokens + sum(m.tokens for m in takewhile(lambda m: m.role == "system", self.index))


def history_of(
    read: Callable[[int, int], Conversation],
    index: tuple[MessageStats, ...],
    preamble: tuple[str, ...],
    counter: Counter,
    *,
    continues: bool = False,
) -> History:
    """Return the history of the messages that `index` lists, behind the texts of a preamble."""
    return History(read, index, sum(counter.text(t) for t in preamble), digest_of(preamble), continues)


@dataclass(frozen=True, slots=True)
class Cut:
    """A compaction of the first `length` messages that is due, and the tokens that are expected of its messages."""

    length: int = 0
    tokens: int = 0
    number: int = 0


def compacted(history: History, thresholds: Thresholds, *, repair: bool = True) -> tuple[Outcome, int]:
    """Return the conversation as it is to be sent, and how many compactions led to it.

    Where compactions are due follows from the sizes of messages alone; of their texts only the newest one is made. What
    an earlier request of the same conversation had made is remembered.
    """
    assembly = _Assembly(history, thresholds, repair=repair)
    cut, compaction = assembly.newest_compaction()
    return assembly.sent(compaction), cut.number


class _Assembly:
    """Assembles the request from the newest compaction that is due and the messages since."""

    def __init__(self, history: History, thresholds: Thresholds, *, repair: bool) -> None:
        self._history = history
        self._thresholds = thresholds
        self._thresholds_digest = thresholds.digest()
        self._digests = chain(history.preamble_digest, history.index)
        self._repair = repair
        self._arrived = {i: self._cut_on_arrival(i) for i in self._oversized()}
        self._points = request_points(history.index)
        self._sums = (0, *accumulate(self._tokens(i) for i in range(len(history.index))))
        self._asked = (0, *accumulate(m.is_request for m in history.index))
        self._requests = (0, *accumulate((m.tokens if m.is_request else 0 for m in history.index), _newest))
        self._stays = (0, *accumulate(m.tokens if m.stays else 0 for m in history.index))

    def newest_compaction(self) -> tuple[Cut, Compaction]:
        """Return the newest compaction that is due.

        One that comes out larger than expected, because more is protected than its size told, is counted as it is.
        """
        cut = self._newest_cut(Cut())
        compaction = NONE_YET
        while cut.length > compaction.length:
            compaction = self._compacted(cut.length)
            if compaction.tokens > cut.tokens:
                cut = self._newest_cut(replace(cut, tokens=compaction.tokens))
        return cut, compaction

    def sent(self, compaction: Compaction) -> Outcome:
        """Return the request: the compaction, what came since, and the compacted text that is relevant to its user turns."""
        budget = self._thresholds.trigger
        since = self._read(compaction.length, len(self._history.index))
        retrieved = self._retrieved(compaction, since.messages)
        tail = (self._with_retrieved(m, retrieved.get(i)) for i, m in enumerate(since.messages, compaction.length))
        sent = replace(since, messages=(*compaction.messages, *tail))
        if self._repair:
            sent, _ = message_rules.repair(sent, continues=self._history.continues)
        tokens = budget.counter.conversation(sent)
        fits = tokens <= budget.goal_tokens
        return Outcome(sent, self._history.tokens, tokens, fits, compaction.steps, None if fits else compaction.reason)

    def _newest_cut(self, cut: Cut) -> Cut:
        """Return the newest compaction due after `cut`, itself when none is."""
        for length in self._points[bisect_right(self._points, cut.length) :]:
            since = self._sums[length] - self._sums[cut.length] + self._retrieval_tokens(cut.length, length)
            if self._history.preamble_tokens + cut.tokens + since > self._thresholds.trigger.goal_tokens:
                cut = Cut(length, self._expected_tokens(length), cut.number + 1)
        return cut

    def _expected_tokens(self, length: int) -> int:
        """Return what a compaction of the first `length` messages leaves: the target tokens, or what is protected."""
        index = self._history.index
        start = length
        while start and index[start - 1].role != "assistant" and not index[start - 1].is_request:
            start -= 1
        results = length - start
        while start and index[start - 1].role == "assistant":
            start -= 1
        loop = self._sums[length] - self._sums[start] if results else 0
        protected = self._stays[length] + self._requests[length] + loop + summary_tokens(self._thresholds.trigger)
        return max(self._thresholds.target_tokens - self._history.preamble_tokens, int(protected))

    def _oversized(self) -> list[int]:
        """Return the messages with a result that is too large for this window: each is cut as it arrives."""
        most = least_capped_chars(self._thresholds.trigger.window_tokens, self._thresholds.trigger.policy)
        return [i for i, m in enumerate(self._history.index) if m.result_chars > most]

    def _tokens(self, i: int) -> int:
        cut = self._arrived.get(i)
        if cut is None:
            return self._history.index[i].tokens
        return self._thresholds.trigger.counter.message(cut.messages[0], cut.format)

    def _cut_on_arrival(self, i: int) -> Conversation:
        # Read behind the message before it: a result without an id of its own is known by the call there.
        read = self._history.read(max(0, i - 1), i + 1)
        return read.with_messages((on_arrival(read.messages[-1], self._thresholds.trigger),))

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
        key = (self._thresholds_digest, self._digests[length], self._repair)

        def compute() -> Compaction:
            conversation = self._to_compact(length)
            if self._repair:
                conversation, _ = message_rules.repair(conversation, continues=self._history.continues)
            trigger = self._thresholds.trigger
            # The newest results are cut for the window's sake alone, never to reach the target tokens.
            target = replace(trigger, goal_tokens=self._thresholds.target_tokens, cut_newest=False)
            outcome = pipeline.compress(conversation, target)
            if not outcome.fits and outcome.tokens_after > trigger.goal_tokens:
                outcome = pipeline.compress(conversation, trigger)
            # Read again from what is sent: the edited messages would hold on to all that was cut.
            codec = CODECS[conversation.format]
            sent = codec.read(codec.write(outcome.conversation)).messages
            tokens = trigger.counter.messages(sent, conversation.format)
            return Compaction(length, sent, tokens, outcome.steps, outcome.reason)

        return _compactions.get(key, compute, _compaction_bytes)

    @property
    def _retrieval_share(self) -> float:
        budget = self._thresholds.trigger
        return min(budget.policy.recall_max_tokens, budget.goal_tokens * budget.policy.recall_fraction)

    def _retrieval_tokens(self, start: int, length: int) -> int:
        """Return the most compacted text that the user turns from `start` on may be given, which is reserved for them."""
        asked = self._asked[length] - self._asked[start] if start else 0
        return int(self._retrieval_share * (1 + LATER_RETRIEVAL_FRACTION * (asked - 1))) if asked else 0

    def _retrieved(self, compaction: Compaction, since: Sequence[Message]) -> dict[int, str]:
        """Return the compacted text that is appended to each user turn since the compaction."""
        retrieved: dict[int, str] = {}
        spent = 0
        start, index = compaction.length, self._history.index
        retrieval = Retrieval(since, partial(self._cut_text, compaction), self._message, self._thresholds.trigger)
        for i in (i for i in range(start, len(index)) if start and index[i].is_request):
            room = min(self._retrieval_share, self._retrieval_tokens(start, i + 1) - spent)
            key = (self._thresholds_digest, self._digests[start], self._digests[i + 1], room)
            text = _retrieved_texts.get(key, partial(retrieval.block, i - start, room), getsizeof)
            if text:
                retrieved[i] = text
                spent += self._thresholds.trigger.counter.text(text)
        return retrieved

    def _cut_text(self, compaction: Compaction) -> CutText:
        key = (self._thresholds_digest, self._digests[compaction.length], self._repair)

        def compute() -> CutText:
            return cut_text(self._history.read(0, compaction.length), compaction.messages, self._thresholds.trigger)

        return _cut_texts.get(key, compute, lambda c: c.size_bytes)

    def _message(self, i: int) -> Message:
        return self._history.read(i, i + 1).messages[0]

    def _with_retrieved(self, message: Message, text: str | None) -> Message:
        return retrieval.added(message, text) if text else message


def _compaction_bytes(compaction: Compaction) -> int:
    """Return the memory of a compaction: what its messages were read from, their parts, and texts written anew."""
    held = 0
    for message in compaction.messages:
        held += MESSAGE_BYTES + json_bytes(message.raw)
        for part in message.parts:
            held += PART_BYTES + (getsizeof(part.arguments) if isinstance(part, ToolCall) else 0)
            held += getsizeof(part.text) if isinstance(part, Opaque) else 0
    return held


def _newest(tokens: int, newer_tokens: int) -> int:
    return newer_tokens or tokens
