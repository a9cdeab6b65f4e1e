"""Applying a selection: kept lines stay in their own part, with a placeholder and a mark at each gap."""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence

from ctx_hooks.compaction import tool_texts
from ctx_hooks.compaction.selection.blocks import names_of
from ctx_hooks.compaction.selection.records import saved_line
from ctx_hooks.compaction.selection.scoring import Item, Source
from ctx_hooks.compaction.selection.segments import Position
from ctx_hooks.compaction.summary.actions import action_of, changes_nothing
from ctx_hooks.compaction.tool_texts import call_names, with_text
from ctx_hooks.conversation import placeholders
from ctx_hooks.conversation.conversation import Conversation
from ctx_hooks.conversation.model import Message, Part, Reasoning, Role, Text, ToolCall, ToolResult
from ctx_hooks.tokens.budget import Budget

BEGINNING_CHARS = 120
"""The kept beginning of a text without kept segments: it says what the text was about."""
LEAST_LINES_CHARS = 200
"""Fewer kept characters of a text without records say less than how it ended."""
_NO_LINES: frozenset[int] = frozenset()


class Shortener:
    """Makes each shortened form of older messages once: the selections that a fit tries differ in a few lines."""

    def __init__(self, conversation: Conversation, items: Iterable[Item], budget: Budget) -> None:
        self._conversation = conversation
        self._budget = budget
        self._sources = {source.position: source for item in items for source in item.sources}
        self._calls = call_names(conversation.messages)
        self._forms: dict[tuple[int, tuple[frozenset[int], ...]], Message] = {}

    def messages(self, exchanges: Iterable[range], lines: Mapping[Position, frozenset[int]]) -> dict[int, Message]:
        """Return the shortened form of every message of the exchanges, by index, with the kept `lines`."""
        return {i: self._form(i, lines) for exchange in exchanges for i in exchange}

    def _form(self, i: int, lines: Mapping[Position, frozenset[int]]) -> Message:
        message = self._conversation.messages[i]
        kept = tuple([lines.get((i, k), _NO_LINES) for k in range(len(message.parts))])
        form = self._forms.get((i, kept))
        if form is None:
            parts = [self._short_part(i, k, kept[k]) for k in range(len(message.parts))]
            form = message.with_parts(tuple([part for part in parts if part is not None]) or message.parts)
            self._forms[i, kept] = form
        return form

    def _short_part(self, i: int, k: int, kept: frozenset[int]) -> Part | None:
        message, budget = self._conversation.messages[i], self._budget
        part, source = message.parts[k], self._sources.get((i, k))
        if isinstance(part, ToolResult) and source is not None:
            short = _short_result(part, source, kept, self._calls[i, k], budget)
            return with_text(part, short) if len(short) < len(source.text) else part
        if isinstance(part, Text) and source is not None:
            short = _short_text(part, source, message.role, kept | source.stays, budget)
            return Text(short, part.raw, came_text=part.original_text) if len(short) < len(source.text) else part
        if isinstance(part, Reasoning):
            return self._conversation.reasoning_left(i, part, is_wanted=budget.wants_reasoning)
        return part


def _short_result(result: ToolResult, source: Source, kept: frozenset[int], call: tuple[str, str], budget: Budget) -> str:
    original, language = result.original_text, budget.policy.language
    reference, may_repeat = budget.reference(original), changes_nothing(ToolCall("", *call))
    action, segments, saved = action_of(ToolCall("", *call), result), source.segments, saved_line(source.text)
    if segments.records or sum(b - a for n, (a, b) in enumerate(segments.spans) if n in kept) < LEAST_LINES_CHARS:
        kept = kept & frozenset(segments.records)
    if kept:
        left = len(segments.records) - sum(n in segments.records for n in kept)
        if segments.records:  # without the head nobody knows whose keys these are
            kept = kept.union(range(segments.records.start), range(segments.records.stop, len(segments)))
        if saved:
            kept |= {bisect_right(segments.bounds, saved[0]) - 1}
        ending = "" if len(segments) - 1 in kept else action.outcome
        placeholder = placeholders.line(
            "records" if left else "lines",
            language,
            reference,
            ending=ending,
            may_repeat=may_repeat,
            left=left,
            records=len(segments.records),
        )
        return kept_segments(source.text, placeholder, source.segments.spans, kept)
    changed = " ".join(action.files) if action.kind == "changed" else ""
    target = changed if 0 < len(changed) <= 2 * tool_texts.DIGEST_CHARS else tool_texts.digest(call[1])
    name, ending = f"{call[0]}({target})" if call[0] else target, action.outcome
    line = placeholders.line(
        "removed", language, reference, ending=ending, may_repeat=may_repeat, call=name, total=len(original)
    )
    return f"{line}\n{source.text[slice(*saved)]}" if saved else line


def _short_text(part: Text, source: Source, role: Role, kept: frozenset[int], budget: Budget) -> str:
    text, spans, language = source.text, source.segments.spans, budget.policy.language
    reference = budget.reference(part.original_text)
    if role != "user":
        placeholder = placeholders.line("shortened", language, reference, total=len(text))
    else:
        gone = [span for n, span in enumerate(spans) if n not in kept]
        gone_chars = sum(b - a for a, b in gone)
        placeholder = placeholders.blocks_left_out(names_of(text, gone), gone_chars, len(text), language, reference)
    if not kept:
        return f"{text[:BEGINNING_CHARS]}{placeholders.GAP}\n{placeholder}"
    return kept_segments(text, placeholder, spans, kept, in_place=True)


def kept_segments(
    text: str, placeholder: str, spans: Sequence[tuple[int, int]], kept: frozenset[int], *, in_place: bool = False
) -> str:
    """Return the kept segments of `text`, a mark at each gap, and the placeholder above or `in_place` of the first gap."""
    pieces = [] if in_place else [placeholder, "\n"]
    mark = placeholder if in_place else placeholders.GAP
    before = -1
    for n in (*sorted(kept), len(spans)):
        if n != before + 1:
            line = "\n" * bool(pieces and not pieces[-1].endswith("\n"))
            pieces.append(line + mark + "\n" * (n < len(spans)))
            mark = placeholders.GAP
        if n < len(spans):
            pieces.append(text[slice(*spans[n])])
        before = n
    return "".join(pieces)
