"""Repeated texts: the latest of equal results stays, and the first of equal system texts; placeholders replace the others.

Codex sends its instructions again when it continues a session: the first copy is in the cached prefix.
"""

from dataclasses import replace
from typing import TypeVar

from ctx_hooks.compaction.steps import Step
from ctx_hooks.compaction.tool_texts import call_names, with_text
from ctx_hooks.conversation import placeholders
from ctx_hooks.conversation.conversation import Conversation
from ctx_hooks.conversation.model import Media, Part, Reasoning, Text, ToolResult
from ctx_hooks.policy.settings import Language
from ctx_hooks.runtime.content_cache import digest
from ctx_hooks.tokens.budget import Budget

SHORTEST_CHARS = 300
"""A placeholder of about twenty tokens saves nothing in a shorter text."""
BEGINNING_CHARS = 80
"""Length of a system text's beginning that its placeholder quotes."""
T = TypeVar("T", bound=Part)


def _apply(conversation: Conversation, budget: Budget) -> Conversation:
    return _results_once(_system_texts_once(conversation, budget), budget)


def _system_texts_once(conversation: Conversation, budget: Budget) -> Conversation:
    """Replace later copies by a placeholder with their beginning: a repeated text may revoke a text between the copies.

    If another earlier text has the same beginning, the copy stays: the placeholder would be ambiguous.
    """
    tokens, language = budget.counter.text, budget.policy.language
    said: dict[str, set[str]] = {}
    messages = list(conversation.messages)
    for i, message in enumerate(messages):
        if message.role != "system":
            continue
        text, texts = message.text, [p for p in message.parts if isinstance(p, Text)]
        beginning = text[:BEGINNING_CHARS]
        alike = said.setdefault(beginning, set())
        if alike == {text} and i >= conversation.settled and not message.pinned and len(texts) == len(message.parts):
            placeholder = placeholders.line("system", language, begins=placeholders.quoted(f"{beginning}{placeholders.GAP}"))
            if tokens(placeholder) < tokens(text):
                messages[i] = message.with_parts((replace(texts[-1], text=placeholder),))
        alike.add(text)
    return conversation.with_messages(tuple(messages))


def _results_once(conversation: Conversation, budget: Budget) -> Conversation:
    older, returned_by = conversation.older_messages, dict[object, str]()
    short: dict[tuple[int, int], ToolResult] = {}
    for (i, k), (tool, _) in reversed(call_names(conversation.messages).items()):
        result = conversation.messages[i].parts[k]
        if not isinstance(result, ToolResult) or not _comparable(result):
            continue
        text = tuple([digest(p.text) for p in result.parts if isinstance(p, Text)])
        if i in older and text in returned_by:
            short[i, k] = with_text(result, placeholders.line("repeated", budget.policy.language, tool=returned_by[text]))
        else:
            returned_by[text] = tool
    return conversation.with_messages(
        tuple(
            message.with_parts(tuple(short.get((i, k), part) for k, part in enumerate(message.parts)))
            for i, message in enumerate(conversation.messages)
        )
    )


def _comparable(result: ToolResult) -> bool:
    """Whether the result has only text, is long enough and whole, and no error: so no other part of it can differ."""
    texts = [p.text for p in result.parts if isinstance(p, Text)]
    is_whole_text = len(texts) == len(result.parts) and not result.is_cut
    return is_whole_text and not result.is_error and sum(map(len, texts)) >= SHORTEST_CHARS


REPEATS = Step("repeats", "another copy of the same text stands in the conversation", _apply)


def _without_reasoning(conversation: Conversation, budget: Budget) -> Conversation:
    messages, stay = list(conversation.messages), conversation.protected
    for i, message in enumerate(messages):
        # A message with only reasoning would become empty, which providers refuse; it goes with its exchange.
        if i not in stay and not all(isinstance(p, Reasoning) for p in message.parts):
            left = (
                conversation.reasoning_left(i, p, is_wanted=budget.wants_reasoning) if isinstance(p, Reasoning) else p
                for p in message.parts
            )
            messages[i] = message.with_parts(tuple(p for p in left if p is not None))
    return conversation.with_messages(tuple(messages))


def _without_media(conversation: Conversation, budget: Budget) -> Conversation:
    """Replace the media of users and tools, oldest first, until the goal is met; the assistant's belong to its answer."""
    messages, counter = list(conversation.messages), budget.counter
    excess = budget.excess(conversation)
    for i in sorted(conversation.older_messages):
        message = messages[i]
        if excess > 0 and message.role != "assistant":
            short = message.with_parts(tuple([_line(part, budget.policy.language) for part in message.parts]))
            saved = counter.message(message, conversation.format) - counter.message(short, conversation.format)
            if saved > 0:
                excess -= saved
                messages[i] = short
    return conversation.with_messages(tuple(messages))


def _line(part: T, language: Language) -> T | Text:
    if isinstance(part, ToolResult):
        parts = tuple([_line(p, language) for p in part.parts])
        return part if parts == part.parts else replace(part, parts=parts)
    return (
        Text(placeholders.line("media", language, kind=part.kind, size=part.size_chars)) if isinstance(part, Media) else part
    )


REASONING = Step("older_reasoning", "providers do not need the thinking of finished turns", _without_reasoning)
MEDIA = Step("older_media", "older media become a line", _without_media)
