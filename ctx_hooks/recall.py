"""What a new user turn asks for and a compaction had cut, put back as part of that turn.

It is quoted there, under a line that says where it comes from: in a user's message nothing may read as the user's words
that a tool, or the page that a tool has fetched, has written.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ctx_hooks import arguments, notices, relevance
from ctx_hooks.conversation import Conversation, Message, Text, ToolResult
from ctx_hooks.salience import units
from ctx_hooks.steps.results import call_names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ctx_hooks.budget import Budget
    from ctx_hooks.policy.settings import Language

LEAST_SCORE_FRACTION = 0.3
"""A piece that fits the turn less than this share of the best one stays out: small talk asks for nothing."""
LONGEST_PIECE_CHARS = 600
"""A longer turn or line is offered in pieces of this length: what answers a question is rarely longer."""


class Piece(NamedTuple):
    """What can be put back: the text that is ranked, its quotation, and the message and part it comes from.

    `speaker` is the message of who said it, None for a line of a tool's result.
    """

    text: str
    quotation: str
    source: tuple[int, int]
    speaker: Message | None = None


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
    scores = relevance.rank(request, (*(p.text for p in pieces), *(p.text for m in sent for p in _spoken(m))))
    best = max(scores[: len(pieces)], default=0.0)
    if best <= max(scores[len(pieces) :], default=0.0):
        return ""
    least = LEAST_SCORE_FRACTION * best
    kept: set[int] = set()
    sources: set[tuple[int, int]] = set()
    calls = call_names(conversation.messages[: compacted.length])
    language, count = budget.policy.language, budget.counter.text
    room -= count(notices.recalled(language))
    for n in sorted(range(len(pieces)), key=lambda n: (-scores[n], -n)):
        price = count(notices.quoted(pieces[n].quotation)) + 1
        if pieces[n].source not in sources:
            price += count(_source_line(pieces[n], calls, language)) + 1
        if scores[n] <= least or price > room:
            break
        kept.add(n)
        sources.add(pieces[n].source)
        room -= price
    if not kept:
        return ""
    lines = [notices.recalled(language)]
    for _, found in groupby((pieces[n] for n in sorted(kept)), key=lambda p: p.source):
        of_source = list(found)
        lines += [_source_line(of_source[0], calls, language), *(notices.quoted(p.quotation) for p in of_source)]
    return "\n".join(lines)


def _source_line(piece: Piece, calls: Mapping[tuple[int, int], tuple[str, str]], language: Language) -> str:
    if piece.speaker is not None:
        return notices.source_of_speaker(piece.speaker.role, piece.speaker.name, language)
    name, given = calls.get(piece.source, ("", ""))
    return notices.source_of_call(f"{name}({arguments.digest(given)})" if name else "", language)


def added(message: Message, text: str) -> Message:
    """Return a user's message with `text` behind his own words, which stay as they are."""
    return replace(message, parts=(*message.parts, Text(f"\n{text}")), edited=True)


def _lines(messages: Sequence[Message]) -> frozenset[str]:
    texts = [m.text for m in messages] + [r.text for m in messages for r in m.results]
    return frozenset(line.strip() for text in texts for line in (text, *text.splitlines()))


def _pieces(messages: Sequence[Message], sent: frozenset[str]) -> list[Piece]:
    """Return what is no longer sent: turns of dialogue with their speaker, and lines of tool results."""
    pieces: list[Piece] = []
    for i, message in enumerate(messages):
        if message.text.strip() not in sent:
            pieces += _spoken(message, i)
        for k, part in enumerate(message.parts):
            text = part.text if isinstance(part, ToolResult) else ""
            lines = (text[a:b].strip() for a, b in units(text).spans)
            pieces += [Piece(line, line, (i, k)) for line in lines if line and line not in sent]
    return pieces


def _spoken(message: Message, index: int = 0) -> list[Piece]:
    """Return what a user or the assistant said, in pieces of bounded length, the first one ranked with the speaker."""
    if message.role not in ("user", "assistant") or not message.text.strip():
        return []
    opening = f"{message.role}: "
    text = opening + message.text
    cuts = range(0, len(text), LONGEST_PIECE_CHARS)
    pieces = (text[i : i + LONGEST_PIECE_CHARS] for i in cuts)
    return [Piece(p, p if n else p[len(opening) :], (index, -1), message) for n, p in enumerate(pieces)]
