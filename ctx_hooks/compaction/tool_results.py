"""Edits of older tool results, shared by the steps that rewrite their text."""

from collections.abc import Callable, Collection, Mapping

from ctx_hooks.conversation.conversation import Conversation
from ctx_hooks.conversation.model import Message, Text, ToolCall, ToolResult

MOST_RESULTS = 64
"""A call is looked for in so many messages before its result."""


def with_results(conversation: Conversation, results: Mapping[tuple[int, int], ToolResult]) -> Conversation:
    """Return the conversation with some results replaced, by (message index, part index)."""
    messages = list(conversation.messages)
    for i in {i for i, _ in results}:
        messages[i] = messages[i].with_parts(tuple(results.get((i, k), part) for k, part in enumerate(messages[i].parts)))
    return conversation.with_messages(tuple(messages)) if results else conversation


def with_text(result: ToolResult, text: str) -> ToolResult:
    """Return the cut result: `text` replaces its first text, its other texts go, and everything else stays."""
    first = next((p for p in result.parts if isinstance(p, Text)), None)
    kept = tuple(p for p in result.parts if not isinstance(p, Text))
    parts = (first if first is not None and first.text == text else Text(text, first.raw if first else None), *kept)
    return ToolResult(result.call_id, parts, result.is_error, result.raw, came_text=result.original_text)


def call_of(message_at: Callable[[int], Message], i: int, result: ToolResult) -> ToolCall | None:
    """Return the call of a result in message `i`: the nearest earlier one with its id; None if it is not near."""
    near = range(i - 1, max(-1, i - 1 - MOST_RESULTS), -1)
    return next((call for j in near for call in message_at(j).calls if call.id == result.call_id), None)


def call_names(messages: Collection[Message]) -> dict[tuple[int, int], tuple[str, str]]:
    """Return name and arguments of each result's call, the nearest earlier one of its id, by (message index, part index)."""
    open_calls: dict[str, tuple[str, str]] = {}
    found = {}
    for i, message in enumerate(messages):
        for k, part in enumerate(message.parts):
            if isinstance(part, ToolResult):
                found[i, k] = open_calls.get(part.call_id, ("", ""))
            elif isinstance(part, ToolCall):
                open_calls[part.id] = (part.name, part.arguments)
    return found
