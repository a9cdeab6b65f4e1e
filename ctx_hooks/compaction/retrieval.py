"""Compacted text relevant to a later user turn is appended to that turn; the cached prefix is unchanged.

It is quoted there, under a line that says where it comes from: in a user's message nothing may read as the user's words
that a tool, or the page that a tool has fetched, has written.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import accumulate, groupby
from math import inf
from sys import getsizeof
from typing import TYPE_CHECKING

import numpy as np

from ctx_hooks.compaction import tool_arguments
from ctx_hooks.compaction.message_index import chain
from ctx_hooks.compaction.retrieval_index import blocks, dialogue, lines_in, pieces_of, spoken
from ctx_hooks.compaction.retrieval_share import asks
from ctx_hooks.compaction.selection import bm25
from ctx_hooks.conversation import placeholders
from ctx_hooks.conversation.model import Message, Text, ToolResult
from ctx_hooks.runtime.content_cache import ContentCache

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from numpy.typing import NDArray

    from ctx_hooks.compaction.history import History
    from ctx_hooks.compaction.retrieval_index import Block, Piece
    from ctx_hooks.compaction.retrieval_share import Share
    from ctx_hooks.compaction.selection.bm25 import Integers, Postings
    from ctx_hooks.tokens.budget import Budget

LEAST_SCORE_FRACTION = 0.3
"""A piece that fits the turn less than this share of the best one stays out: it shares the turn's common words alone."""
LOOKED_BACK_MESSAGES = 100
"""How far before a result its call is looked for: it stands directly before it, parallel calls of one answer in between."""

_texts: ContentCache[str] = ContentCache()
_cut_texts: ContentCache[CutText] = ContentCache()


@dataclass(frozen=True, slots=True)
class CutText:
    """Which of the pieces of the compacted messages a compaction cut, and what it left of the dialogue.

    Attributes:
        is_cut: for each piece whether it is no longer sent.
        places: for each that is not, the index of its message, and its number among the pieces of that message.
        left: of the dialogue that the compaction left.
    """

    is_cut: NDArray[np.bool_]
    places: Integers
    left: Postings

    @property
    def size_bytes(self) -> int:
        """The memory that is held."""
        return getsizeof(self.is_cut) + getsizeof(self.places) + self.left.size_bytes


def cut_text(blocks: Sequence[Block], left: Sequence[Message]) -> CutText:
    """Return what the messages of `blocks` say and `left`, their compacted form, does not."""
    is_cut = ~np.isin(np.concatenate([block.wholes for block in blocks]), lines_in(left))
    counts = np.concatenate([block.counts for block in blocks])
    cut = np.flatnonzero(is_cut)
    index = np.repeat(np.arange(len(counts)), counts)[cut]
    number = cut - (np.cumsum(counts) - counts)[index]
    return CutText(is_cut, np.stack((index, number), axis=1).astype(np.int32), dialogue(left))


