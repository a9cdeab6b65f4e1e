"""Older parts beside text: reasoning is removed or elided, and a line replaces each image, sound or file."""

from dataclasses import replace
from typing import TypeVar

from ctx_hooks.compaction.steps import Step
from ctx_hooks.conversation import placeholders
from ctx_hooks.conversation.conversation import Conversation
from ctx_hooks.conversation.model import Media, Part, Reasoning, Text, ToolResult
from ctx_hooks.policy.settings import Language
from ctx_hooks.tokens.budget import Budget

T = TypeVar("T", bound=Part)


def _without_reasoning(conversation: Conversation, budget: Budget) -> Conversation:
    messages, stay = list(conversation.messages), conversation.protected
    for i, message in enumerate(messages):
        # A message with only reasoning would become empty, which providers refuse; it goes with its exchange.
        if i not in stay and not all(isinstance(p, Reasoning) for p in message.parts):
            left = (
                conversation.reasoning_left(i, p, is_wanted=budget.wants_reasoning) if isinstance(p, Reasoning) else p
                for p in message.parts
            )
            messages[i] = message.with_parts(tuple(p for p in left if p is not None))
    return conversation.with_messages(tuple(messages))


def _without_media(conversation: Conversation, budget: Budget) -> Conversation:
    """Replace the media of users and tools, oldest first, until the goal is met; the assistant's belong to its answer."""
    messages, counter = list(conversation.messages), budget.counter
    excess = budget.excess(conversation)
    for i in sorted(conversation.older_messages):
        message = messages[i]
        if excess > 0 and message.role != "assistant":
            short = message.with_parts(tuple([_line(part, budget.policy.language) for part in message.parts]))
            saved = counter.message(message, conversation.format) - counter.message(short, conversation.format)
            if saved > 0:
                excess -= saved
                messages[i] = short
    return conversation.with_messages(tuple(messages))


def _line(part: T, language: Language) -> T | Text:
    if isinstance(part, ToolResult):
        parts = tuple([_line(p, language) for p in part.parts])
        return part if parts == part.parts else replace(part, parts=parts)
    return (
        Text(placeholders.line("media", language, kind=part.kind, size=part.size_chars)) if isinstance(part, Media) else part
    )


REASONING = Step("older_reasoning", "providers do not need the thinking of finished turns", _without_reasoning)
MEDIA = Step("older_media", "older media become a line", _without_media)
