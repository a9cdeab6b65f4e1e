"""Editing of the older tool results, shared by the steps that rewrite their text."""

from __future__ import annotations

from sys import getsizeof
from typing import TYPE_CHECKING

from ctx_hooks import notices
from ctx_hooks.content_cache import ContentCache, digest
from ctx_hooks.conversation import Conversation, Message, Part, Text, ToolResult
from ctx_hooks.protection import older_messages
from ctx_hooks.wire.fields import flag

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

SKIP = "truncation_skip"
WORTHWHILE_FRACTION = 0.05
"""A rewrite that saves less of a text is not made: it would cost a recount and the cached prefix for little."""

_rewrites: ContentCache[str | None] = ContentCache(share=0.1)


def may_be_cut(result: ToolResult) -> bool:
    """Whether the result may lose text: not when its tool forbids it, nor when it was cut before."""
    return notices.MARK not in result.text and not is_spared(result)


def is_spared(result: ToolResult) -> bool:
    """Whether the result says `{"context": {"truncation_skip": true}}`."""
    if flag(result.raw, SKIP) or any(flag(p.raw, SKIP) for p in result.parts):
        return True
    text = result.text
    return SKIP in text and _skip_in_json(text)


def rewrite_older_results(conversation: Conversation, rewrite: Callable[[str], str]) -> Conversation:
    """Return the conversation with each text of its older tool results rewritten, where that saves a worthwhile share.

    Which texts a rewrite would not change is remembered by content; of the others there are few.
    """
    older = older_messages(conversation)

    def edit(index: int, part: Part) -> Part:
        if index not in older or not isinstance(part, ToolResult) or not may_be_cut(part):
            return part
        return with_texts(part, lambda t: _rewritten(rewrite, t))

    return conversation.map_parts(edit)


def with_texts(result: ToolResult, rewrite: Callable[[str], str]) -> ToolResult:
    """Return the result with each of its texts rewritten; itself when none changes."""
    parts = tuple(_replaced(p, rewrite(p.text)) if isinstance(p, Text) else p for p in result.parts)
    return result if parts == result.parts else ToolResult(result.call_id, parts, result.is_error, result.raw)


def with_text(result: ToolResult, text: str) -> ToolResult:
    """Return the result with `text` in the place of its first text, its other texts gone and everything else kept."""
    first = next((p for p in result.parts if isinstance(p, Text)), None)
    kept = tuple(p for p in result.parts if not isinstance(p, Text))
    return ToolResult(result.call_id, (_replaced(first or Text(""), text), *kept), result.is_error, result.raw)


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


def _skip_in_json(text: str) -> bool:
    from ctx_hooks.json_text import parsed  # noqa: PLC0415 - only for the rare text that names the flag

    return flag(parsed(text), SKIP)
