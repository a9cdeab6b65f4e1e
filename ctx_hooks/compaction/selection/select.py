"""Which older exchanges, and which of their lines, are kept: those with the most value for their tokens.

Two sources say what a later step will need. Identifiers: a line has the value of those that stand nowhere else in what is
kept, and the ones the assistant has used before count more. Relevance to the newest request: lines by the rare words they
share with it, plain dialogue by rank. The knapsack is greedy by value per token; an exchange pays for its frame once.
"""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from ctx_hooks.compaction.selection import bm25
from ctx_hooks.compaction.selection.knapsack import Knapsack, Selection, valued_items_of
from ctx_hooks.compaction.selection.scoring import identifiers_of, items_of
from ctx_hooks.conversation.protection import protected
from ctx_hooks.tokens.window import keep_recent_tokens_of

if TYPE_CHECKING:
    from ctx_hooks.conversation.model import Conversation
    from ctx_hooks.tokens.budget import Budget

DIALOGUE_RECENT_FRACTION = 0.05
"""Share of the room in which plain dialogue keeps its newest turns: what a question is about may stand anywhere."""


class Selector:
    """Selects from one conversation, as often as asked with another room: what does not depend on it is computed once."""

    def __init__(self, conversation: Conversation, budget: Budget) -> None:
        self.items = items_of(conversation, budget)
        self._budget = budget
        self._conversation = conversation
        self._protected = [conversation.messages[i] for i in protected(conversation)]
        used = identifiers_of(m for m in conversation.messages if m.role == "assistant")
        self._valued_items = valued_items_of(self.items, used)
        self._spoken = [item for item in self.items if item.spoken]

    def select(self, room_tokens: float, *, may_remove: bool) -> Selection:
        """Return what is kept of the older exchanges.

        Args:
            room_tokens: what it may have, by estimate; the frames of exchanges that have to stay may exceed it.
            may_remove: whether whole exchanges may go; otherwise each keeps at least its frame.
        """
        knapsack = Knapsack(self._valued_items, room_tokens, self._budget.counter)
        knapsack.cover(self._protected)
        if not may_remove:
            for item in self.items:
                knapsack.open(item)
        share = self._dialogue_share() if may_remove else 0.0
        recent = self._recent_fraction() * (1 - share) + DIALOGUE_RECENT_FRACTION * share
        self._keep_newest(knapsack, down_to=room_tokens * (1 - recent))
        self._keep_relevant_dialogue(knapsack, share)
        knapsack.take_lines()
        self._keep_newest(knapsack, down_to=0)
        for item in reversed(self.items):
            knapsack.fill(item, may_open=may_remove)
        return knapsack.selection()

    def _keep_newest(self, knapsack: Knapsack, down_to: float) -> None:
        """Keep the newest exchanges whole, one after another, while the room stays above `down_to`."""
        for item in reversed(self.items):
            if knapsack.room_tokens - knapsack.price_of_whole(item) < down_to:
                return
            knapsack.take_whole(item, [self._conversation.messages[i] for i in item.messages])

    def _recent_fraction(self) -> float:
        goal = self._budget.goal_tokens
        return keep_recent_tokens_of(goal, self._budget.policy) / max(1, goal)

    def _dialogue_share(self) -> float:
        """Return how much of the older exchanges is plain dialogue."""
        spoken = sum(item.whole_tokens for item in self.items if item.spoken)
        return spoken / max(1.0, sum(item.whole_tokens for item in self.items))

    def _keep_relevant_dialogue(self, knapsack: Knapsack, share: float) -> None:
        """Keep the turns of plain dialogue that fit the newest request best, in a `share` of the room."""
        if not share:
            return
        down_to = knapsack.room_tokens * (1 - share)
        for n in self._relevant_dialogue:
            item = self._spoken[n]
            if item.messages in knapsack.whole or item.sources:
                continue
            if knapsack.room_tokens - knapsack.price_of_whole(item) >= down_to:
                knapsack.take_whole(item, [self._conversation.messages[i] for i in item.messages])

    @cached_property
    def _relevant_dialogue(self) -> tuple[int, ...]:
        """The turns of plain dialogue that fit the newest request at all, best first, by number."""
        request = self._conversation.newest_request
        if request is None or not self._spoken:
            return ()
        texts = [" ".join(self._conversation.messages[i].text for i in c.messages) for c in self._spoken]
        scores = bm25.rank(self._conversation.messages[request].text, texts)
        return tuple(sorted((n for n, score in enumerate(scores) if score > 0), key=lambda n: (-scores[n], -n)))
