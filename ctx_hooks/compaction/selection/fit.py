"""From an estimate to a fit: select, count exactly, and select again with what the estimate was off by."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_hooks.compaction.summary.extractive import summary_tokens

if TYPE_CHECKING:
    from collections.abc import Callable

    from ctx_hooks.compaction.selection.knapsack import Selection
    from ctx_hooks.compaction.selection.select import Selector
    from ctx_hooks.conversation.model import Conversation
    from ctx_hooks.tokens.budget import Budget

ATTEMPTS = 4
USUAL_SUMMARY_FRACTION = 0.4
"""How much of its allowance the summary usually takes."""
MARGIN_FRACTION = 0.02
"""Cut texts have a little more tokens per character than whole ones: with this margin the first attempt mostly fits."""
CLOSE_FRACTION = 0.045
"""A fit that leaves less than this of the goal unused is good enough."""
WIDER_FRACTION = 0.005
"""An attempt that is too large gives up this much more of the goal each time: what is taken away are whole lines."""


def fit(
    conversation: Conversation,
    budget: Budget,
    selector: Selector,
    build: Callable[[Selection], Conversation],
    *,
    may_remove: bool,
) -> Conversation:
    """Return the fullest built conversation within the goal; the smallest one when none fits."""
    older_tokens = sum(item.whole_tokens for item in selector.items)
    room = budget.goal_tokens * (1 - MARGIN_FRACTION) - (budget.counter.conversation(conversation) - older_tokens)
    if may_remove:
        room -= summary_tokens(budget) * USUAL_SUMMARY_FRACTION
    best: Conversation | None = None
    least = -float("inf")
    for attempt in range(1, ATTEMPTS + 1):
        built = build(selector.select(max(room, 0), may_remove=may_remove))
        excess = budget.excess(built)
        if least < excess <= 0:
            best, least = built, excess
        if -CLOSE_FRACTION * budget.goal_tokens <= excess <= 0:
            break
        room -= excess * 1.05 + attempt * WIDER_FRACTION * budget.goal_tokens if excess > 0 else excess * 0.8
    return best or build(selector.select(0, may_remove=may_remove))
