"""Provider payloads to and from the neutral conversation, lossless both ways: one module a format."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from ctx_hooks.formats import anthropic_messages, gemini, openai_chat, openai_responses

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ctx_hooks.conversation.model import Conversation, Format, Message, ToolCall
    from ctx_hooks.formats.wire_format import WireFormat


class Codec(Protocol):
    """What each format's module has.

    A conversation is read message by message: `read` gives what `read_message` gives for each item. Google's alone needs a
    look at the content before it, which gives a response the id of its call (`gemini.answering`).
    """

    def read(self, messages: Sequence[Any], *, system: Any = None, tools: Any = None) -> Conversation:
        """Return the conversation; raises MalformedConversationError when `messages` is none."""

    def read_message(self, raw: Mapping[str, Any]) -> Message:
        """Return one message."""

    def write(self, conversation: Conversation) -> list[Any]:
        """Return the provider's list: unedited messages are the objects that were read."""

    def user_message(self, text: str) -> Message:
        """Return a new user message of this format."""

    def assistant_message(self, text: str) -> Message:
        """Return a new assistant message of this format."""

    def tool_result(self, call: ToolCall, text: str, *, is_error: bool) -> Message:
        """Return a new message of this format that answers `call`."""


_MODULES = (openai_chat, anthropic_messages, openai_responses, gemini)
CODECS: dict[Format, Codec] = {module.WIRE.name: module for module in _MODULES}
WIRE_FORMATS: dict[Format, WireFormat] = {module.WIRE.name: module.WIRE for module in _MODULES}
"""How the messages of each format are read and written; and all else that is particular to it."""
