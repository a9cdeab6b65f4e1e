"""Compacted text relevant to a later user turn is appended to that turn; the cached prefix is unchanged.

It is quoted there, under a line that says where it comes from: in a user's message nothing may read as the user's words
that a tool, or the page that a tool has fetched, has written.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import accumulate, groupby, islice
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ctx_hooks.compaction import tool_arguments
from ctx_hooks.compaction.selection import bm25
from ctx_hooks.compaction.selection.segments import segment_spans
from ctx_hooks.conversation import placeholders
from ctx_hooks.conversation.model import Conversation, Message, Text, ToolResult

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from ctx_hooks.compaction.selection.bm25 import Postings
    from ctx_hooks.tokens.budget import Budget

LEAST_SCORE_FRACTION = 0.3
"""A piece that fits the turn less than this share of the best one stays out: small talk retrieves nothing."""
LONGEST_PIECE_CHARS = 600
"""A longer turn or line is ranked in pieces of this length: what answers a question is rarely longer."""
INDEXED_TOGETHER = 20_000
"""So many pieces share their postings: while they are made, no more memory is needed than these take."""


LOOKED_BACK_MESSAGES = 100
"""How far before a result its call is looked for: it stands directly before it, parallel calls of one answer in between."""


class Piece(NamedTuple):
    """What can be retrieved of a message: what is looked for among what is sent, what is ranked, and its quotation.

    `part` is the index of the tool result that it is a line of, -1 for what the message's author said.
    """

    whole: str
    text: str
    quotation: str
    part: int = -1


@dataclass(frozen=True, slots=True)
class CutText:
    """The stems of what a compaction cut, and of what it left of the dialogue.

    No text is held: `places` says for each piece its message, and its number among the pieces of that message.
    """

    postings: tuple[Postings, ...]
    places: bm25.Integers
    left: Postings

    @property
    def size_bytes(self) -> int:
        """The memory that is held."""
        return self.places.nbytes + self.left.size_bytes + sum(p.size_bytes for p in self.postings)


def cut_text(conversation: Conversation, left: Sequence[Message], budget: Budget) -> CutText:
    """Return what `conversation` says and `left`, its compacted form, does not."""
    places: list[tuple[int, int]] = []
    pieces = _cut_pieces(conversation, _lines(left), places, budget)
    postings = []
    while piece := next(pieces, None):
        postings.append(bm25.postings_of((piece, *islice(pieces, INDEXED_TOGETHER - 1))))
    return CutText(tuple(postings), np.array(places, np.int32).reshape(-1, 2), bm25.postings_of(_said(left)))


class Retrieval:
    """Looks up the compacted text that is relevant to each user turn since a compaction.

    `since` are the messages since then, `cut` what was cut and `read` a message that was compacted: both are asked only
    when there is something to look up.
    """

    def __init__(
        self, since: Sequence[Message], cut: Callable[[], CutText], read: Callable[[int], Message], budget: Budget
    ) -> None:
        self._since = since
        self._cut = cut
        self._read = read
        self._budget = budget

    def block(self, turn: int, room: float) -> str:
        """Return the pieces that fit the turn, `since[turn]`, best and are not sent, "" for none.

        They have at most `room` tokens, in the order in which they were said. Where a turn that is still sent fits as well
        as the best of them, nothing is retrieved.
        """
        request = self._since[turn].text
        if room < 1 or not request.strip():
            return ""
        cut = self._cut()
        sent = (cut.left, self._said_since.first(self._said_before[turn]))
        scores = bm25.scores(request, (*cut.postings, *sent))
        pieces = scores[: len(cut.places)]
        best = pieces.max(initial=0.0)
        if best <= scores[len(cut.places) :].max(initial=0.0):
            return ""
        fitting = np.flatnonzero(pieces > LEAST_SCORE_FRACTION * best)
        kept: dict[int, tuple[str, str]] = {}
        sources: set[str] = set()
        language, count = self._budget.policy.language, self._budget.counter.text
        room -= count(placeholders.retrieved_heading(language))
        for n in fitting[np.lexsort((-fitting, -pieces[fitting]))]:
            index, number = map(int, cut.places[n])
            piece = _pieces(self._read(index))[number]
            source, quotation = self._source(index, piece), placeholders.quoted(piece.quotation)
            price = count(quotation) + 1 + (0 if source in sources else count(source) + 1)
            if price > room:
                break
            kept[int(n)] = (source, quotation)
            sources.add(source)
            room -= price
        if not kept:
            return ""
        lines = [placeholders.retrieved_heading(language)]
        for source, found in groupby((kept[n] for n in sorted(kept)), key=lambda pair: pair[0]):
            lines += [source, *(quotation for _, quotation in found)]
        return "\n".join(lines)

    def _source(self, index: int, piece: Piece) -> str:
        """Return the line that says whose words a piece of the message `index` is."""
        language = self._budget.policy.language
        message = self._read(index)
        if piece.part < 0:
            return placeholders.source_of_speaker(message.role, message.name, language)
        result = message.parts[piece.part]
        call_id = result.call_id if isinstance(result, ToolResult) else ""
        before = range(index - 1, max(-1, index - 1 - LOOKED_BACK_MESSAGES), -1)
        call = next((c for i in before for c in self._read(i).calls[::-1] if c.id == call_id), None)
        return placeholders.source_of_call(f"{call.name}({tool_arguments.digest(call.arguments)})" if call else "", language)

    @cached_property
    def _said_since(self) -> Postings:
        return bm25.postings_of(_said(self._since))

    @cached_property
    def _said_before(self) -> tuple[int, ...]:
        """For each message since the compaction how many pieces of dialogue stand before it."""
        return (0, *accumulate(len(_spoken(m)) for m in self._since))


def added(message: Message, text: str) -> Message:
    """Return a user's message with `text` behind his own words, which stay as they are."""
    return replace(message, parts=(*message.parts, Text(f"\n{text}")), edited=True)


