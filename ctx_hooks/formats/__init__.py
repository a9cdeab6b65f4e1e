"""Provider payloads to and from the neutral conversation, lossless both ways: one module a format."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from ctx_hooks.conversation.conversation import Conversation
from ctx_hooks.conversation.model import Message
from ctx_hooks.formats import anthropic_messages, gemini, openai_chat, openai_responses
from ctx_hooks.formats.fields import ANTHROPIC, CHAT, GEMINI, RESPONSES, Format, copied, items_of
from ctx_hooks.formats.wire_format import WireFormat

__all__ = ["ANTHROPIC", "CHAT", "FORMAT_OF_CALL_TYPE", "GEMINI", "RESPONSES", "WIRE_FORMATS", "Format", "MessageReader"]

WIRE_FORMATS: dict[str, WireFormat] = {
    wire.name: wire for wire in (openai_chat.WIRE, anthropic_messages.WIRE, openai_responses.WIRE, gemini.WIRE)
}
FORMAT_OF_CALL_TYPE: dict[str, Format] = {name: wire.name for wire in WIRE_FORMATS.values() for name in wire.call_types}
"""The format of each of LiteLLM's call types that have a conversation."""


@dataclass(frozen=True, slots=True)
class MessageReader:
    """The messages of a request behind the texts of its preamble: a requested message is read once, any other never.

    The items are copied: cached results stay true if the caller changes them. Raises MalformedConversationError if they
    are no list, or a requested message is no mapping.
    """

    format: str
    items: Sequence[Any]
    preamble: tuple[str, ...] = ()
    preamble_markers: int = 0
    _read: dict[int, Message] = field(default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "items", [copied(item) for item in items_of(self.items)])

    def message(self, index: int) -> Message:
        """Return the message at `index`, from 0."""
        if index not in self._read:
            self._read[index] = WIRE_FORMATS[self.format].message(self.items, index)
        return self._read[index]

    def conversation(self, start: int = 0, end: int | None = None) -> Conversation:
        """Return the conversation with the messages from `start` to before `end`, by default all."""
        messages = map(self.message, range(len(self.items))[start:end])
        return WIRE_FORMATS[self.format].conversation(messages, self.preamble, self.preamble_markers)
