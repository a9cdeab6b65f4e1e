"""How much compacted dialogue the user turns behind a compaction may be given.

It follows how much of the conversation is plain dialogue, from the sizes and roles of its compacted messages alone: an agent
finds out again by its tools what it has lost, in dialogue what was said long ago stands nowhere else.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import accumulate, takewhile

from ctx_hooks.compaction.history import History
from ctx_hooks.compaction.message_index import MessageStats
from ctx_hooks.policy.settings import fraction_of
from ctx_hooks.tokens.budget import Budget
from ctx_hooks.tokens.units import LocalTokens

USUAL_FRACTION = 0.1
"""The share of a user turn that asks nothing, in a conversation that is plain dialogue throughout."""
QUESTION_FRACTION = 1 / 3
"""That of a question. Of 250 questions about five long dialogues (LoCoMo), at a quarter of the tokens, the turns that answer
are sent to 0.81 with it, to 0.68 with a tenth and the ranking before; a prefix cache serves 0.82 of what is sent instead of
0.80, since a compaction of dialogue leaves room for it."""
MOST_TOKENS = 8_000
"""The most of it: an answer's source is rarely longer, and each turn's text is new to the prompt cache."""
LONGEST_TURN_TOKENS = 2_000
"""A user's turn of more, such as a pasted file, brings its own."""
LONGEST_TALK_TOKENS = 150
"""A longer answer is no talk: a question's share would hold few of them, and what chats about code lose by a deep compaction
no question brings back. Retrieval takes 600 characters for a piece."""
LATER_TURN_FRACTION = 0.5
"""What each later user turn behind a compaction adds, of the usual share: it may use what those before it left."""


@dataclass(frozen=True, slots=True)
class Share:
    """What one user turn behind a compaction may be given, in tokens: a question, and any other."""

    question_tokens: float = 0.0
    usual_tokens: float = 0.0

    def reserved_tokens(self, turns: int, questions: int) -> int:
        """Return the most that the first `turns` user turns may be given together, so many `questions` among them."""
        if not turns:
            return 0
        first_tokens = self.question_tokens if questions else self.usual_tokens
        return int(first_tokens + LATER_TURN_FRACTION * self.usual_tokens * (turns - 1))


class Shares:
    """The shares behind the compactions of one history."""

    def __init__(self, history: History, budget: Budget) -> None:
        self._budget = budget
        self._rest_tokens = max(0, budget.goal_tokens - history.fixed_tokens)
        index = history.index
        other = [0 if m.is_request or m.role == "system" else m.tokens for m in index]
        answers = frozenset(_plain_answers(index))
        self._other_tokens = list(accumulate(other, initial=0))
        self._answer_tokens = list(accumulate([n if i in answers else 0 for i, n in enumerate(other)], initial=0))

    def behind(self, length: int, free_tokens: int) -> Share:
        """Return the share behind a compaction of the first `length` messages that leaves `free_tokens` of the budget.

        It is at most half of these: the messages that follow need room as well.
        """
        quoting = self._budget.policy.quoting
        most_tokens = max(0.0, min(quoting if isinstance(quoting, int) else MOST_TOKENS, free_tokens / 2))
        if (stated := fraction_of(quoting)) is not None:
            share_tokens = min(most_tokens, self._budget.goal_tokens * stated)
            return Share(share_tokens, share_tokens)
        dialogue_tokens = self._rest_tokens * self._dialogue_fraction(length)
        return Share(*(min(most_tokens, dialogue_tokens * fraction) for fraction in (QUESTION_FRACTION, USUAL_FRACTION)))

    def most_target_tokens(self, length: int) -> LocalTokens:
        """Return the most that a compaction of the first `length` messages may leave: in dialogue two shares are free."""
        goal_tokens = self._budget.goal_tokens
        if fraction_of(self._budget.policy.quoting) is not None:
            return goal_tokens
        share_tokens = self.behind(length, 2 * goal_tokens).question_tokens
        return LocalTokens(int(goal_tokens - 2 * share_tokens * self._dialogue_fraction(length)))

    def _dialogue_fraction(self, length: int) -> float:
        """Return how much of what users have not said is short plain answers; 0 while nobody has answered."""
        return self._answer_tokens[length] / max(1, self._other_tokens[length])


def asks(index: Sequence[MessageStats], i: int, budget: Budget) -> bool:
    """Whether the user's turn at `i` is given compacted text: a longer one, such as a pasted file, brings its own.

    Neither is one behind tool results that asks nothing: a client's reminder, new with each request.
    """
    message = index[i]
    if i and not message.is_question and index[i - 1].role in ("user", "tool") and not index[i - 1].is_request:
        return False
    quoting = budget.policy.quoting
    stated = fraction_of(quoting)
    longest_fraction = USUAL_FRACTION if stated is None else stated
    longest_tokens = quoting if isinstance(quoting, int) else LONGEST_TURN_TOKENS
    return message.is_request and message.tokens <= min(longest_tokens, budget.goal_tokens * longest_fraction)


def _plain_answers(index: Sequence[MessageStats]) -> Iterator[int]:
    """Yield the indices of the assistant's short answers that a user's words follow."""
    for request in (i for i, message in enumerate(index) if message.is_request):
        answered = takewhile(lambda i: index[i].role == "assistant", range(request - 1, -1, -1))
        yield from (i for i in answered if index[i].tokens <= LONGEST_TALK_TOKENS)
