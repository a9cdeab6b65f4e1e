"""Removed messages as one text, which the archive keeps whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_hooks.compaction.tool_results import call_names
from ctx_hooks.conversation import placeholders
from ctx_hooks.conversation.model import Text, ToolCall, ToolResult

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from ctx_hooks.conversation.model import Message
    from ctx_hooks.policy.settings import Language


def transcript(messages: Sequence[Message], language: Language) -> str:
    """Return what was said, called and returned, in order, each under a line with its source.

    Texts stand as they came, whatever steps have cut of them, with a mark in front of every line: none can write the line of
    another source. Media and reasoning are no part of it: the one is no text, the
    other is for the model that thought it.
    """
    return "\n\n".join(_sources(messages, language))


def _sources(messages: Sequence[Message], language: Language) -> Iterator[str]:
    calls = call_names(messages)
    for i, message in enumerate(messages):
        for k, part in enumerate(message.parts):
            if isinstance(part, Text) and part.original_text:
                source = placeholders.source_of_speaker(message.role, message.name, language)
                yield f"{source}\n{_quoted(part.original_text)}"
            elif isinstance(part, ToolCall):
                yield f"{placeholders.source_of_arguments(part.name, language)}\n{_quoted(part.arguments)}"
            elif isinstance(part, ToolResult) and part.original_text:
                tool = calls.get((i, k), ("", ""))[0]
                yield f"{placeholders.source_of_call(tool, language)}\n{_quoted(part.original_text)}"


def _quoted(text: str) -> str:
    return "".join(f"> {line}" for line in text.splitlines(keepends=True))
