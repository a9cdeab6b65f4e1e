"""What was said in compacted dialogue and fits a later user turn is appended to that turn; the cached prefix is unchanged.

It is quoted there behind its speaker. Results of tools are not: an agent's tools find them again, and in recorded sessions
of agents no quotation of them held a name that the next step took.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import groupby, pairwise
from math import inf
from sys import getsizeof
from typing import TypeAlias

import numpy as np

from ctx_hooks.compaction.history import History
from ctx_hooks.compaction.message_index import chain
from ctx_hooks.compaction.retrieval_share import Share, asks
from ctx_hooks.compaction.selection import bm25
from ctx_hooks.conversation import placeholders
from ctx_hooks.conversation.model import Message, Text
from ctx_hooks.runtime.content_cache import ContentCache
from ctx_hooks.tokens.budget import Budget

LEAST_SCORE_FRACTION = 0.3
"""A piece that fits the turn less than this share of the best one stays out: it shares the turn's common words alone."""
LONGEST_PIECE_CHARS = 600
"""A longer turn is ranked in pieces of this length: what answers a question is rarely longer."""
_Pieces: TypeAlias = tuple[tuple[int, int, str], ...]
"""Each behind the index of its message, and its number among the pieces of that message."""
_texts: ContentCache[str] = ContentCache()
_cut_pieces: ContentCache[_Pieces] = ContentCache()


