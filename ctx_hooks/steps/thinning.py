"""Carrying out a selection: kept lines stay in their own part, with a notice and a mark at each gap."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_hooks import arguments, notices
from ctx_hooks.candidates import argument_chars, thinnable
from ctx_hooks.conversation import Conversation, Message, Part, Reasoning, Text, ToolCall, ToolResult
from ctx_hooks.protection import reasoning_may_go
from ctx_hooks.salience import units
from ctx_hooks.steps.results import call_names, with_text

if TYPE_CHECKING:
    from ctx_hooks.budget import Budget
    from ctx_hooks.choice import Selection
    from ctx_hooks.policy.settings import Language


def thinned(conversation: Conversation, selection: Selection, budget: Budget) -> dict[int, Message]:
    """Return the thinned form of every message of the selection's thinned exchanges, by index."""
    calls = call_names(conversation.messages)
    forms = {}
    for exchange in selection.thinned:
        for i in exchange:
            message = conversation.messages[i]
            parts = tuple(
                form
                for k, part in enumerate(message.parts)
                if (form := _thin(conversation, (i, k), part, selection, calls.get((i, k), ("", "")), budget)) is not None
            )
            forms[i] = message.with_parts(parts or message.parts)
    return forms


def _thin(
    conversation: Conversation,
    position: tuple[int, int],
    part: Part,
    selection: Selection,
    call: tuple[str, str],
    budget: Budget,
) -> Part | None:
    language = budget.policy.language
    if isinstance(part, Reasoning) and reasoning_may_go(conversation, position[0]):
        return None
    if isinstance(part, ToolCall):
        short = arguments.shortened(part.arguments, argument_chars(budget), language)
        return part if short == part.arguments else ToolCall(part.id, part.name, short, part.raw)
    if not thinnable(part) or not isinstance(part, (Text, ToolResult)):
        return part
    kept = selection.lines.get(position, frozenset())
    text = part.text
    if kept:
        short = kept_lines(text, kept, language)
    elif isinstance(part, ToolResult):
        short = notices.removed(call[0], arguments.digest(call[1]), len(text), language)
    else:
        short = f"{text[:120]}\n{notices.shortened(len(text), language)}"
    if len(short) >= len(text):
        return part
    return with_text(part, short) if isinstance(part, ToolResult) else Text(short, part.raw)


def kept_lines(text: str, kept: frozenset[int], language: Language) -> str:
    """Return the notice, then the kept units of `text` in order with a mark wherever something is missing."""
    spans = units(text).spans
    pieces = [notices.thinned(len(kept), len(spans), language), "\n"]
    before = -1
    for n in sorted(kept):
        if n != before + 1:
            pieces.append(notices.GAP + "\n")
        pieces.append(text[slice(*spans[n])])
        before = n
    if before != len(spans) - 1:
        pieces.append(notices.GAP if pieces[-1].endswith("\n") else "\n" + notices.GAP)
    return "".join(pieces)
