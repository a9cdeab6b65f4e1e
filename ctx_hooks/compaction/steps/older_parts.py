"""Older parts beside text: reasoning is removed or elided, and a line replaces each image, sound or file."""

from dataclasses import replace

from ctx_hooks.compaction.steps import Step
from ctx_hooks.conversation import placeholders
from ctx_hooks.conversation.model import Conversation, Media, Part, Reasoning, Text, ToolResult
from ctx_hooks.conversation.protection import older_messages, protected, reasoning_left
from ctx_hooks.policy.settings import Language
from ctx_hooks.tokens.budget import Budget


def _without_reasoning(conversation: Conversation, budget: Budget) -> Conversation:
    stay, is_wanted = protected(conversation), budget.wants_reasoning

    def edit(index: int, part: Part) -> Part | None:
        # A message with only reasoning would become empty, which providers refuse; it goes with its exchange.
        is_all = all(isinstance(p, Reasoning) for p in conversation.messages[index].parts)
        if not isinstance(part, Reasoning) or is_all or index in stay:
            return part
        return reasoning_left(conversation, index, part, is_wanted=is_wanted)

    return conversation.map_parts(edit)


def _without_media(conversation: Conversation, budget: Budget) -> Conversation:
    """Replace the media of users and tools, oldest first, until the goal is met; the assistant's belong to its answer."""
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


REASONING = Step("older_reasoning", "providers do not need the thinking of finished turns", _without_reasoning)
MEDIA = Step("older_media", "older media become a line", _without_media)
