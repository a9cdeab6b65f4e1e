"""Relevant compacted dialogue is quoted after a later user turn, with its speaker; the cached prefix is unchanged.

How much depends on how much of the conversation is plain dialogue. Tool results are not quoted: an agent's tools find them
again.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import accumulate, groupby, pairwise, takewhile
from math import inf
from sys import getsizeof
from typing import TypeAlias

import numpy as np

from ctx_hooks.compaction.history import History, MessageStats, chain
from ctx_hooks.compaction.selection import bm25
from ctx_hooks.conversation import placeholders
from ctx_hooks.conversation.model import Message, Text
from ctx_hooks.runtime.content_cache import ContentCache
from ctx_hooks.tokens.budget import Budget
from ctx_hooks.tokens.units import LocalTokens

USUAL_FRACTION = 0.1
"""The share of a user turn without a question, in a conversation of plain dialogue only."""
QUESTION_FRACTION = 1 / 3
"""The share of a question."""
MOST_SHARE_TOKENS = 8_000
"""The largest share: an answer's source is rarely longer, and each turn's text is new to the prompt cache."""
LONGEST_TURN_TOKENS = 2_000
"""A longer user turn, such as a pasted file, brings its own text."""
LONGEST_TALK_TOKENS = 150
"""Longer answers are no dialogue: a question's share has room for few of them."""
LATER_TURN_FRACTION = 0.5
"""Fraction of the usual share that each later user turn adds; a turn may use what earlier turns left."""
LEAST_SCORE_FRACTION = 0.3
"""A piece with less than this share of the best score is left out: it shares only common words with the turn."""
LONGEST_PIECE_CHARS = 600
"""A longer turn is ranked in pieces of this length: the answer to a question is rarely longer."""
_Pieces: TypeAlias = tuple[tuple[int, int, str], ...]
"""Pieces as (message index, number within the message, text)."""
_texts: ContentCache[str] = ContentCache()
_cut_pieces: ContentCache[_Pieces] = ContentCache()


@dataclass(frozen=True, slots=True)
class Share:
    """The most quoted tokens of one user turn after a compaction: for a question, and for any other turn."""

    question_tokens: float = 0.0
    usual_tokens: float = 0.0

    def reserved_tokens(self, turns: int, questions: int) -> int:
        """Return the most tokens that the first `turns` user turns may get together, with so many `questions` among them."""
        if not turns:
            return 0
        first_tokens = self.question_tokens if questions else self.usual_tokens
        return int(first_tokens + LATER_TURN_FRACTION * self.usual_tokens * (turns - 1))


class Shares:
    """The shares after the compactions of one history."""

    def __init__(self, history: History, budget: Budget) -> None:
        self._budget = budget
        self._rest_tokens = max(0, budget.goal_tokens - history.fixed_tokens)
        index = history.index
        other = [0 if m.is_request or m.role == "system" else m.tokens for m in index]
        answers = frozenset(_plain_answers(index))
        self._other_tokens = list(accumulate(other, initial=0))
        self._answer_tokens = list(accumulate([n if i in answers else 0 for i, n in enumerate(other)], initial=0))

    def behind(self, length: int, free_tokens: int) -> Share:
        """Return the share after a compaction of the first `length` messages, at most half of what it leaves free."""
        most_tokens = max(0.0, min(MOST_SHARE_TOKENS, free_tokens / 2))
        dialogue_tokens = self._rest_tokens * self._dialogue_fraction(length)
        return Share(*(min(most_tokens, dialogue_tokens * fraction) for fraction in (QUESTION_FRACTION, USUAL_FRACTION)))

    def most_target_tokens(self, length: int) -> LocalTokens:
        """Return the most that a compaction of the first `length` messages may leave: in dialogue two shares are free."""
        goal_tokens = self._budget.goal_tokens
        share_tokens = self.behind(length, 2 * goal_tokens).question_tokens
        return LocalTokens(int(goal_tokens - 2 * share_tokens * self._dialogue_fraction(length)))

    def _dialogue_fraction(self, length: int) -> float:
        """Return the fraction of short plain answers in all messages but users' words; 0 before the first answer."""
        return self._answer_tokens[length] / max(1, self._other_tokens[length])


def asks(index: Sequence[MessageStats], i: int, budget: Budget) -> bool:
    """Whether the user's turn at `i` gets compacted text; no pasted file and no client's reminder does."""
    message = index[i]
    if i and not message.is_question and index[i - 1].role in ("user", "tool") and not index[i - 1].is_request:
        return False
    return message.is_request and message.tokens <= min(LONGEST_TURN_TOKENS, budget.goal_tokens * USUAL_FRACTION)


