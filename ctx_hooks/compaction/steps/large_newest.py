"""The newest tool loop's results leave half of the room to the older exchanges, where these need it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_hooks.compaction.steps import Step
from ctx_hooks.compaction.steps.newest_loop import shrunk
from ctx_hooks.conversation.protection import older_messages
from ctx_hooks.tokens.units import LocalTokens

if TYPE_CHECKING:
    from ctx_hooks.conversation.model import Conversation
    from ctx_hooks.tokens.budget import Budget

NEWEST_FRACTION = 0.5
"""Of the room behind what is fixed, the share of the newest results where older exchanges need the rest: nothing says that
either is worth more, and what one does not need goes to the other. Of 292 requests of coding sessions in the chat format,
fitted to 16,000 tokens, 0.958 of the names that the next step needs stay, and 0.940 where the newest results stay whole."""


def _apply(conversation: Conversation, budget: Budget) -> Conversation:
    if not budget.cut_newest:
        return conversation
    tokens = budget.counter.conversation(conversation)
    newest_tokens = _tokens(conversation, frozenset(conversation.newest_loop), budget)
    older_tokens = _tokens(conversation, older_messages(conversation), budget)
    room_tokens = budget.goal_tokens - (tokens - newest_tokens - older_tokens)
    allowed_tokens = max(int(room_tokens * NEWEST_FRACTION), room_tokens - older_tokens)
    if newest_tokens <= allowed_tokens:
        return conversation
    return shrunk(conversation, budget.with_goal(LocalTokens(tokens - newest_tokens + allowed_tokens)))


def _tokens(conversation: Conversation, indices: frozenset[int], budget: Budget) -> int:
    return budget.counter.messages((conversation.messages[i] for i in sorted(indices)), conversation.format)


STEP = Step("large_newest", "the newest results leave half of the room to what came before", _apply)
