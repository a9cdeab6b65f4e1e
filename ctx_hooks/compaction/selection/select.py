"""Which older exchanges, and which of their lines, are worth their tokens.

Two sources say what a later step will need. Identifiers: a line is worth those that stand nowhere else in what is kept,
and the ones the assistant has used before count more. Relevance to the newest request: lines by the rare words they
share with it, plain dialogue by rank. The choice is greedy by worth per token; an exchange pays for its frame once.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from ctx_hooks.compaction.selection import bm25
from ctx_hooks.compaction.selection.knapsack import Choice, Selection, offers_of
from ctx_hooks.compaction.selection.scoring import candidates, identifiers_of
from ctx_hooks.conversation.protection import protected
from ctx_hooks.tokens.window import keep_recent_tokens_of

if TYPE_CHECKING:
    from ctx_hooks.conversation.model import Conversation
    from ctx_hooks.tokens.budget import Budget

DIALOGUE_RECENT_FRACTION = 0.05
"""Share of the room in which plain dialogue keeps its newest turns: what a question is about may stand anywhere."""


class Selector:
    """Selects from one conversation, as often as asked with another room."""

    def __init__(self, conversation: Conversation, budget: Budget) -> None:
        self.candidates = candidates(conversation, budget)
        self._budget = budget
        self._conversation = conversation
        self._protected = [conversation.messages[i] for i in protected(conversation)]
        used = identifiers_of(m for m in conversation.messages if m.role == "assistant")
        self._offers = offers_of(self.candidates, used)
        self._spoken = [c for c in self.candidates if c.spoken]

    def select(self, room_tokens: float, *, may_remove: bool) -> Selection:
        """Return the choice for about `room_tokens`; without `may_remove` every exchange keeps at least its frame."""
        choice = Choice(self._offers, room_tokens, self._budget.counter)
        choice.cover(self._protected)
        if not may_remove:
            for candidate in self.candidates:
                choice.open(candidate)
        share = self._dialogue_share() if may_remove else 0.0
        recent = self._recent_fraction() * (1 - share) + DIALOGUE_RECENT_FRACTION * share
        self._keep_newest(choice, down_to=room_tokens * (1 - recent))
        self._keep_relevant_dialogue(choice, share)
        choice.take_lines()
        self._keep_newest(choice, down_to=0)
        for candidate in reversed(self.candidates):
            choice.fill(candidate, may_open=may_remove)
        return choice.selection()

    def _keep_newest(self, choice: Choice, down_to: float) -> None:
        """Keep the newest exchanges whole, one after another, while the room stays above `down_to`."""
        for candidate in reversed(self.candidates):
            if choice.room - choice.price_of_whole(candidate) < down_to:
                return
            choice.take_whole(candidate, [self._conversation.messages[i] for i in candidate.messages])

    def _recent_fraction(self) -> float:
        goal = self._budget.goal_tokens
        return keep_recent_tokens_of(goal, self._budget.policy) / max(1, goal)

    def _dialogue_share(self) -> float:
        """Return how much of the older exchanges is plain dialogue."""
        spoken = sum(c.whole_tokens for c in self.candidates if c.spoken)
        return spoken / max(1.0, sum(c.whole_tokens for c in self.candidates))

    def _keep_relevant_dialogue(self, choice: Choice, share: float) -> None:
        """Keep the turns of plain dialogue that fit the newest request best, in a `share` of the room."""
        if not share:
            return
        down_to = choice.room * (1 - share)
        for n in self._relevant_dialogue:
            candidate = self._spoken[n]
            if candidate.messages in choice.whole or candidate.sources:
                continue
            if choice.room - choice.price_of_whole(candidate) >= down_to:
                choice.take_whole(candidate, [self._conversation.messages[i] for i in candidate.messages])

    @cached_property
    def _relevant_dialogue(self) -> tuple[int, ...]:
        """The turns of plain dialogue that fit the newest request at all, best first, by number."""
        request = self._conversation.newest_request
        if request is None or not self._spoken:
            return ()
        texts = [" ".join(self._conversation.messages[i].text for i in c.messages) for c in self._spoken]
        scores = bm25.rank(self._conversation.messages[request].text, texts)
        return tuple(sorted((n for n, score in enumerate(scores) if score > 0), key=lambda n: (-scores[n], -n)))
