"""The newest tool loop's own results are cut, largest first: to half of the room, at last to what the goal leaves them."""

from collections.abc import Collection

from ctx_hooks.compaction.steps import Step
from ctx_hooks.compaction.steps.oversized_results import cut_result
from ctx_hooks.conversation.model import Conversation, ToolResult
from ctx_hooks.conversation.protection import older_messages
from ctx_hooks.tokens.budget import Budget
from ctx_hooks.tokens.units import LocalTokens

LEAST_KEPT_CHARS = 400
"""Below this a result says too little; the request is then given up as too large."""
SHRINK_FACTOR = 0.7
"""Each round asks for this much of the size before, at most: a handful of rounds reach any goal that can be reached."""
NEWEST_FRACTION = 0.5
"""Of the room behind what is fixed, the share of the newest results where older exchanges need the rest: nothing says that
either is worth more, and what one does not need goes to the other. Of 292 requests of coding sessions in the chat format,
fitted to 16,000 tokens, 0.958 of the names that the next step needs stay, and 0.940 where the newest results stay whole."""


def _large(conversation: Conversation, budget: Budget) -> Conversation:
    tokens = budget.counter.conversation(conversation)
    newest_tokens = _tokens(conversation, frozenset(conversation.newest_loop), budget)
    older_tokens = _tokens(conversation, older_messages(conversation), budget)
    room_tokens = budget.goal_tokens - (tokens - newest_tokens - older_tokens)
    allowed_tokens = max(int(room_tokens * NEWEST_FRACTION), room_tokens - older_tokens)
    if newest_tokens <= allowed_tokens:
        return conversation
    return _shrunk(conversation, budget.with_goal(LocalTokens(tokens - newest_tokens + allowed_tokens)))


def _tokens(conversation: Conversation, indices: frozenset[int], budget: Budget) -> int:
    return budget.counter.messages((conversation.messages[i] for i in sorted(indices)), conversation.format)


def _shrunk(conversation: Conversation, budget: Budget) -> Conversation:
    """Return the conversation with the largest results of its newest loop cut until it meets the goal, if it can and may."""
    loop = [conversation.messages[i] for i in conversation.newest_loop] if budget.cut_newest else []
    largest = max((len(r.text) for m in loop if not m.pinned for r in m.results), default=0)
    fitted = conversation
    while (excess := budget.excess(fitted)) > 0 and largest > LEAST_KEPT_CHARS:
        # No result shrinks by more than all have to together: the first round comes near, however large they are.
        needed = budget.goal_tokens / (budget.goal_tokens + excess)
        largest = max(LEAST_KEPT_CHARS, int(largest * min(SHRINK_FACTOR, needed)))
        fitted = capped(conversation, conversation.newest_loop, largest, budget)
    return fitted


def capped(conversation: Conversation, indices: Collection[int | None], chars: int, budget: Budget) -> Conversation:
    """Return the conversation with no result of the messages at some indices longer than about `chars`."""
    messages = list(conversation.messages)
    for i, message in enumerate(conversation.messages):
        if i in indices and not message.pinned:
            parts = (cut_result(p, chars, budget) if isinstance(p, ToolResult) else p for p in message.parts)
            messages[i] = message.with_parts(tuple(parts))
    return conversation.with_messages(tuple(messages))


LARGE = Step("large_newest", "the newest results leave half of the room to what came before", _large)
STEP = Step("newest_loop", "the newest results alone were too large", _shrunk)
