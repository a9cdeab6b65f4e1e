"""Older images, sounds and files become a line that says what they were."""

from __future__ import annotations

from dataclasses import replace

from ctx_hooks.compaction.steps import Step
from ctx_hooks.conversation import placeholders
from ctx_hooks.conversation.model import Conversation, Media, Part, Text, ToolResult
from ctx_hooks.conversation.protection import older_messages
from ctx_hooks.policy.settings import Language
from ctx_hooks.tokens.budget import Budget


def _apply(conversation: Conversation, budget: Budget) -> Conversation:
    """Replace the media of users and tools, oldest first, until the goal is met; an assistant's belong to its answer."""
    messages, counter = list(conversation.messages), budget.counter
    excess = budget.excess(conversation)
    for i in sorted(older_messages(conversation)):
        message = messages[i]
        if excess <= 0:
            break
        if message.role != "assistant":
            short = message.with_parts(tuple([_line(part, budget.policy.language) for part in message.parts]))
            saved = counter.message(message, conversation.format) - counter.message(short, conversation.format)
            if saved > 0:
                excess -= saved
                messages[i] = short
    return conversation.with_messages(tuple(messages))


def _line(part: Part, language: Language) -> Part:
    if isinstance(part, ToolResult):
        parts = tuple([_line_of(p, language) if isinstance(p, Media) else p for p in part.parts])
        return part if parts == part.parts else replace(part, parts=parts)
    return _line_of(part, language) if isinstance(part, Media) else part


def _line_of(media: Media, language: Language) -> Text:
    return Text(placeholders.media(media.kind, media.size_chars, language))


STEP = Step("older_media", "older media become a line", _apply)
