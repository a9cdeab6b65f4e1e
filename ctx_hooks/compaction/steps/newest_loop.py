"""Cut the results of the newest tool loop, largest first: to half of the room, and as a last step to fit the goal."""

from collections.abc import Collection
from dataclasses import replace

from ctx_hooks.compaction.steps import Step
from ctx_hooks.compaction.steps.oversized_results import with_cut_results
from ctx_hooks.conversation.conversation import Conversation
from ctx_hooks.tokens.budget import Budget
from ctx_hooks.tokens.units import LocalTokens

LEAST_KEPT_CHARS = 400
"""A shorter result says too little; if that is not enough, the request is too large."""
SHRINK_FACTOR = 0.7
"""Each round reduces the size to at most this fraction: a few rounds reach every reachable goal."""
NEWEST_FRACTION = 0.5
"""The newest results' share of the room beside fixed text, if older exchanges need the rest. Of 292 requests of coding
sessions, fitted to 16,000 tokens, 0.958 of the names that the next step needs stay; with whole newest results, 0.940."""


def _large(conversation: Conversation, budget: Budget) -> Conversation:
    tokens = budget.counter.conversation(conversation)
    newest_tokens, older_tokens = (
        budget.counter.messages((conversation.messages[i] for i in indices), conversation.format)
        for indices in (conversation.newest_loop, conversation.older_messages)
    )
    room_tokens = budget.goal_tokens - (tokens - newest_tokens - older_tokens)
    allowed_tokens = max(int(room_tokens * NEWEST_FRACTION), room_tokens - older_tokens)
    if newest_tokens <= allowed_tokens:
        return conversation
    return _shrunk(conversation, replace(budget, goal_tokens=LocalTokens(tokens - newest_tokens + allowed_tokens)))


def _shrunk(conversation: Conversation, budget: Budget) -> Conversation:
    """Return the conversation with the largest results of its newest loop cut to meet the goal, if possible and allowed."""
    loop = [conversation.messages[i] for i in conversation.newest_loop] if budget.cut_newest else []
    largest = max((len(r.text) for m in loop if not m.pinned for r in m.results), default=0)
    fitted = conversation
    while (excess := budget.excess(fitted)) > 0 and largest > LEAST_KEPT_CHARS:
        # No result shrinks by more than all must together: the first round comes near, at any size.
        needed = budget.goal_tokens / (budget.goal_tokens + excess)
        largest = max(LEAST_KEPT_CHARS, int(largest * min(SHRINK_FACTOR, needed)))
        fitted = capped(conversation, conversation.newest_loop, largest, budget)
    return fitted


def capped(conversation: Conversation, indices: Collection[int | None], chars: int, budget: Budget) -> Conversation:
    """Return the conversation with all results of the messages at `indices` cut to about `chars`."""
    messages = list(conversation.messages)
    for i in range(len(messages)):
        if i in indices:
            messages[i] = with_cut_results(conversation.messages.__getitem__, i, chars, budget, again=True)
    return conversation.with_messages(tuple(messages))


LARGE = Step("large_newest", "the newest results leave half of the room to what came before", _large)
STEP = Step("newest_loop", "the newest results alone were too large", _shrunk)
