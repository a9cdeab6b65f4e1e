"""Applying a selection: kept lines stay in their own part, with a placeholder and a mark at each gap."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from ctx_hooks.compaction import tool_arguments
from ctx_hooks.compaction.selection.blocks import names_of
from ctx_hooks.compaction.selection.scoring import may_be_shortened, segments_of, short_arguments
from ctx_hooks.compaction.selection.segments import segments
from ctx_hooks.compaction.tool_results import call_names, with_text
from ctx_hooks.conversation import placeholders
from ctx_hooks.conversation.model import Conversation, Message, Part, Reasoning, Text, ToolCall, ToolResult
from ctx_hooks.conversation.protection import reasoning_may_go

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctx_hooks.compaction.selection.select import Selection
    from ctx_hooks.tokens.budget import Budget

BEGINNING_CHARS = 120
"""What stays of a text of which no segment was kept: it says what the text was about."""


def shortened_messages(conversation: Conversation, selection: Selection, budget: Budget) -> dict[int, Message]:
    """Return the shortened form of every message of the selection's shortened exchanges, by index."""
    calls = call_names(conversation.messages)
    forms = {}
    for exchange in selection.shortened:
        for i in exchange:
            message = conversation.messages[i]
            parts = tuple(
                form
                for k, part in enumerate(message.parts)
                if (form := _shortened_part(conversation, (i, k), part, selection, calls.get((i, k), ("", "")), budget))
                is not None
            )
            forms[i] = message.with_parts(parts or message.parts)
    return forms


def _shortened_part(
    conversation: Conversation,
    position: tuple[int, int],
    part: Part,
    selection: Selection,
    call: tuple[str, str],
    budget: Budget,
) -> Part | None:
    if isinstance(part, Reasoning) and reasoning_may_go(conversation, position[0]):
        return None
    kept = selection.lines.get(position, frozenset())
    if isinstance(part, ToolCall):
        short = short_arguments(part, budget, partial(_kept_lines, kept) if kept else None)
        return part if short == part.arguments else ToolCall(part.id, part.name, short, part.raw)
    if not may_be_shortened(part, budget.policy) or not isinstance(part, (Text, ToolResult)):
        return part
    message = conversation.messages[position[0]]
    if isinstance(part, ToolResult):
        short = _short_result(part, kept, call, budget)
        return with_text(part, short) if len(short) < len(part.text) else part
    short = _short_text(part, message, kept, budget)
    return Text(short, part.raw, came_text=part.original_text) if len(short) < len(part.text) else part


def _short_result(result: ToolResult, kept: frozenset[int], call: tuple[str, str], budget: Budget) -> str:
    original, language = result.original_text, budget.policy.language
    reference = budget.reference(original)
    if kept:
        placeholder = placeholders.lines_left_out(language, reference)
        return _kept_lines(kept, result.text, placeholder)
    return placeholders.removed(call[0], tool_arguments.digest(call[1]), len(original), language, reference)


def _short_text(part: Text, message: Message, kept: frozenset[int], budget: Budget) -> str:
    text, language = part.text, budget.policy.language
    reference = budget.reference(part.original_text)
    spans = segments_of(message, part, text, budget).spans
    if message.role != "user":
        placeholder = placeholders.shortened(len(text), language, reference)
    else:
        gone = [span for n, span in enumerate(spans) if n not in kept]
        gone_chars = sum(b - a for a, b in gone)
        placeholder = placeholders.blocks_left_out(names_of(text, gone), gone_chars, len(text), language, reference)
    return (
        kept_segments(text, spans, kept, placeholder)
        if kept
        else f"{text[:BEGINNING_CHARS]}{placeholders.GAP}\n{placeholder}"
    )


def _kept_lines(kept: frozenset[int], text: str, placeholder: str) -> str:
    return kept_segments(text, segments(text).spans, kept, placeholder)


def kept_segments(text: str, spans: Sequence[tuple[int, int]], kept: frozenset[int], placeholder: str) -> str:
    """Return the placeholder, then the kept segments of `text` in order with a mark wherever something is missing."""
    pieces = [placeholder, "\n"]
    before = -1
    for n in sorted(kept):
        if n != before + 1:
            pieces.append(placeholders.GAP + "\n")
        pieces.append(text[slice(*spans[n])])
        before = n
    if before != len(spans) - 1:
        pieces.append(placeholders.GAP if pieces[-1].endswith("\n") else "\n" + placeholders.GAP)
    return "".join(pieces)
