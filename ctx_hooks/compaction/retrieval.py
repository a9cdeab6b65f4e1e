"""What was said in compacted dialogue and fits a later user turn is appended to that turn; the cached prefix is unchanged.

It is quoted there behind its speaker. Results of tools are not: an agent's tools find them again, and in recorded sessions
of agents no quotation of them held a name that the next step took.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import accumulate, groupby, pairwise
from math import inf
from operator import itemgetter
from sys import getsizeof

import numpy as np
from numpy.typing import NDArray

from ctx_hooks.compaction.history import History
from ctx_hooks.compaction.message_index import chain
from ctx_hooks.compaction.retrieval_index import Block, blocks, lines_in, pieces_of, postings_of
from ctx_hooks.compaction.retrieval_share import Share, asks
from ctx_hooks.compaction.selection import bm25
from ctx_hooks.compaction.selection.bm25 import Integers, Postings
from ctx_hooks.conversation import placeholders
from ctx_hooks.conversation.model import Message, Text
from ctx_hooks.runtime.content_cache import ContentCache
from ctx_hooks.tokens.budget import Budget

LEAST_SCORE_FRACTION = 0.3
"""A piece that fits the turn less than this share of the best one stays out: it shares the turn's common words alone."""

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
    return CutText(is_cut, np.stack((index, number), axis=1).astype(np.int32), postings_of(left))


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
        speakers: set[int] = set()
        for n in map(int, ranked):
            index, number = map(int, self._cut.places[n])
            speaker = 0 if index in speakers else count(self._speaker(index)) + 1
            tokens = count(_said(self._piece(index, number))) + speaker
            if tokens > room_tokens:
                break
            kept.append(n)
            speakers.add(index)
            room_tokens -= tokens
        return kept

    def _quoted(self, kept: Sequence[int]) -> str:
        """Return the pieces of these numbers, in order, quoted by message under a heading; "" for none."""
        lines = [placeholders.retrieved_heading(self._budget.policy.language)] if kept else []
        for index, places in groupby(self._cut.places[list(kept)].tolist(), key=itemgetter(0)):
            numbers = [number for _, number in places]
            pieces = [self._piece(index, number) for number in numbers]
            gaps = [f" {placeholders.GAP} " * (number > before + 1) for before, number in pairwise(numbers)]
            text = "".join(gap + piece for gap, piece in zip(["", *gaps], pieces, strict=True))
            lines.append(f"{self._speaker(index)}{_said(text)}")
        return "\n".join(lines)

    def _piece(self, index: int, number: int) -> str:
        """Return a piece of what the message `index` says."""
        message = self._message(index)
        piece = pieces_of(message)[number]
        return piece if number else piece.removeprefix(f"{message.role}: ")

    def _speaker(self, index: int) -> str:
        message = self._message(index)
        return placeholders.source_of_speaker(message.role, message.name, self._budget.policy.language)

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
        return postings_of(self._since)

    @cached_property
    def _said_before(self) -> tuple[int, ...]:
        """For each message since the compaction how many pieces stand before it."""
        return (0, *accumulate(len(pieces_of(m)) for m in self._since))


def added(message: Message, text: str) -> Message:
    """Return a user's message with `text` behind his own words, which stay as they are."""
    return replace(message, parts=(*message.parts, Text(appended(text))), edited=True)


def appended(text: str) -> str:
    """Return `text` as it stands behind the user's words."""
    return f"\n{text}"


def _said(text: str) -> str:
    """Return what somebody said as it stands behind its speaker: on the same line, or quoted below it line by line."""
    plain = text.strip()
    is_plain = plain.isprintable() and placeholders.MARK not in plain
    return f" {plain}" if is_plain else f"\n{placeholders.block_quoted(plain)}"
