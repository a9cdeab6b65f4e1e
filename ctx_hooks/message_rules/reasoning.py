"""Reasoning stays with the item or call that it led to."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_hooks.conversation.model import Conversation, Reasoning
from ctx_hooks.formats import WIRE_FORMATS
from ctx_hooks.message_rules.rule import Repair, Rule, Violation

if TYPE_CHECKING:
    from collections.abc import Iterator


class ReasoningHasItem(Rule):
    """Responses: "Item 'rs_...' of type 'reasoning' was provided without its required following item."."""

    name = "reasoning_has_item"

    def repair(self, conversation: Conversation, *, continues: bool) -> tuple[Conversation, tuple[Repair, ...]]:
        """Drop reasoning whose item is missing."""
        del continues
        alone = frozenset(_alone(conversation))
        if not alone:
            return conversation, ()
        messages = tuple(m for i, m in enumerate(conversation.messages) if i not in alone)
        return conversation.with_messages(messages), tuple(
            Repair(self.name, i, "dropped", "reasoning without its following item") for i in sorted(alone)
        )


class CurrentLoopThinks(Rule):
    """Anthropic, with thinking enabled, wants the current tool loop's assistant messages to start with their thinking.

    "Expected `thinking` or `redacted_thinking`, but found `tool_use`. When `thinking` is enabled, a final `assistant`
    message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks)."
    Thinking blocks are signed, so a missing one cannot be added: this rule has no repair, and no step touches such blocks.
    """

    name = "current_loop_thinks"

    def violations(self, conversation: Conversation, *, continues: bool) -> tuple[Violation, ...]:
        """Return messages of the current loop whose thinking stands behind something else."""
        del continues
        newest = conversation.newest_request
        return tuple(
            Violation(self.name, i, "thinking does not come first")
            for i, m in enumerate(conversation.messages)
            if m.role == "assistant" and newest is not None and i > newest
            if any(isinstance(p, Reasoning) for p in m.parts) and not isinstance(m.parts[0], Reasoning)
        )


def _alone(conversation: Conversation) -> Iterator[int]:
    messages = conversation.messages
    for i in range(len(messages)):
        if _is_reasoning(conversation, i) and (i + 1 == len(messages) or messages[i + 1].role not in {"assistant", "other"}):
            yield i


def _is_reasoning(conversation: Conversation, index: int) -> bool:
    parts = conversation.messages[index].parts
    return WIRE_FORMATS[conversation.format].has_items and len(parts) == 1 and isinstance(parts[0], Reasoning)
