"""Older tool results keep the lines that later steps may name; the rest goes, then a one-line placeholder."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_hooks.compaction.selection.apply import Shortener
from ctx_hooks.compaction.selection.fit import fit
from ctx_hooks.compaction.selection.scoring import frame_tokens
from ctx_hooks.compaction.selection.select import Selection, Selector
from ctx_hooks.compaction.steps import Step

if TYPE_CHECKING:
    from ctx_hooks.conversation.model import Conversation
    from ctx_hooks.tokens.budget import Budget

MOST_FRAME_FRACTION = 0.3
"""Where calls and placeholders alone would take more of the goal, whole exchanges have to go: a later step does that."""


def _apply(conversation: Conversation, budget: Budget) -> Conversation:
    """Shorten as much as the goal asks for, or nothing if that alone cannot reach it: a later step does it better."""
    settled_tokens = budget.counter.messages(conversation.messages[: conversation.settled], conversation.format)
    if frame_tokens(conversation, budget) > MOST_FRAME_FRACTION * (budget.goal_tokens - settled_tokens):
        return conversation
    selector = Selector(conversation, budget)
    shortener = Shortener(conversation, selector.items, budget)

    def build(selection: Selection) -> Conversation:
        forms = shortener.messages(selection)
        return conversation.with_messages(tuple(forms.get(i, m) for i, m in enumerate(conversation.messages)))

    fitted = fit(budget, selector, build, may_remove=False)
    return fitted if budget.excess(fitted) <= 0 else conversation


STEP = Step("live_results", "older results keep the lines that later steps may name", _apply)
