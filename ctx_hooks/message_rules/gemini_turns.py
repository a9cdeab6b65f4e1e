"""What Google refuses in `contents` beside unpaired calls: empty ones, and calls that no user's turn precedes."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ctx_hooks.conversation.model import Conversation, Message, Part, Text
from ctx_hooks.message_rules.rule import Repair, Rule

if TYPE_CHECKING:
    from collections.abc import Sequence


class GeminiContent(Rule):
    """No content without parts, and no empty text.

    Google: "* GenerateContentRequest.contents[0].parts: contents.parts must not be empty.", "Unable to submit request
    because it must have a text parameter." An empty text with a thought signature is how the signature of a streamed
    answer arrives, and it has to come back as it is.
    """

    name = "gemini_content"

    def repair(self, conversation: Conversation, *, continues: bool) -> tuple[Conversation, tuple[Repair, ...]]:
        """Drop empty texts, and contents of which nothing is left."""
        del continues
        messages: list[Message] = []
        repairs: list[Repair] = []
        for i, message in enumerate(conversation.messages):
            kept = message.with_parts(tuple(p for p in message.parts if not _is_empty(p)))
            if not kept.parts:
                repairs.append(Repair(self.name, i, "dropped", "content has no parts"))
                continue
            if kept is not message:
                repairs.append(Repair(self.name, i, "edited", "empty text"))
            messages.append(kept)
        return conversation.with_messages(tuple(messages)), tuple(repairs)


class CallsFollowUser(Rule):
    """Google: "function call turn comes immediately after a user turn or after a function response turn".

    The full text begins with "Please ensure that". A first content is no call either: a user's is put before it.
    """

    name = "calls_follow_user"

    def repair(self, conversation: Conversation, *, continues: bool) -> tuple[Conversation, tuple[Repair, ...]]:
        """Join such a content with those of the model's before it: nothing of them is lost or changed."""
        del continues
        joined = frozenset(_behind_own(conversation.messages))
        if not joined:
            return conversation, ()
        messages: list[Message] = []
        for i, message in enumerate(conversation.messages):
            parts = message.parts
            while i in joined and messages and messages[-1].role == "assistant":
                parts = (*messages.pop().parts, *parts)
            messages.append(replace(message, parts=parts, edited=True) if i in joined else message)
        repairs = tuple(Repair(self.name, i, "edited", "a call behind the model's own turn") for i in sorted(joined))
        return conversation.with_messages(tuple(messages)), repairs


def _is_empty(part: Part) -> bool:
    return isinstance(part, Text) and not part.text and not part.is_signed


def _behind_own(messages: Sequence[Message]) -> list[int]:
    return [i for i in range(1, len(messages)) if messages[i].calls and messages[i - 1].role == "assistant"]
