"""The first message is the user's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_hooks.conversation import placeholders
from ctx_hooks.formats import CODECS
from ctx_hooks.message_rules.rule import Repair, Violation

if TYPE_CHECKING:
    from ctx_hooks.conversation.model import Conversation


class FirstMessageIsUsers:
    """Anthropic: "messages: first message must use the "user" role".

    Google: "Please ensure that function call turn comes immediately after a user turn or after a function response turn",
    and of older models "Please ensure that multiturn requests alternate between user and model".
    """

    name = "first_message_is_users"

    def violations(self, conversation: Conversation, *, continues: bool) -> tuple[Violation, ...]:
        """Return the first message when it is the assistant's."""
        del continues
        first = next((m.role for m in conversation.messages if m.role != "system"), "user")
        return (Violation(self.name, 0, "the first message is the assistant's"),) if first == "assistant" else ()

    def repair(self, conversation: Conversation, *, continues: bool) -> tuple[Conversation, tuple[Repair, ...]]:
        """Insert a user message that says that earlier messages were removed."""
        if not self.violations(conversation, continues=continues):
            return conversation, ()
        opening = CODECS[conversation.format].user_message(placeholders.REMOVED_MESSAGE)
        place = next(i for i, m in enumerate(conversation.messages) if m.role != "system")
        messages = (*conversation.messages[:place], opening, *conversation.messages[place:])
        return conversation.with_messages(messages), (Repair(self.name, place, "added", "no user message came first"),)
