"""What a compression has to reach."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ctx_hooks.policy.settings import DEFAULT_POLICY, Policy
from ctx_hooks.tokens.counter import Counter

if TYPE_CHECKING:
    from ctx_hooks.conversation.model import Conversation


@dataclass(frozen=True, slots=True)
class Budget:
    """The goal of one compression: at most `goal_tokens` in all, for a model of `window_tokens`.

    `cut_newest` allows what is otherwise protected, the results of the newest tool loop, to be cut as well.
    """

    goal_tokens: int
    window_tokens: int
    counter: Counter
    policy: Policy = DEFAULT_POLICY
    cut_newest: bool = True

    def excess(self, conversation: Conversation) -> int:
        """Return how many tokens `conversation` is above the goal; zero or less when it fits."""
        return self.counter.conversation(conversation) - self.goal_tokens

    def with_goal(self, goal_tokens: int) -> Budget:
        """Return this budget with another goal."""
        return replace(self, goal_tokens=goal_tokens)