@dataclass(frozen=True)
class Retrieval:
    """Looks up the compacted text that is relevant to each user turn since a compaction.

    Attributes:
        history: the conversation as the client sent it.
        length: how many of its messages are compacted.
        left: the messages that the compaction left.
        digest: stands for the compacted messages, and for all else that their compaction depends on.
        budget: of the whole request.
        share: what of it each user turn may be given.
        left_tokens: what is free of it in the request that a turn, given by its index, was sent with.
    """

    history: History
    length: int
    left: Sequence[Message]
    digest: bytes
    budget: Budget
    share: Share
    left_tokens: Callable[[int], float] = lambda _turn: inf

    def texts(self) -> dict[int, str]:
        """Return the text that is appended to each user turn since the compaction, by the index of its message.

        A turn may have what those before it have left of their share.
        """
        index, share = self.history.index, self.share
        texts: dict[int, str] = {}
        spent_tokens = questions = 0
        turns = [i for i in range(self.length, len(index)) if asks(index, i, self.budget)] if self.length else []
        digests = chain(self.digest, index[self.length :]) if turns else ()
        for number, turn in enumerate(turns, 1):
            questions += index[turn].is_question
            share_tokens = share.question_tokens if index[turn].is_question else share.usual_tokens
            most_tokens = min(share.reserved_tokens(number, questions), self.left_tokens(turn))
            room_tokens = min(share_tokens, most_tokens - spent_tokens)
            key = (digests[turn + 1 - self.length], room_tokens)
            text = _texts.get(key, partial(self.text, turn, room_tokens), getsizeof)
            if text:
                texts[turn] = text
                spent_tokens += self.budget.counter.text(appended(text))
        return texts

    def text(self, turn: int, room_tokens: float) -> str:
        """Return the pieces that fit the user turn at the index `turn` best and are not sent, "" for none.

        They have at most `room_tokens`, in order. None is quoted where a turn that is still sent fits as well as the best.
        """
        request = self._message(turn).text
        if room_tokens < 1 or not request.strip():
            return ""
        self.budget.counter.deadline.check()
        sent = (*self.left, *self.history.messages.conversation(self.length, turn).messages)
        texts = [*(piece for _, _, piece in self._cut), *(piece for message in sent for piece in pieces_of(message))]
        scores = bm25.rank(request, texts, bm25.remembered_hashes_of)
        pieces = scores[: len(self._cut)]
        best = pieces.max(initial=0.0)
        if best <= scores[len(self._cut) :].max(initial=0.0):
            return ""
        fitting = np.flatnonzero(pieces > LEAST_SCORE_FRACTION * best)
        kept = self._kept(fitting[np.lexsort((-fitting, -pieces[fitting]))], room_tokens)
        text = self._quoted(sorted(kept))
        while kept and self.budget.counter.text(appended(text)) > room_tokens:
            # Lines side by side may have a token more than each alone.
            kept.pop()
            text = self._quoted(sorted(kept))
        return text

    def _kept(self, ranked: Iterable[int], room_tokens: float) -> list[int]:
        """Return the numbers of the pieces that the room holds by estimate, of pieces ranked best first."""
        count = self.budget.counter.text
        room_tokens -= count(appended(placeholders.retrieved_heading(self.budget.policy.language)))
        kept: list[int] = []
        speakers: set[int] = set()
        for n in map(int, ranked):
            index = self._cut[n][0]
            speaker = 0 if index in speakers else count(self._speaker(index)) + 1
            tokens = count(_behind(self._said(n))) + speaker
            if tokens > room_tokens:
                break
            kept.append(n)
            speakers.add(index)
            room_tokens -= tokens
        return kept

    def _quoted(self, kept: Sequence[int]) -> str:
        """Return the pieces of these numbers, in order, quoted by message under a heading; "" for none."""
        lines = [placeholders.retrieved_heading(self.budget.policy.language)] if kept else []
        for index, found in groupby(kept, key=lambda n: self._cut[n][0]):
            numbers = list(found)
            gaps = [f" {placeholders.GAP} " * (number > before + 1) for before, number in pairwise(numbers)]
            text = "".join(gap + self._said(n) for gap, n in zip(["", *gaps], numbers, strict=True))
            lines.append(f"{self._speaker(index)}{_behind(text)}")
        return "\n".join(lines)

    def _speaker(self, index: int) -> str:
        message = self._message(index)
        return placeholders.source_of_speaker(message.role, message.name, self.budget.policy.language)

    def _message(self, index: int) -> Message:
        return self.history.messages.message(index)

    @cached_property
    def _cut(self) -> _Pieces:
        return _cut_pieces.get(
            self.digest, self._pieces_cut, lambda found: sum(getsizeof(p) + getsizeof(p[2]) for p in found)
        )

    def _pieces_cut(self) -> _Pieces:
        """Return the pieces of the compacted messages that are no longer sent."""
        left = {line.strip() for m in self.left for line in (m.text, *m.text.splitlines())}
        compacted = self.history.messages.conversation(0, self.length).messages
        cut = ((i, m) for i, m in enumerate(compacted) if m.text.strip() not in left)
        return tuple((i, number, piece) for i, m in cut for number, piece in enumerate(pieces_of(m)))

    def _said(self, n: int) -> str:
        """Return a piece of the compacted messages without the speaker's role, by its number among these."""
        index, number, piece = self._cut[n]
        return piece if number else piece.removeprefix(f"{self._message(index).role}: ")


def pieces_of(message: Message) -> list[str]:
    """Return what a user or the assistant said behind the speaker's role, in pieces of bounded length."""
    if message.role not in ("user", "assistant") or not message.text.strip():
        return []
    text = f"{message.role}: {message.text}"
    return [text[i : i + LONGEST_PIECE_CHARS] for i in range(0, len(text), LONGEST_PIECE_CHARS)]


def added(message: Message, text: str) -> Message:
    """Return a user's message with `text` behind his own words, which stay as they are."""
    return replace(message, parts=(*message.parts, Text(appended(text))), edited=True)


def appended(text: str) -> str:
    """Return `text` as it stands behind the user's words."""
    return f"\n{text}"


def _behind(text: str) -> str:
    """Return what somebody said as it stands behind its speaker: on the same line, or quoted below it line by line."""
    plain = text.strip()
    is_plain = plain.isprintable() and placeholders.MARK not in plain
    return f" {plain}" if is_plain else f"\n{placeholders.block_quoted(plain)}"
