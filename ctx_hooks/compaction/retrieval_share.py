"""How much compacted dialogue the user turns after a compaction may get.

It depends on how much of the conversation is plain dialogue: an agent finds lost text again with its tools.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, takewhile

from ctx_hooks.compaction.history import History, MessageStats
from ctx_hooks.tokens.budget import Budget
from ctx_hooks.tokens.units import LocalTokens

USUAL_FRACTION = 0.1
"""The share of a user turn without a question, in a conversation of plain dialogue only."""
QUESTION_FRACTION = 1 / 3
"""The share of a question. For 250 questions about five long dialogues (LoCoMo), at a quarter of the tokens, requests have
0.81 of the turns that answer."""
MOST_TOKENS = 8_000
"""The largest share: an answer's source is rarely longer, and each turn's text is new to the prompt cache."""
LONGEST_TURN_TOKENS = 2_000
"""A longer user turn, such as a pasted file, brings its own text."""
LONGEST_TALK_TOKENS = 150
"""Longer answers are no dialogue: a question's share has room for few of them."""
LATER_TURN_FRACTION = 0.5
"""Fraction of the usual share that each later user turn adds; a turn may use what earlier turns left."""


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
        most_tokens = max(0.0, min(MOST_TOKENS, free_tokens / 2))
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
    """Whether the user's turn at `i` gets compacted text: neither a pasted file nor a client's reminder does."""
    message = index[i]
    if i and not message.is_question and index[i - 1].role in ("user", "tool") and not index[i - 1].is_request:
        return False
    return message.is_request and message.tokens <= min(LONGEST_TURN_TOKENS, budget.goal_tokens * USUAL_FRACTION)


def _plain_answers(index: Sequence[MessageStats]) -> Iterator[int]:
    """Yield the indices of the assistant's short answers directly before a user's words."""
    for request in (i for i, message in enumerate(index) if message.is_request):
        answered = takewhile(lambda i: index[i].role == "assistant", range(request - 1, -1, -1))
        yield from (i for i in answered if index[i].tokens <= LONGEST_TALK_TOKENS)
