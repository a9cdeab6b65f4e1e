"""What a compression has to reach."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ctx_hooks.policy.settings import DEFAULT_POLICY, Policy
from ctx_hooks.tokens.counter import Counter
from ctx_hooks.tokens.units import LocalTokens, ProviderTokens

if TYPE_CHECKING:
    from ctx_hooks.conversation.cut_texts import CutTexts, Reference
    from ctx_hooks.conversation.model import Conversation


@dataclass(frozen=True, slots=True)
class Budget:
    """The goal of one compression, and what counts towards it.

    Attributes:
        goal_tokens: the most that the whole request may have.
        window_tokens: the model's window; the caps on single results are shares of it.
        counter: counts in the model's vocabulary, until its deadline.
        policy: what may be cut, and how.
        cut_newest: whether the results of the newest tool loop, which are otherwise protected, may be cut as well.
        cut_texts: keeps the texts that are cut, for the archive; None without one.

    >>> budget = Budget(LocalTokens(16_000), ProviderTokens(20_000), Counter("o200k_base"))
    >>> budget.with_goal(LocalTokens(8_000)).goal_tokens
    8000
    """

    goal_tokens: LocalTokens
    window_tokens: ProviderTokens
    counter: Counter
    policy: Policy = DEFAULT_POLICY
    cut_newest: bool = True
    cut_texts: CutTexts | None = None

    def excess(self, conversation: Conversation) -> int:
        """Return how many local tokens `conversation` is above the goal; zero or less when it fits."""
        return self.counter.conversation(conversation) - self.goal_tokens

    def reference(self, text: str) -> Reference | None:
        """Return where the whole of a removed text will be; None if nothing is archived."""
        return None if self.cut_texts is None else self.cut_texts.reference(text)

    def with_goal(self, goal_tokens: LocalTokens) -> Budget:
        """Return this budget with another goal."""
        return replace(self, goal_tokens=goal_tokens)
