"""Results that came more than once: the later copy stays, an earlier one points to it."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ctx_hooks import notices
from ctx_hooks.content_cache import digest
from ctx_hooks.conversation import Conversation, Part, ToolResult
from ctx_hooks.protection import older_messages
from ctx_hooks.steps import Step
from ctx_hooks.steps.results import call_names, may_be_cut, with_text

if TYPE_CHECKING:
    from ctx_hooks.budget import Budget

SHORTEST_CHARS = 300
"""A pointer of about twenty tokens is no gain over a shorter text."""
_READS = re.compile(r"read|view|open|cat\b|show|get|fetch|load", re.IGNORECASE)
"""Tools that only look: what they returned earlier for the same arguments is stale once they returned again."""


def _apply(conversation: Conversation, budget: Budget) -> Conversation:
    calls = call_names(conversation.messages)
    later: set[object] = set()
    repeated: dict[tuple[int, int], str] = {}
    for i in range(len(conversation.messages) - 1, -1, -1):
        for k, part in enumerate(conversation.messages[i].parts):
            if not isinstance(part, ToolResult) or len(text := part.text) < SHORTEST_CHARS:
                continue
            keys = _keys(text, *calls[i, k], is_error=part.is_error)
            if any(key in later for key in keys):
                repeated[i, id(part)] = calls[i, k][0]
            later.update(keys)
    older = older_messages(conversation)

    def edit(index: int, part: Part) -> Part:
        tool = repeated.get((index, id(part)))
        if index not in older or tool is None:
            return part
        if not isinstance(part, ToolResult) or not may_be_cut(part):
            return part
        return with_text(part, notices.repeated(tool, budget.policy.language))

    return conversation.map_parts(edit)


def _keys(text: str, name: str, arguments: str, *, is_error: bool) -> list[object]:
    keys: list[object] = [digest(text)]
    if name and not is_error and _READS.search(name):
        keys.append((name, arguments))
    return keys


STEP = Step("repeats", "a later copy of the same result stands in the conversation", _apply)
