"""Long older texts keep head and tail; older images, sounds and files become a line that says what they were."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_hooks import notices
from ctx_hooks.conversation import Conversation, Media, Message, Part, Text, ToolResult
from ctx_hooks.protection import older_messages
from ctx_hooks.steps import Step

if TYPE_CHECKING:
    from ctx_hooks.budget import Budget
    from ctx_hooks.policy.settings import Policy

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
        short = _shorten(messages[i], budget.policy)
        if short is not messages[i]:
            before, after = (budget.counter.message(m, conversation.format) for m in (messages[i], short))
            if after < before:
                excess -= before - after
                messages[i] = short
    return conversation.with_messages(tuple(messages))


def _shorten(message: Message, policy: Policy) -> Message:
    return message.with_parts(tuple(_shorten_part(p, message, policy) for p in message.parts))


def _shorten_part(part: Part, message: Message, policy: Policy) -> Part:
    if isinstance(part, Media):
        # Only a user's or a tool's media are text to the provider elsewhere; an assistant's belong to its answer.
        return part if message.role == "assistant" else Text(notices.media(part.kind, part.size_chars, policy.language))
    if isinstance(part, ToolResult):
        parts = tuple(_media_line(p, policy) if isinstance(p, Media) else p for p in part.parts)
        return part if parts == part.parts else ToolResult(part.call_id, parts, part.is_error, part.raw)
    if isinstance(part, Text) and len(part.text) > policy.text_max_chars and notices.MARK not in part.text:
        head = part.text[: int(policy.text_max_chars * HEAD_FRACTION)]
        tail = part.text[-int(policy.text_max_chars * TAIL_FRACTION) :]
        return Text(f"{head}\n{notices.shortened(len(part.text), policy.language)}\n{tail}", part.raw)
    return part


def _media_line(media: Media, policy: Policy) -> Text:
    return Text(notices.media(media.kind, media.size_chars, policy.language))


STEP = Step("long_texts", "long older texts keep head and tail, older media a line", _apply)
