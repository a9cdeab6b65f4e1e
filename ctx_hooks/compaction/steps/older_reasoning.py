"""Reasoning of older turns goes, in whole blocks; the current tool loop's stays."""

from __future__ import annotations

from ctx_hooks.compaction.steps import Step
from ctx_hooks.conversation.model import Conversation, Part, Reasoning
from ctx_hooks.conversation.protection import protected, reasoning_may_go
from ctx_hooks.tokens.budget import Budget


def _apply(conversation: Conversation, budget: Budget) -> Conversation:
    del budget  # what may go does so whatever the budget
    stay = protected(conversation)

    def edit(index: int, part: Part) -> Part | None:
        # A message of reasoning alone would be left empty, which providers refuse; it goes with its exchange.
        alone = all(isinstance(p, Reasoning) for p in conversation.messages[index].parts)
        may_go = isinstance(part, Reasoning) and index not in stay and reasoning_may_go(conversation, index)
        return None if may_go and not alone else part

    return conversation.map_parts(edit)


STEP = Step("older_reasoning", "providers do not need the thinking of finished turns", _apply)