def _lines(messages: Sequence[Message]) -> frozenset[str]:
    texts = [m.text for m in messages] + [r.text for m in messages for r in m.results]
    return frozenset(line.strip() for text in texts for line in (text, *text.splitlines()))


def _cut_pieces(
    conversation: Conversation, sent: frozenset[str], places: list[tuple[int, int]], budget: Budget
) -> Iterator[str]:
    """Yield the pieces that are no longer sent, and note the place of each."""
    for i, message in enumerate(conversation.messages):
        budget.counter.deadline.check()
        for n, piece in enumerate(_pieces(message)):
            if piece.whole not in sent:
                places.append((i, n))
                yield piece.text


def _pieces(message: Message) -> list[Piece]:
    """Return a message's pieces: of a turn of dialogue, and lines of tool results."""
    pieces = _spoken(message)
    for k, part in enumerate(message.parts):
        if isinstance(part, ToolResult):
            text = part.text
            lines = (text[a:b].strip() for a, b in segment_spans(text))
            pieces += [Piece(line, line, line, k) for line in lines if line]
    return pieces


def _spoken(message: Message) -> list[Piece]:
    """Return what a user or the assistant said, in pieces of bounded length, the first one ranked with the speaker."""
    if message.role not in ("user", "assistant") or not message.text.strip():
        return []
    whole, opening = message.text.strip(), f"{message.role}: "
    text = opening + message.text
    pieces = (text[i : i + LONGEST_PIECE_CHARS] for i in range(0, len(text), LONGEST_PIECE_CHARS))
    return [Piece(whole, p, p if n else p[len(opening) :]) for n, p in enumerate(pieces)]


def _said(messages: Sequence[Message]) -> list[str]:
    """Return what is ranked of what users and assistants said."""
    return [piece.text for message in messages for piece in _spoken(message)]
