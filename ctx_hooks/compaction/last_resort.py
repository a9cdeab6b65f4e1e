"""The fallback if a compression takes too long or fails: drop whole exchanges, oldest first, without counting tokens."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any, NamedTuple

from ctx_hooks import message_rules
from ctx_hooks.compaction.history import MessageStats
from ctx_hooks.compaction.plain_cut import BYTES_PER_TOKEN, NAME
from ctx_hooks.compaction.steps import Outcome, StepReport
from ctx_hooks.compaction.steps.results import shrunk
from ctx_hooks.compaction.summary.placing import gaps_of, with_records
from ctx_hooks.conversation import placeholders
from ctx_hooks.conversation.conversation import Conversation
from ctx_hooks.conversation.model import Message, is_request, replaces_history, stays
from ctx_hooks.formats.wire_format import WireFormat
from ctx_hooks.message_rules import alternation
from ctx_hooks.message_rules.alternation import Turn, turn_of
from ctx_hooks.message_rules.reasoning import with_elisions
from ctx_hooks.texts.pieces import utf8_bytes
from ctx_hooks.tokens.budget import Budget
from ctx_hooks.tokens.counter import DEFAULT, Counter
from ctx_hooks.tokens.units import LocalTokens

TOO_LONG = "too long or too large to choose what stays"
PLACEHOLDER_CHARS = 250
"""The longest placeholder inside a text, with its line breaks."""
PROTECTED_EXCHANGES = 2
"""The newest tool loop, and a prefill behind it."""
MOST_BEYOND = 10_000
"""Messages of one exchange that are kept beyond the budget."""


class Estimate(Counter):
    """Estimates tokens by bytes, rarely too few; it keeps no message."""

    def text(self, text: str) -> LocalTokens:
        """Return the estimated tokens of `text`."""
        return LocalTokens(-(-utf8_bytes(text) // BYTES_PER_TOKEN))

    def know(self, counted: Message | Conversation, tokens: LocalTokens) -> None:
        """Keep nothing."""


ESTIMATE = Estimate(DEFAULT)


class Skimmed(NamedTuple):
    """What `compress` needs of a long request.

    Attributes:
        kept: the indices of the messages that it may keep.
        tokens: the estimated tokens of these others.
        turns: whose turn each message of the request is.
        is_scattered: whether other messages are in more than one place.
    """

    kept: Sequence[int]
    tokens: LocalTokens
    turns: Sequence[Turn | None]
    is_scattered: bool


def skim(items: Sequence[Any], wire: WireFormat, most_tokens: int) -> Skimmed:
    """Return the newest exchanges up to `most_tokens` and the messages that no step removes, in one walk from the end.

    Raises MalformedConversationError if an item is no message.
    """
    kept, turns = set[int](), list[Turn | None]()
    asked, asked_by, words = list[int](), dict[str | None, int](), list[int]()
    open_ids, role, speaker = set[str](), "", None
    left_tokens, beyond, exchanges, tokens = most_tokens, 0, 0, 0
    for i in range(len(items) - 1, -1, -1):
        message = wire.message(items, i)
        size = ESTIMATE.message(message, wire.name)
        turns.append(turn_of(message))
        if is_request(message):
            speaker = message.name
            asked_by.setdefault(speaker, i)
            asked.append(i)
        elif not asked and not words and message.role == "user" and message.results and message.text.strip():
            words.append(i)
        joins = open_ids or (wire.has_items and role == message.role == "assistant")
        exchanges += not joins
        if left_tokens > 0 or (beyond < MOST_BEYOND and (joins or exchanges <= PROTECTED_EXCHANGES)):
            kept.add(i)
            open_ids.difference_update([call.id for call in message.calls])
            open_ids.update([result.call_id for result in message.results])
            beyond += left_tokens <= 0
            left_tokens, role = left_tokens - size, message.role
            continue
        beyond = MOST_BEYOND  # older messages are in other exchanges
        tokens += size
        if stays(message):
            kept.add(i)
            tokens -= size
    named = {*asked[:2], *asked[-1:], *words, *(asked_by[name] for name in (speaker, None) if name in asked_by)} - kept
    tokens -= sum(ESTIMATE.message(wire.message(items, i), wire.name) for i in named)
    places = sorted(kept | named)
    is_scattered = sum(i - before > 1 for before, i in pairwise([-1, *places])) > 1
    return Skimmed(places, LocalTokens(tokens), turns[::-1], is_scattered)


def estimated_stats(conversation: Conversation) -> tuple[MessageStats, ...]:
    """Return the stats of each message, with estimated tokens and an empty digest: no cache remembers it."""
    sizes = (ESTIMATE.message(m, conversation.format) for m in conversation.messages)
    return tuple(
        MessageStats(b"", tokens, m.role, is_request(m), stays=stays(m), guessed_tokens=tokens)
        for tokens, m in zip(sizes, conversation.messages, strict=True)
    )


def compress(
    conversation: Conversation, budget: Budget, *, continues: bool = False, skimmed: Skimmed | None = None
) -> Outcome:
    """Return the conversation with only as many of its newest exchanges as fit the goal by estimate.

    Protected messages and the newest words stay; if these are too large, results beside words and of the newest loop are
    cut. If the conversation has only the kept messages of a `skimmed` one, the others count as removed.
    """
    language = budget.policy.language
    before = LocalTokens(ESTIMATE.conversation(conversation) + (skimmed.tokens if skimmed else 0))
    if before <= budget.goal_tokens:
        return Outcome(conversation, before, before, fits=True, steps=())
    whole, _ = message_rules.repair(conversation, continues=continues, language=language)
    sizes = [ESTIMATE.message(m, whole.format) for m in whole.messages]
    room = budget.goal_tokens - ESTIMATE.conversation(whole) - ESTIMATE.text("\n" * PLACEHOLDER_CHARS)
    gone: set[int] = set()
    newest = whole.newest_words
    asked = max((i for i in whole.older_messages if is_request(whole.messages[i])), default=None)
    for exchange in sorted(whole.older_exchanges, key=lambda exchange: asked in exchange):
        if room >= 0:
            break
        if newest in exchange or not whole.references.isdisjoint(exchange):
            continue
        gone.update(exchange)
        room += sum(sizes[i] for i in exchange)
    left_out = len(skimmed.turns) - len(conversation.messages) if skimmed else 0
    # One placeholder says all: behind the first request that stays, or a provider's own compaction.
    start, gaps = max((i for i, m in enumerate(whole.messages) if replaces_history(m)), default=-1), gaps_of(gone)
    requests = (i for i, m in enumerate(whole.messages) if i > start and i not in gone and is_request(m))
    first = next(requests, start) + 1
    place = next((gap for gap in gaps if gap.start <= first <= gap.stop), range(first, first))
    is_scattered = len({*gaps, place}) > 1 or (skimmed is not None and skimmed.is_scattered)
    dropped = placeholders.dropped(len(gone) + left_out, language, is_scattered=is_scattered)
    records = {place: dropped} if gone or left_out else {}
    sent = whole.with_messages(tuple(with_records(whole, {}, gone, records, language)))
    if sent is not whole:
        sent = alternation.alternating(skimmed.turns if skimmed else map(turn_of, whole.messages), sent, language)
    if room < 0:
        loop, words = sent.newest_loop if budget.cut_newest else (), sent.newest_words
        sent = shrunk(sent, replace(budget, counter=ESTIMATE), {*loop, *([] if words is None else [words])})
    sent = with_elisions(whole, sent) if budget.wants_reasoning else sent
    sent, _ = message_rules.repair(sent, continues=continues, language=language)
    after = ESTIMATE.conversation(sent)
    fits = after <= budget.goal_tokens
    reason = None if fits else f"about {after} tokens are protected, the budget is {budget.goal_tokens}"
    if sent is conversation:
        return Outcome(sent, before, after, fits, (), reason)
    touched = len({id(m) for m in conversation.messages} - {id(m) for m in sent.messages}) + left_out
    report = StepReport(NAME, before - after, touched, "a compression would have taken too long, or has failed")
    return Outcome(sent, before, after, fits, (report,), reason)
