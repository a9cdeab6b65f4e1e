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


def block(conversation: Conversation, compacted: Compacted, budget: Budget, room: float) -> str:
    """Return the pieces of the compacted messages that fit the newest message best and are not sent, "" for none.

    They have at most `room` tokens, in the order in which they were said. Where a turn that is still sent fits as well as
    the best of them, nothing has to be put back.
    """
    request = conversation.messages[-1].text
    if room < 1 or not request.strip():
        return ""
    sent = (*compacted.messages, *conversation.messages[compacted.length : -1])
    pieces = _pieces(conversation.messages[: compacted.length], _lines(compacted.messages))
    scores = relevance.rank(request, (*pieces, *_spoken(sent)))
    best = max(scores[: len(pieces)], default=0.0)
    if best <= max(scores[len(pieces) :], default=0.0):
        return ""
    least = LEAST_SCORE_FRACTION * best
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


def _lines(messages: Sequence[Message]) -> frozenset[str]:
    texts = [m.text for m in messages] + [r.text for m in messages for r in m.results]
    return frozenset(line.strip() for text in texts for line in (text, *text.splitlines()))


def _pieces(messages: Sequence[Message], sent: frozenset[str]) -> list[str]:
    """Return what is no longer sent: turns of dialogue with their speaker, and lines of tool results."""
    pieces: list[str] = []
    for message in messages:
        if message.text.strip() not in sent:
            pieces += _spoken((message,))
        for result in message.results:
            text = result.text
            lines = (text[a:b].strip() for a, b in units(text).spans)
            pieces += [line for line in lines if line and line not in sent]
    return pieces


def _spoken(messages: Sequence[Message]) -> list[str]:
    """Return what users and assistants said, with the speaker, in pieces of bounded length."""
    said = (f"{m.role}: {m.text}" for m in messages if m.role in ("user", "assistant") and m.text.strip())
    return [text[i : i + LONGEST_PIECE_CHARS] for text in said for i in range(0, len(text), LONGEST_PIECE_CHARS)]
