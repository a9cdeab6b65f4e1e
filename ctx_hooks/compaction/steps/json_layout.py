"""Indented JSON in older results, written compactly."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_hooks.compaction.steps import Step
from ctx_hooks.compaction.tool_results import rewrite_older_results
from ctx_hooks.texts.json_text import parsed, strings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctx_hooks.conversation.model import Conversation
    from ctx_hooks.tokens.budget import Budget


def compact(text: str) -> str:
    """Return JSON `text` without layout, one top-level member or item a line so that lines stay segments; else `text`.

    Only blanks between values go: figures, escapes and doubled keys stay to the letter.
    """
    if text.lstrip()[:1] not in ("{", "[") or "\n" not in text or parsed(text) is None:
        return text
    return "".join(_without_layout(text))


def _without_layout(text: str) -> Iterator[str]:
    depth = 0
    for between, string in strings(text):
        for character in "".join(between.split()):
            depth += (character in "[{") - (character in "]}")
            yield ",\n" if character == "," and depth == 1 else character
        yield string


def _apply(conversation: Conversation, budget: Budget) -> Conversation:
    return rewrite_older_results(conversation, budget, compact)


STEP = Step("json_layout", "the layout of JSON carries no meaning", _apply)
