"""Message content that providers refuse: null, empty or blank."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ctx_hooks.conversation.model import Conversation, Message, Part, Text, ToolCall
from ctx_hooks.message_rules.rule import Repair, Rule

if TYPE_CHECKING:
    from collections.abc import Iterator


class ChatContent(Rule):
    """Chat content is text or blocks, calls are a non-empty list, arguments a string.

    OpenAI: "Invalid value for 'content': expected a string, got null." (user, tool, and an assistant without calls),
    "[] is too short - 'messages.1.tool_calls'", "Invalid type for 'messages[1].tool_calls[0].function.arguments':
    expected a string, but got an object instead."
    An empty string is accepted, so null becomes one: nothing of the conversation is lost.
    """

    name = "chat_content"

    def repair(self, conversation: Conversation, *, continues: bool) -> tuple[Conversation, tuple[Repair, ...]]:
        """Write null as "", leave an empty list of calls out, and write arguments as JSON text."""
        del continues
        found = list(self._found(conversation))
        messages = list(conversation.messages)
        for i, _, repaired in found:
            messages[i] = repaired
        return conversation.with_messages(tuple(messages)), tuple(Repair(self.name, i, "edited", w) for i, w, _ in found)

    def _found(self, conversation: Conversation) -> Iterator[tuple[int, str, Message]]:
        for i, message in enumerate(conversation.messages):
            if message.edited:
                continue  # what was rewritten here is written without these
            raw = message.raw
            null = raw.get("content") is None and message.role in {"user", "tool", "assistant", "system"}
            if null and not message.calls:
                yield i, "content is null", _with_empty_text(message)
            elif raw.get("tool_calls") == []:
                yield i, "tool_calls is empty", replace(message, edited=True)
            elif message.role == "assistant" and any(_arguments_no_text(c) for c in message.calls):
                yield i, "arguments are no string", replace(message, edited=True)


def _with_empty_text(message: Message) -> Message:
    if message.role == "tool":
        result = message.results[0]
        return message.with_parts((replace(result, parts=(Text(""),)),))
    return message.with_parts((*message.parts, Text("")))


def _arguments_no_text(call: ToolCall) -> bool:
    function = call.raw.get("function") if call.raw else None
    return function is not None and not isinstance(function.get("arguments"), str)


class AnthropicContent(Rule):
    """No blank text block, no message without content, no blank at the end of a last assistant message.

    Anthropic: "messages: text content blocks must be non-empty", "messages: text content blocks must contain
    non-whitespace text", "messages.N: all messages must have non-empty content except for the optional final assistant
    message", "final assistant content cannot end with trailing whitespace".
    """

    name = "anthropic_content"

    def repair(self, conversation: Conversation, *, continues: bool) -> tuple[Conversation, tuple[Repair, ...]]:
        """Drop blank blocks and empty messages, and the blanks at the end."""
        del continues
        messages: list[Message] = []
        repairs: list[Repair] = []
        last = len(conversation.messages) - 1
        for i, message in enumerate(conversation.messages):
            kept = message
            if message.role in {"user", "assistant"} and any(map(_blank, message.parts)):
                kept = message.with_parts(tuple(p for p in message.parts if not _blank(p)))
            if i == last and message.role == "assistant":
                kept = _without_trailing_blanks(kept)
            if not kept.parts and message.role in {"user", "assistant"} and not (i == last and message.role == "assistant"):
                repairs.append(Repair(self.name, i, "dropped", "message has no content"))
                continue
            if kept is not message:
                repairs.append(Repair(self.name, i, "edited", "blank text"))
            messages.append(kept)
        return conversation.with_messages(tuple(messages)), tuple(repairs)


def _blank(part: Part) -> bool:
    return isinstance(part, Text) and (not part.text or part.text.isspace())


def _without_trailing_blanks(message: Message) -> Message:
    if not message.parts or not isinstance(message.parts[-1], Text):
        return message
    end = message.parts[-1]
    return message.with_parts((*message.parts[:-1], Text(end.text.rstrip(), end.raw)))
