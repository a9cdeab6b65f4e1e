"""Editing of the older tool results, shared by the steps that rewrite their text."""

from __future__ import annotations

from dataclasses import replace
from sys import getsizeof
from typing import TYPE_CHECKING

from ctx_hooks.conversation.model import Conversation, Message, Text, ToolResult
from ctx_hooks.conversation.protection import older_results
from ctx_hooks.runtime.content_cache import ContentCache, digest

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from ctx_hooks.tokens.budget import Budget

WORTHWHILE_FRACTION = 0.05
"""A rewrite that saves less of a text is not made: it would cost a recount and the cached prefix for little."""

_rewrites: ContentCache[str | None] = ContentCache()


def rewrite_older_results(conversation: Conversation, budget: Budget, rewrite: Callable[[str], str]) -> Conversation:
    """Return the conversation with each text of its older tool results rewritten, where that saves a worthwhile share.

    Which texts a rewrite would not change is remembered by content; of the others there are few.
    """

    def edit(result: ToolResult) -> ToolResult:
        budget.counter.deadline.check()
        if result.is_cut:
            return result
        return with_texts(result, lambda text: _rewritten(rewrite, text))

    return edit_older_results(conversation, edit)


def edit_older_results(conversation: Conversation, edit: Callable[[ToolResult], ToolResult]) -> Conversation:
    """Return the conversation with its older tool results edited."""
    edited = {(i, k): new for i, k, result in older_results(conversation) if (new := edit(result)) is not result}
    return with_results(conversation, edited)


def with_results(conversation: Conversation, results: Mapping[tuple[int, int], ToolResult]) -> Conversation:
    """Return the conversation with other results in the places of some, by (message index, part index)."""
    messages = list(conversation.messages)
    for i in {i for i, _ in results}:
        messages[i] = messages[i].with_parts(tuple(results.get((i, k), part) for k, part in enumerate(messages[i].parts)))
    return conversation.with_messages(tuple(messages)) if results else conversation


def with_texts(result: ToolResult, rewrite: Callable[[str], str]) -> ToolResult:
    """Return the result with each of its texts rewritten; itself when none changes."""
    parts = tuple(_replaced(p, rewrite(p.text)) if isinstance(p, Text) else p for p in result.parts)
    return result if parts == result.parts else replace(result, parts=parts, came_text=result.original_text)


def with_text(result: ToolResult, text: str) -> ToolResult:
    """Return the cut result: `text` in the place of its first text, its other texts gone and everything else kept."""
    first = next((p for p in result.parts if isinstance(p, Text)), None)
    kept = tuple(p for p in result.parts if not isinstance(p, Text))
    parts = (_replaced(first or Text(""), text), *kept)
    return ToolResult(result.call_id, parts, result.is_error, result.raw, is_cut=True, came_text=result.original_text)


def call_names(messages: Collection[Message]) -> dict[tuple[int, int], tuple[str, str]]:
    """Return tool name and arguments of the call that each result answers, by (message index, part index).

    Ids may repeat across turns, so a result belongs to the nearest call before it with its id.
    """
    open_calls: dict[str, tuple[str, str]] = {}
    found = {}
    for i, message in enumerate(messages):
        for k, part in enumerate(message.parts):
            if isinstance(part, ToolResult):
                found[i, k] = open_calls.get(part.call_id, ("", ""))
        for call in message.calls:
            open_calls[call.id] = (call.name, call.arguments)
    return found


def _rewritten(rewrite: Callable[[str], str], text: str) -> str:
    return _rewrites.get((rewrite, digest(text)), lambda: _worthwhile(text, rewrite(text)), getsizeof) or text


def _worthwhile(old: str, new: str) -> str | None:
    return new if len(new) <= len(old) * (1 - WORTHWHILE_FRACTION) else None


def _replaced(part: Text, text: str) -> Text:
    return part if text == part.text else Text(text, part.raw)