class Retrieval:
    """Looks up the compacted text that is relevant to each user turn since a compaction.

    Args:
        history: the conversation as the client sent it.
        length: how many of its messages are compacted.
        left: the messages that the compaction left.
        digest: stands for the compacted messages, and for all else that their compaction depends on.
        budget: of the whole request.
        share: what of it each user turn may be given.
        left_tokens: what is free of it in the request that a turn, given by its index, was sent with; by default its share.
    """

    def __init__(
        self,
        history: History,
        length: int,
        left: Sequence[Message],
        digest: bytes,
        budget: Budget,
        share: Share,
        left_tokens: Callable[[int], float] = lambda _turn: inf,
    ) -> None:
        self._history = history
        self._length = length
        self._left = left
        self._digest = digest
        self._budget = budget
        self._share = share
        self._left_tokens = left_tokens
        self._pieces_of: dict[int, list[Piece]] = {}

    def texts(self) -> dict[int, str]:
        """Return the text that is appended to each user turn since the compaction, by the index of its message.

        A turn may have what those before it have left of their share.
        """
        index, share = self._history.index, self._share
        texts: dict[int, str] = {}
        spent_tokens = questions = 0
        since = index[self._length :] if self._length else ()
        turns = [i for i in range(self._length, len(index)) if asks(index, i, self._budget)] if self._length else []
        digests = chain(self._digest, since) if turns else ()
        for number, turn in enumerate(turns, 1):
            questions += index[turn].is_question
            most_tokens = min(share.reserved_tokens(number, questions), self._left_tokens(turn))
            room_tokens = min(share.of(index[turn]), most_tokens - spent_tokens)
            key = (digests[turn + 1 - self._length], room_tokens)
            text = _texts.get(key, partial(self.text, turn, room_tokens), getsizeof)
            if text:
                texts[turn] = text
                spent_tokens += self._budget.counter.text(appended(text))
        return texts

    def text(self, turn: int, room_tokens: float) -> str:
        """Return the pieces that fit the user turn at the index `turn` best and are not sent, "" for none.

        They have at most `room_tokens`, in the order in which they were said. Where a turn that is still sent fits as well
        as the best of them, nothing is retrieved.
        """
        request = self._message(turn).text
        if room_tokens < 1 or not request.strip():
            return ""
        cut, said = self._cut, self._said_since
        is_said_before = np.arange(len(said.chars)) < self._said_before[turn - self._length]
        is_ranked = np.concatenate((cut.is_cut, np.ones(len(cut.left.chars), np.bool_), is_said_before))
        scores = bm25.scores(request, (*(block.postings for block in self._blocks), cut.left, said), is_ranked)
        pieces = scores[: len(cut.places)]
        best = pieces.max(initial=0.0)
        if best <= scores[len(cut.places) :].max(initial=0.0):
            return ""
        fitting = np.flatnonzero(pieces > LEAST_SCORE_FRACTION * best)
        kept = self._kept(fitting[np.lexsort((-fitting, -pieces[fitting]))], room_tokens)
        text = self._quoted(sorted(kept))
        while kept and self._budget.counter.text(appended(text)) > room_tokens:
            # Lines side by side may have a token more than each alone.
            kept.pop()
            text = self._quoted(sorted(kept))
        return text

    def _kept(self, ranked: Iterable[int], room_tokens: float) -> list[int]:
        """Return the numbers of the pieces that the room holds by estimate, of pieces ranked best first."""
        count = self._budget.counter.text
        room_tokens -= count(appended(placeholders.retrieved_heading(self._budget.policy.language)))
        kept: list[int] = []
        sources: set[tuple[int, int]] = set()
        for n in map(int, ranked):
            index, piece = self._piece(n)
            named = (index, piece.part) in sources
            tokens = (
                count(placeholders.quoted(piece.quotation)) + 1 + (0 if named else count(self._source(index, piece)) + 1)
            )
            if tokens > room_tokens:
                break
            kept.append(n)
            sources.add((index, piece.part))
            room_tokens -= tokens
        return kept

    def _quoted(self, kept: Sequence[int]) -> str:
        """Return the pieces of these numbers, in order, quoted by source under a heading; "" for none."""
        lines = [placeholders.retrieved_heading(self._budget.policy.language)] if kept else []
        for (index, part), numbers in groupby(kept, key=lambda n: (int(self._cut.places[n][0]), self._piece(n)[1].part)):
            found = [(int(self._cut.places[n][1]), self._piece(n)[1]) for n in numbers]
            source = self._source(index, found[0][1])
            if part < 0:
                lines.append(f"{source} {placeholders.spoken(_joined(found))}")
            else:
                lines += [source, *(placeholders.quoted(piece.quotation) for _, piece in found)]
        return "\n".join(lines)

    def _piece(self, n: int) -> tuple[int, Piece]:
        """Return the piece of this number, and the index of its message."""
        index, number = map(int, self._cut.places[n])
        if index not in self._pieces_of:
            self._pieces_of[index] = pieces_of(self._message(index))
        return index, self._pieces_of[index][number]

    def _source(self, index: int, piece: Piece) -> str:
        """Return the line that says whose words a piece of the message `index` is."""
        language = self._budget.policy.language
        message = self._message(index)
        if piece.part < 0:
            return placeholders.source_of_speaker(message.role, message.name, language)
        result = message.parts[piece.part]
        call_id = result.call_id if isinstance(result, ToolResult) else ""
        before = range(index - 1, max(-1, index - 1 - LOOKED_BACK_MESSAGES), -1)
        call = next((c for i in before for c in self._message(i).calls[::-1] if c.id == call_id), None)
        return placeholders.source_of_call(f"{call.name}({tool_arguments.digest(call.arguments)})" if call else "", language)

    def _message(self, index: int) -> Message:
        return self._history.messages.message(index)

    @cached_property
    def _blocks(self) -> tuple[Block, ...]:
        """The compacted messages; looked at only when a turn asks."""
        return tuple(blocks(self._history, self._length, self._budget.counter))

    @cached_property
    def _cut(self) -> CutText:
        return _cut_texts.get(self._digest, lambda: cut_text(self._blocks, self._left), lambda cut: cut.size_bytes)

    @cached_property
    def _since(self) -> tuple[Message, ...]:
        return self._history.messages.conversation(self._length, len(self._history.index)).messages

    @cached_property
    def _said_since(self) -> Postings:
        return dialogue(self._since)

    @cached_property
    def _said_before(self) -> tuple[int, ...]:
        """For each message since the compaction how many pieces of dialogue stand before it."""
        return (0, *accumulate(len(spoken(m)) for m in self._since))


def added(message: Message, text: str) -> Message:
    """Return a user's message with `text` behind his own words, which stay as they are."""
    return replace(message, parts=(*message.parts, Text(appended(text))), edited=True)


def appended(text: str) -> str:
    """Return `text` as it stands behind the user's words."""
    return f"\n{text}"


def _joined(found: Sequence[tuple[int, Piece]]) -> str:
    """Return pieces of one message, each with its number there, as one text: a mark stands where one between is missing."""
    text = ""
    for (before, _), (number, piece) in zip(((-1, None), *found), found, strict=False):
        text += f" {placeholders.GAP} " * (bool(text) and number > before + 1) + piece.quotation
    return text
