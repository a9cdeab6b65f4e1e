"""The last attempt: the newest tool loop's own results are cut, largest first, to what the goal leaves them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_hooks.compaction.steps import Step
from ctx_hooks.compaction.steps.oversized_results import cut
from ctx_hooks.compaction.tool_results import with_text
from ctx_hooks.conversation.model import Conversation, Text, ToolResult

if TYPE_CHECKING:
    from collections.abc import Collection

    from ctx_hooks.tokens.budget import Budget

LEAST_KEPT_CHARS = 400
"""Below this a result says too little; the request is then given up as too large."""
SHRINK_FACTOR = 0.7
"""Each round asks for this much of the size before, at most: a handful of rounds reach any goal that can be reached."""


def _apply(conversation: Conversation, budget: Budget) -> Conversation:
    return shrunk(conversation, budget) if budget.cut_newest else conversation


def shrunk(conversation: Conversation, budget: Budget) -> Conversation:
    """Return the conversation with the largest results of its newest loop cut until it meets the goal, if it can."""
    largest = _largest(conversation)
    fitted = conversation
    while (excess := budget.excess(fitted)) > 0 and largest > LEAST_KEPT_CHARS:
        # No result shrinks by more than all have to together: the first round comes near, however large they are.
        needed = budget.goal_tokens / (budget.goal_tokens + excess)
        largest = max(LEAST_KEPT_CHARS, int(largest * min(SHRINK_FACTOR, needed)))
        fitted = capped(conversation, conversation.newest_loop, largest, budget)
    return fitted


def _largest(conversation: Conversation) -> int:
    loop = (conversation.messages[i] for i in conversation.newest_loop)
    return max((len(r.text) for m in loop if not m.pinned for r in m.results), default=0)


def capped(conversation: Conversation, indices: Collection[int | None], chars: int, budget: Budget) -> Conversation:
    """Return the conversation with no result of the messages at some indices longer than about `chars`."""
    messages = list(conversation.messages)
    for i, message in enumerate(conversation.messages):
        if i not in indices or message.pinned:
            continue
        parts = tuple(_cut(p, chars, budget) if isinstance(p, ToolResult) else p for p in messages[i].parts)
        messages[i] = messages[i].with_parts(parts)
    return conversation.with_messages(tuple(messages))


def _cut(result: ToolResult, chars: int, budget: Budget) -> ToolResult:
    if not any(isinstance(p, Text) for p in result.parts):
        return result
    whole = result.text
    if len(whole) <= chars:
        return result
    policy, reference = budget.policy, budget.reference(result.original_text)
    text = cut(whole, chars, policy.tool_result_direction, policy.language, reference)
    return result if text == whole else with_text(result, text)


STEP = Step("newest_loop", "the newest results alone were too large", _apply)
