"""Long older answers keep head and tail; older images, sounds and files become a line that says what they were.

What users wrote is chosen from by the steps behind this one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ctx_hooks.compaction.steps import Step
from ctx_hooks.conversation import placeholders
from ctx_hooks.conversation.model import Conversation, Media, Message, Part, Text, ToolResult
from ctx_hooks.conversation.protection import older_messages

if TYPE_CHECKING:
    from ctx_hooks.policy.settings import Policy
    from ctx_hooks.tokens.budget import Budget

HEAD_FRACTION = 0.6
TAIL_FRACTION = 0.2
"""Of the longest text kept whole, the shares of head and tail that stay of a longer one (nanobot)."""


def _apply(conversation: Conversation, budget: Budget) -> Conversation:
    """Shorten oldest first and stop as soon as the goal is met."""
    messages = list(conversation.messages)
    excess = budget.excess(conversation)
    for i in sorted(older_messages(conversation)):
        if excess <= 0:
            break
        short = _shorten(messages[i], budget)
        if short is not messages[i]:
            before, after = (budget.counter.message(m, conversation.format) for m in (messages[i], short))
            if after < before:
                excess -= before - after
                messages[i] = short
    return conversation.with_messages(tuple(messages))


def _shorten(message: Message, budget: Budget) -> Message:
    return message.with_parts(tuple(_shorten_part(p, message, budget) for p in message.parts))


def _shorten_part(part: Part, message: Message, budget: Budget) -> Part:
    policy = budget.policy
    if isinstance(part, Media):
        # Only a user's or a tool's media are text to the provider elsewhere; an assistant's belong to its answer.
        return part if message.role == "assistant" else Text(placeholders.media(part.kind, part.size_chars, policy.language))
    if isinstance(part, ToolResult):
        parts = tuple(_media_line(p, policy) if isinstance(p, Media) else p for p in part.parts)
        return part if parts == part.parts else replace(part, parts=parts)
    if (
        not isinstance(part, Text)
        or message.role == "user"
        or part.is_cut
        or part.is_signed
        or len(part.text) <= policy.text_max_chars
    ):
        return part
    head_chars, tail_chars = (int(policy.text_max_chars * share) for share in (HEAD_FRACTION, TAIL_FRACTION))
    reference = budget.reference(part.text)
    placeholder = placeholders.shortened(len(part.text), policy.language, reference)
    short = f"{part.text[:head_chars]}\n{placeholder}\n{part.text[-tail_chars:]}"
    return Text(short, part.raw, came_text=part.text)


def _media_line(media: Media, policy: Policy) -> Text:
    return Text(placeholders.media(media.kind, media.size_chars, policy.language))


STEP = Step("long_texts", "long older texts keep head and tail, older media a line", _apply)