def _plain_answers(index: Sequence[MessageStats]) -> Iterator[int]:
    """Yield the indices of the assistant's short answers directly before a user's words."""
    for request in (i for i, message in enumerate(index) if message.is_request):
        answered = takewhile(lambda i: index[i].role == "assistant", range(request - 1, -1, -1))
        yield from (i for i in answered if index[i].tokens <= LONGEST_TALK_TOKENS)


@dataclass(frozen=True)
class Quoting:
    """Looks up the compacted text that is relevant to each user turn since a compaction.

    Attributes:
        length: how many messages of the history are compacted.
        left: the messages that the compaction left.
        digest: the digest of the compacted messages and of all else that their compaction depends on.
        share: how much of the budget each user turn may get.
        left_tokens: the free tokens of the first request with a turn, by the turn's index.
    """

    history: History
    length: int
    left: Sequence[Message]
    digest: bytes
    budget: Budget
    share: Share
    left_tokens: Callable[[int], float] = lambda _turn: inf

    def texts(self) -> dict[int, str]:
        """Return the text that is appended to each user turn since the compaction, by the index of its message."""
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
        """Return the removed pieces that fit a user turn best, in order; "" if one that is still sent fits as well."""
        request = self._message(turn).text
        if room_tokens < 1 or not request.strip():
            return ""
        self.budget.counter.deadline.check()
        sent = (*self.left, *self.history.messages.conversation(self.length, turn).messages)
        texts = [*(piece for _, _, piece in self._cut), *(piece for message in sent for piece in pieces_of(message))]
        scores = bm25.rank(request, texts)
        pieces = scores[: len(self._cut)]
        best = pieces.max(initial=0.0)
        if best <= scores[len(self._cut) :].max(initial=0.0):
            return ""
        fitting = np.flatnonzero(pieces > LEAST_SCORE_FRACTION * best)
        kept = self._kept(fitting[np.lexsort((-fitting, -pieces[fitting]))], room_tokens)
        text = self._quoted(sorted(kept))
        while kept and self.budget.counter.text(appended(text)) > room_tokens:
            kept.pop()  # neighbouring lines may have a token more than their sum
            text = self._quoted(sorted(kept))
        return text

    def _kept(self, ranked: Iterable[int], room_tokens: float) -> list[int]:
        """Return the numbers of the best-ranked pieces that fit the room by estimate."""
        count = self.budget.counter.text
        room_tokens -= count(appended(placeholders.line("heading", self.budget.policy.language)))
        kept: list[int] = []
        for n in map(int, ranked):
            index, _, piece = self._cut[n]
            room_tokens -= count(appended(self._said(index, piece)))
            if room_tokens < 0:
                break
            kept.append(n)
        return kept

    def _quoted(self, kept: Sequence[int]) -> str:
        """Return the pieces with these numbers, in order, quoted by message under a heading; "" for none."""
        lines = [placeholders.line("heading", self.budget.policy.language)] if kept else []
        for index, found in groupby(kept, key=lambda n: self._cut[n][0]):
            numbers = list(found)
            gaps = [f" {placeholders.GAP} " * (number > before + 1) for before, number in pairwise(numbers)]
            text = "".join(gap + self._cut[n][2] for gap, n in zip(["", *gaps], numbers, strict=True))
            lines.append(self._said(index, text))
        return "\n".join(lines)

    def _said(self, index: int, text: str) -> str:
        message, language = self._message(index), self.budget.policy.language
        return placeholders.said_by(placeholders.source(message.role, message.name, language), [text.strip()], language)

    def _message(self, index: int) -> Message:
        return self.history.messages.message(index)

    @cached_property
    def _cut(self) -> _Pieces:
        """The pieces of the compacted messages that are no longer sent."""

        def found() -> _Pieces:
            left = {line.strip() for m in self.left for line in (m.text, *m.text.splitlines())}
            cut = ((i, m) for i, m in enumerate(map(self._message, range(self.length))) if m.text.strip() not in left)
            return tuple((i, number, piece) for i, m in cut for number, piece in enumerate(pieces_of(m)))

        return _cut_pieces.get(self.digest, found, lambda pieces: sum(getsizeof(p) + getsizeof(p[2]) for p in pieces))


def pieces_of(message: Message) -> list[str]:
    """Return the words of a user or the assistant, in pieces of bounded length."""
    text = message.text if message.role in ("user", "assistant") and message.text.strip() else ""
    return [text[i : i + LONGEST_PIECE_CHARS] for i in range(0, len(text), LONGEST_PIECE_CHARS)]


def added(message: Message, text: str) -> Message:
    """Return a user's message with `text` after its own words, which stay unchanged."""
    return replace(message, parts=(*message.parts, Text(appended(text))), edited=True)


def appended(text: str) -> str:
    """Return `text` in the form that follows the user's words."""
    return f"\n{text}"
