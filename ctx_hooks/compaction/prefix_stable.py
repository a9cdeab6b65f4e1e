"""Compaction as a pure function of the history: it returns what a stateful session with compactions would send now.

Only the newest due compaction (`cut_points.py`) is made, and messages are only appended to it. So consecutive requests share
their prefix byte for byte, on any worker and after any restart.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from sys import getsizeof

from ctx_hooks import message_rules
from ctx_hooks.compaction import pipeline
from ctx_hooks.compaction.cut_points import Cut, CutPoints, Thresholds
from ctx_hooks.compaction.history import History, digest_behind, digest_of, without_beside
from ctx_hooks.compaction.quoting import Quoting, added
from ctx_hooks.compaction.steps import Choice, Outcome, StepReport, oldest_turns, parts, results
from ctx_hooks.compaction.steps.results import on_arrival
from ctx_hooks.compaction.summary.extractive import MOST_SUMMARY_FRACTION
from ctx_hooks.compaction.summary.model_written import NO_SUMMARIES, Forms, Summaries, WrittenSummary, is_current
from ctx_hooks.compaction.tool_texts import MOST_RESULTS
from ctx_hooks.conversation import placeholders
from ctx_hooks.conversation.conversation import Conversation
from ctx_hooks.conversation.model import Message, Opaque, ToolCall, ToolResult
from ctx_hooks.formats import WIRE_FORMATS
from ctx_hooks.runtime.content_cache import ContentCache, digest, json_bytes
from ctx_hooks.tokens.budget import least_capped_chars
from ctx_hooks.tokens.units import LocalTokens

MESSAGE_BYTES, PART_BYTES = 160, 120
"""Memory of a message, and of a part of it, beside their texts (measured)."""


@dataclass(frozen=True, slots=True)
class Compaction:
    """The compacted form of the first `length` messages of a history: `messages`, of `tokens` local tokens.

    Attributes:
        reason: why it is larger than its target, None if it is not.
        summary: the model's summary that replaces the removed messages, None for the extractive summary.
        refers: whether its placeholders name archived texts.
        unsettled: how many messages at its end are unchanged originals, in whole exchanges. Those before them have settled:
            so the prompt cache need not store each compaction as a whole.
    """

    length: int
    messages: tuple[Message, ...]
    tokens: int
    steps: tuple[StepReport, ...] = ()
    reason: str | None = None
    summary: WrittenSummary | None = None
    refers: bool = False
    unsettled: int = 0

    @property
    def settled(self) -> tuple[Message, ...]:
        """The messages with which the next compaction may begin; none if even its newest exchange was changed."""
        return self.messages[: -self.unsettled] if self.unsettled else ()

    @property
    def settled_length(self) -> int:
        """How many messages of the history have settled."""
        return self.length - self.unsettled if self.unsettled else 0


NONE_YET = Compaction(0, (), 0)
_compactions: ContentCache[Compaction] = ContentCache()
_capped_tokens: ContentCache[LocalTokens] = ContentCache()


def compacted(history: History, thresholds: Thresholds, summaries: Summaries = NO_SUMMARIES) -> tuple[Outcome, Cut]:
    """Return the compacted conversation to send, and the newest compaction in it.

    Raises MalformedConversationError for a malformed message, CompressionTimeoutError after the deadline of the counter.
    """
    assembly = _Assembly(history, thresholds, summaries)
    cut, compaction = assembly.newest_compaction()
    return assembly.sent(compaction, cut), cut


def shown_results(history: History, thresholds: Thresholds, summaries: Summaries) -> Callable[[int, ToolResult], bool]:
    """Return a predicate on (message index, tool result): whether the request contains the whole result anywhere."""
    assembly = _Assembly(history, thresholds, summaries)
    _, compaction = assembly.newest_compaction()
    left = {digest(result.text) for message in compaction.messages for result in message.results}

    def is_shown(place: int, result: ToolResult) -> bool:
        if place < compaction.length:
            return digest(result.text) in left
        return any(arrived.text == result.text for arrived in assembly.arrived(place).results)

    return is_shown


class _Assembly:
    """Assembles the request from the newest due compaction and the messages since."""

    def __init__(self, history: History, thresholds: Thresholds, summaries: Summaries) -> None:
        self._history, self._thresholds = history, thresholds
        digests = (history.preamble_digest.hex(), thresholds.digest().hex())
        self._start = digest_of((history.messages.format, *digests, history.continues))
        self._weighed = digest_of((self._start.hex(), thresholds.trigger.counter.other_weight))
        least = least_capped_chars(thresholds.trigger.window_tokens, thresholds.trigger.policy)
        self._oversized = frozenset(i for i, m in enumerate(history.index) if m.result_chars > least)
        arrived_tokens = [m.tokens for m in history.index]
        for i in self._oversized:
            arrived_tokens[i] = self._capped_tokens(i)
        self._cut_points = CutPoints(history, arrived_tokens, thresholds)
        self._forms = Forms(history, summaries, digest_behind(self._start, ()))

    def newest_compaction(self) -> tuple[Cut, Compaction]:
        """Return the newest due compaction; of one larger than expected the real size decides when the next is due."""
        cut, compaction = self._cut_points.newest(), NONE_YET
        while cut.length > compaction.length:
            compaction = self._compaction(cut)
            fitting = self._cut_points.fitting(cut, compaction.tokens)
            if fitting is not cut:
                cut, compaction = fitting, self._compaction(fitting)
            made = replace(cut, tokens=compaction.tokens)
            if self._cut_points.is_too_large(made):  # protected text seldom shrinks: the next one covers all messages
                cut = self._cut_points.last_after(made)
            elif compaction.tokens > cut.tokens:
                cut = self._cut_points.newest_after(made)
        return cut, compaction

    def sent(self, compaction: Compaction, cut: Cut) -> Outcome:
        """Return the request: the compaction, the messages since, and quotations of compacted text for its user turns."""
        budget, start = self._thresholds.trigger, compaction.length
        originals = self._history.conversation(budget.counter, start)
        since = list(map(self.arrived, range(start, len(self._history.index))))
        digest, share = self._digest(cut, compaction.summary), self._cut_points.share(cut)
        left_tokens = partial(self._cut_points.left_tokens, cut)
        texts = Quoting(self._history, start, compaction.messages, digest, budget, share, left_tokens).texts()
        tail = (added(m, texts[i]) if i in texts else m for i, m in enumerate(since, start))
        sent = replace(originals, messages=(*self._with_beside(compaction, cut), *tail))
        if self._history.tokens > budget.goal_tokens:  # what fits is not repaired: its provider may accept it
            sent = self._repaired(sent)
        tokens = budget.counter.conversation(sent)
        fits = tokens <= budget.goal_tokens
        refers = budget.cut_texts.store(since) or compaction.refers
        return Outcome(
            sent,
            self._history.tokens,
            tokens,
            fits,
            compaction.steps,
            reason=None if fits else compaction.reason,
            rewrites=self._cut_points.rewrites(cut),
            choice=self._choice(compaction, cut),
            offers=refers and budget.cut_texts.is_offered,
        )

    def _with_beside(self, compaction: Compaction, cut: Cut) -> tuple[Message, ...]:
        """Return a compaction's messages, with its last message's parts behind tool results if it lacks them."""
        if not compaction.length or cut.is_whole or not self._history.index[compaction.length - 1].beside_tokens:
            return compaction.messages
        message = self._history.messages.message(compaction.length - 1)
        beside = message.parts[len(without_beside(message).parts) :]
        *others, last = compaction.messages
        if last.results:
            return (*others, replace(last, parts=(*last.parts, *beside), edited=True))
        return (*compaction.messages, message.with_parts(beside))

    def _remembered(self, cut: Cut, summary: WrittenSummary | None) -> Compaction:
        return _compactions.get(self._digest(cut, summary), partial(self._made, cut, summary), size_bytes)

    def _compaction(self, cut: Cut) -> Compaction:
        """Return the due compaction, with its model's summary if it has one and is then no larger than expected."""
        budget = self._thresholds.trigger
        summary = self._forms.summary_of(cut.length, None if cut.base is None else cut.base.length)
        if summary is not None and budget.counter.text(summary.text) <= budget.goal_tokens * MOST_SUMMARY_FRACTION:
            compaction = self._remembered(cut, summary)
            if compaction.summary is not None and compaction.tokens <= cut.tokens:
                return compaction
        return self._remembered(cut, None)

    def _digest(self, cut: Cut, summary: WrittenSummary | None) -> bytes:
        """Return the digest of the first messages and of all else that their compaction depends on."""
        start = self._weighed
        if summary is not None or cut.is_whole or cut.base is not None:
            written = (summary.prefix, summary.text) if summary is not None else ()
            held = [s.prefix if (s := self._forms.held(base.length)) else "" for base in cut.bases()]
            bases = [(base.length, base.tokens, base.is_whole) for base in cut.bases()]
            start = digest_of((start.hex(), cut.is_whole, bases, held, *written))
        return digest_behind(start, self._history.index[: cut.length])

    def _choice(self, compaction: Compaction, cut: Cut) -> Choice | None:
        summary, length = compaction.summary, compaction.length
        if not (length and self._forms.conversation):
            return None
        takes_new = not is_current(summary, length) or self._cut_points.begins_anew(cut)
        free_tokens = self._cut_points.free_tokens(cut) if takes_new else None
        return Choice(self._forms.digest(length), "" if summary is None else summary.prefix, length, free_tokens)

    def arrived(self, i: int) -> Message:
        """Return a message as sent before its compaction, with oversized results cut."""
        message_at = self._history.messages.message
        return on_arrival(message_at, i, self._thresholds.trigger) if i in self._oversized else message_at(i)

    def _capped_tokens(self, i: int) -> LocalTokens:
        """Return the tokens of a message as `arrived` returns it."""
        counter, fmt = self._thresholds.trigger.counter, self._history.messages.format
        key = digest_behind(self._weighed, self._history.index[max(0, i - MOST_RESULTS) : i + 1])  # with its calls
        return _capped_tokens.get(key, lambda: counter.message(self.arrived(i), fmt))

    def _originals(self, cut: Cut, base: Compaction, *, capped: bool) -> Conversation:
        """Return the settled messages and the client's originals after them; the newest results are capped as on arrival.

        With `capped` all other results are, too: they stay whole or go, and a large one must not displace the others.
        """
        originals = self._history.conversation(self._thresholds.trigger.counter, base.settled_length, cut.length)
        newest = range(len(originals.messages)) if capped else originals.newest_loop
        *others, last = (
            self.arrived(i) if i - base.settled_length in newest else self._history.messages.message(i)
            for i in range(base.settled_length, cut.length)
        )
        rest = (*others, last if cut.is_whole else without_beside(last))
        return replace(originals, messages=(*base.settled, *rest), settled=len(base.settled))

    def _made(self, cut: Cut, summary: WrittenSummary | None) -> Compaction:
        """Make the due compaction: on top of one before it, or from the first message, then with `summary` if given."""
        follows = cut.base is not None and self._forms.held(cut.base.length) == summary
        base = self._remembered(cut.base, summary) if cut.base is not None and follows else NONE_YET
        new = summary if not base.settled else None
        originals = self._originals(cut, base, capped=new is not None)
        repaired = self._repaired(originals)
        trigger = self._thresholds.trigger
        # A request is cut for the budget only, never to reach the target tokens.
        begun = pipeline.compress(repaired, trigger, (parts.LONG_REQUEST,))
        conversation = begun.conversation
        # The newest results are cut only to fit the window, never to reach the target tokens.
        target_tokens = self._cut_points.target_tokens(cut)
        target = replace(trigger, goal_tokens=target_tokens, cut_newest=False)
        steps = tuple(step for step in pipeline.STEPS if step is not parts.LONG_REQUEST)
        if new is not None:
            others = (step for step in steps if step not in (results.LARGE_NEWEST, oldest_turns.STEP))
            steps = (results.LARGE_NEWEST, oldest_turns.with_written(new.text), *others)
        to_target = tuple(oldest_turns.TO_TARGET if step is oldest_turns.STEP else step for step in steps)
        outcome = pipeline.compress(conversation, target, to_target)
        if base.settled and (repaired is not originals or not outcome.fits):
            return self._made(replace(cut, base=None), summary)
        if outcome.tokens_after > trigger.goal_tokens:
            outcome = pipeline.compress(conversation, trigger, steps)
        # Read again from the written form: the edited messages would keep all removed text in memory.
        codec = WIRE_FORMATS[conversation.format]
        sent = codec.read(codec.write(outcome.conversation)).messages
        is_placed = summary is not None and any(placeholders.block_quoted(summary.text) in m.text for m in sent)
        # Stored before the compaction is remembered: later requests send it without its removed texts.
        refers = trigger.cut_texts.store(sent)
        return Compaction(
            cut.length,
            sent,
            trigger.counter.messages(sent, conversation.format),
            (*begun.steps, *outcome.steps),
            outcome.reason,
            summary if is_placed else None,
            refers or base.refers,
            # Messages beside a summary stay whole until another summary replaces them: they are most of the cached text.
            unsettled_in(conversation, outcome.conversation, newest_only=new is not None) if repaired is originals else 0,
        )

    def _repaired(self, conversation: Conversation) -> Conversation:
        language = self._thresholds.trigger.policy.language
        return message_rules.repair(conversation, continues=self._history.continues, language=language)[0]


def unsettled_in(originals: Conversation, made: Conversation, *, newest_only: bool) -> int:
    """Return how many messages at the end of `made` are unchanged originals, in whole exchanges or the newest one."""
    if any(message.name is not None for message in originals.messages):
        return 0  # in a group all messages together decide who spoke first
    kept = 0
    for exchange in list(reversed(originals.exchanges))[: 1 if newest_only else None]:
        newest = kept + len(exchange)
        own, left = originals.messages[-newest:], made.messages[made.settled :][-newest:]
        if len(left) < newest or any(a is not b for a, b in zip(own[: len(exchange)], left, strict=False)):
            break
        kept = newest
    return kept


def size_bytes(compaction: Compaction) -> int:
    """Return the memory of a compaction."""
    parts = [part for message in compaction.messages for part in message.parts]
    copies = [p.arguments if isinstance(p, ToolCall) else p.text for p in parts if isinstance(p, (ToolCall, Opaque))]
    messages_bytes = sum(MESSAGE_BYTES + json_bytes(message.raw) for message in compaction.messages)
    return messages_bytes + PART_BYTES * len(parts) + sum(map(getsizeof, copies))
