"""What a new user turn asks for and a compaction had cut, put back as part of that turn."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from ctx_hooks import notices, relevance
from ctx_hooks.conversation import Conversation, Message, Text
from ctx_hooks.salience import units

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctx_hooks.budget import Budget

LEAST_SCORE_FRACTION = 0.3
"""A piece that fits the turn less than this share of the best one stays out: small talk asks for nothing."""
LONGEST_PIECE_CHARS = 600
"""A longer turn or line is offered in pieces of this length: what answers a question is rarely longer."""


class Compacted(Protocol):
    """What a compaction left of how many messages."""

    @property
    def length(self) -> int:
        """The number of messages that were compacted."""

    @property
    def messages(self) -> tuple[Message, ...]:
        """What is sent in their place."""


def block(conversation: Conversation, compacted: Compacted, budget: Budget) -> str:
    """Return the pieces of the compacted messages that fit the newest message best and are not sent, "" for none.

    They have at most `recall_fraction` of the budget, in the order in which they were said.
    """
    room = budget.goal_tokens * budget.policy.recall_fraction
    query = relevance.terms(conversation.messages[-1].text)
    if room < 1 or not query:
        return ""
    pieces = _pieces(conversation.messages[: compacted.length], _sent_lines(compacted.messages))
    scores = relevance.rank(query, [relevance.terms(p) for p in pieces])
    least = LEAST_SCORE_FRACTION * max(scores, default=0.0)
    kept: set[int] = set()
    room -= budget.counter.text(notices.recalled(budget.policy.language))
    for n in sorted(range(len(pieces)), key=lambda n: (-scores[n], -n)):
        price = budget.counter.text(pieces[n]) + 1
        if scores[n] <= least or price > room:
            break
        kept.add(n)
        room -= price
    if not kept:
        return ""
    return "\n".join([notices.recalled(budget.policy.language), *(pieces[n] for n in sorted(kept))])


def added(message: Message, text: str) -> Message:
    """Return a user's message with `text` behind his own words, which stay as they are."""
    return replace(message, parts=(*message.parts, Text(f"\n{text}")), edited=True)


def _sent_lines(messages: Sequence[Message]) -> frozenset[str]:
    texts = [m.text for m in messages] + [r.text for m in messages for r in m.results]
    return frozenset(line.strip() for text in texts for line in (text, *text.splitlines()))


def _pieces(messages: Sequence[Message], sent: frozenset[str]) -> list[str]:
    """Return what is no longer sent: turns of dialogue with their speaker, and lines of tool results."""
    pieces: list[str] = []
    for message in messages:
        if message.role in ("user", "assistant") and message.text.strip() and message.text.strip() not in sent:
            pieces += _cut(f"{message.role}: {message.text}")
        for result in message.results:
            text = result.text
            lines = (text[a:b].strip() for a, b in units(text).spans)
            pieces += [line for line in lines if line and line not in sent]
    return pieces


def _cut(text: str) -> list[str]:
    return [text[i : i + LONGEST_PIECE_CHARS] for i in range(0, len(text), LONGEST_PIECE_CHARS)]
