"""What a rule is, and the rules on single messages: empty content, cache markers, reasoning without its item.

A rule returns a conversation that keeps it (the same object if nothing is broken), and its repairs.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import wraps
from typing import NamedTuple, TypeAlias

from ctx_hooks.conversation.conversation import Conversation
from ctx_hooks.conversation.model import Message, Reasoning, Text
from ctx_hooks.formats.fields import CACHE_MARKER, mapping_or_empty

MOST_MARKERS = 4


class Repair(NamedTuple):
    """One repair: the rule that was broken, by which message (its index before the repair), and how."""

    rule: str
    message_index: int
    what: str


Repaired: TypeAlias = tuple[Conversation, tuple[Repair, ...]]
Rule: TypeAlias = Callable[..., Repaired]
"""By keyword it gets `language`, and `continues`: whether the provider stores earlier messages, perhaps with calls."""
Change: TypeAlias = tuple[int, Message | None, str]
"""The index of a message, its replacement or None if the message is dropped, and what was wrong with it."""


def rule_on_messages(find: Callable[[Conversation], Iterator[Change]]) -> Rule:
    """Return the rule whose repairs `find` yields, with its name."""

    @wraps(find)
    def repaired(conversation: Conversation, **_: object) -> Repaired:
        messages: list[Message | None] = list(conversation.messages)
        repairs = []
        for i, message, what in find(conversation):
            messages[i] = message
            repairs.append(Repair(find.__name__, i, what))
        return conversation.with_messages(tuple(m for m in messages if m is not None)), tuple(repairs)

    return repaired


@rule_on_messages
def chat_content(conversation: Conversation) -> Iterator[Change]:
    """Write null as "", leave an empty list of calls out, and write arguments as JSON text.

    OpenAI: "Invalid value for 'content': expected a string, got null." (user, tool, and an assistant without calls),
    "[] is too short - 'messages.1.tool_calls'", "Invalid type for 'messages[1].tool_calls[0].function.arguments':
    expected a string, but got an object instead."
    """
    for i, message in enumerate(conversation.messages):
        if message.edited:
            continue  # an edited message is written without these
        raw = message.raw
        null = raw.get("content") is None and message.role in {"user", "tool", "assistant", "system"}
        if null and not message.calls:
            is_tool, text = message.role == "tool", Text("")
            empty = (replace(message.results[0], parts=(text,)),) if is_tool else (*message.parts, text)
            yield i, message.with_parts(empty), "content is null"
        elif raw.get("tool_calls") == []:
            yield i, replace(message, edited=True), "tool_calls is empty"
        elif message.role == "assistant":
            functions = [(call.raw or {}).get("function") for call in message.calls]
            if any(f is not None and not isinstance(f.get("arguments"), str) for f in functions):
                yield i, replace(message, edited=True), "arguments are no string"


@rule_on_messages
def anthropic_content(conversation: Conversation) -> Iterator[Change]:
    """Drop blank blocks, empty messages, and the blanks at the end of a last assistant message.

    Anthropic: "messages: text content blocks must be non-empty", "messages: text content blocks must contain
    non-whitespace text", "messages.N: all messages must have non-empty content except for the optional final assistant
    message", "final assistant content cannot end with trailing whitespace".
    """
    for i, message in enumerate(conversation.messages):
        if message.role not in {"user", "assistant"}:
            continue
        parts = [p for p in message.parts if not isinstance(p, Text) or p.text.strip()]
        is_last_answer = i == len(conversation.messages) - 1 and message.role == "assistant"
        if is_last_answer and parts and isinstance(parts[-1], Text):
            parts[-1] = Text(parts[-1].text.rstrip(), parts[-1].raw)
        kept = message.with_parts(tuple(parts))
        if not parts and not is_last_answer:
            yield i, None, "message has no content"
        elif kept is not message:
            yield i, kept, "blank text"


@rule_on_messages
def gemini_content(conversation: Conversation) -> Iterator[Change]:
    """Drop empty texts, and contents that have no other part.

    Google: "* GenerateContentRequest.contents[0].parts: contents.parts must not be empty.", "Unable to submit request
    because it must have a text parameter." Signatures of streamed answers arrive in empty texts, and must come back.
    """
    for i, message in enumerate(conversation.messages):
        kept = message.with_parts(tuple(p for p in message.parts if not isinstance(p, Text) or p.text or p.is_signed))
        if not kept.parts:
            yield i, None, "content has no parts"
        elif kept is not message:
            yield i, kept, "empty text"


@rule_on_messages
def cache_markers(conversation: Conversation) -> Iterator[Change]:
    """Remove the earliest of more than four cache markers.

    Anthropic: "A maximum of 4 blocks with cache_control may be provided. Found 5." Markers of system text and tools stay.
    """
    messages = list(conversation.messages)
    parts = ((i, k, p) for i, m in enumerate(messages) for k, p in enumerate(m.parts))
    marked = [(i, k) for i, k, p in parts if mapping_or_empty(p.raw).get(CACHE_MARKER) is not None]
    for i, k in marked[: max(0, len(marked) + conversation.preamble_markers - MOST_MARKERS)]:
        before = messages[i].parts
        raw = {name: value for name, value in before[k].raw.items() if name != CACHE_MARKER}
        changed = (*before[:k], replace(before[k], raw=raw), *before[k + 1 :])
        messages[i] = replace(messages[i], parts=changed, edited=True)
        yield i, messages[i], "more than four cache markers"


@rule_on_messages
def reasoning_has_item(conversation: Conversation) -> Iterator[Change]:
    """Drop reasoning whose item is missing.

    Responses: "Item 'rs_...' of type 'reasoning' was provided without its required following item."
    """
    messages = conversation.messages
    for i, message in enumerate(messages):
        is_reasoning = len(message.parts) == 1 and isinstance(message.parts[0], Reasoning)
        if is_reasoning and (i + 1 == len(messages) or messages[i + 1].role not in {"assistant", "other"}):
            yield i, None, "reasoning without its following item"
