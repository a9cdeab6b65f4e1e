"""Runs of near-identical lines, folded into the first, a count and the last; so is progress redrawn on one line."""

from __future__ import annotations

import re
from dataclasses import replace
from functools import partial
from itertools import pairwise
from string import hexdigits
from sys import getsizeof
from typing import TYPE_CHECKING

from ctx_hooks.compaction.steps import Step
from ctx_hooks.compaction.tool_results import edit_older_results
from ctx_hooks.conversation import placeholders
from ctx_hooks.conversation.model import Text, ToolResult
from ctx_hooks.runtime.content_cache import ContentCache, digest
from ctx_hooks.texts.pieces import pieces, whole_lines

if TYPE_CHECKING:
    from ctx_hooks.conversation.model import Conversation
    from ctx_hooks.tokens.budget import Budget

SHORTEST_RUN_LINES = 4
"""Shorter runs are left: first, count and last would be three lines as well."""
WORTHWHILE_FRACTION = 0.05
"""Folding that saves less of a text is not done: it would cost a recount and the cached prefix for little."""
_DIGITS = hexdigits.encode()
# The text before the figure's first digit is looked at from the start of its run of hexadecimal letters alone.
_FIGURES = re.compile(r"(?<![0-9a-fA-F])[a-fA-F]*[0-9][0-9a-fA-F]*")
_BARS = re.compile(r"[\s=#>.*\-_|/\\█▉▊▋▌▍▎▏░▒▓━╸╺─\u2800-\u28ff]+")
"""What progress bars and spinners are drawn with."""

_folds: ContentCache[str | None] = ContentCache()


def fold(text: str) -> str:
    """Return `text` with each run of lines that differ in their figures only folded."""
    if not _may_hold_a_run(text):
        return text
    lines: list[str] = []
    shapes: list[str] = []
    for piece in whole_lines(text):
        found = piece.splitlines(keepends=True)
        lines += found
        shapes += _shapes(piece, found)
    starts = [0, *(n for n, (a, b) in enumerate(pairwise(shapes), 1) if a != b), len(lines)]
    folded: list[str] = []
    kept = 0
    for start, end in [(a, b) for a, b in pairwise(starts) if b - a >= SHORTEST_RUN_LINES]:
        if lines[start].strip():
            folded += lines[kept : start + 1]
            folded.append(_placeholder(lines[start], end - start - 2))
            kept = end - 1
    return "".join(folded + lines[kept:]) if folded else text


def _may_hold_a_run(text: str) -> bool:
    """Whether lines are alike without their hexadecimal digits: ten times faster than their shapes, and mostly false."""
    if "\r" in text:
        return True
    rests = [rest for piece in whole_lines(text) for rest in _without_digits(piece).splitlines()]
    return any(a == b == c == d for a, b, c, d in zip(rests, rests[1:], rests[2:], rests[3:], strict=False))


def _without_digits(piece: str) -> str:
    return piece.encode("utf-8", "surrogatepass").translate(None, _DIGITS).decode("utf-8", "surrogatepass")


def _shapes(piece: str, lines: list[str]) -> list[str]:
    """Return each line without its end and with its figures alike; of a redrawn line what is no part of a bar."""
    shapes = "".join(_FIGURES.sub("0", p) for p in pieces(piece)).splitlines()
    if "\r" in piece:
        return [_BARS.sub("", s) if _is_redrawn(line) else s for s, line in zip(shapes, lines, strict=True)]
    return shapes


def _is_redrawn(line: str) -> bool:
    return line.endswith("\r")


def _placeholder(first: str, lines: int) -> str:
    alike = "redrawn in its place" if _is_redrawn(first) else "alike but for figures"
    return f"{placeholders.GAP} {lines} more {alike}\n"


def _apply(conversation: Conversation, budget: Budget) -> Conversation:
    return edit_older_results(conversation, lambda result: _folded(result, budget))


def _folded(result: ToolResult, budget: Budget) -> ToolResult:
    """Return a result with its runs folded, and a line that says where the whole is, if that is worthwhile."""
    budget.counter.deadline.check()
    if result.is_cut:
        return result
    parts = [
        Text(short, p.raw)
        if isinstance(p, Text) and (short := _folds.get(digest(p.text), partial(_worthwhile, p.text), getsizeof))
        else p
        for p in result.parts
    ]
    if all(a is b for a, b in zip(parts, result.parts, strict=True)):
        return result
    if (reference := budget.reference(result.original_text)) is not None:
        parts.append(Text(placeholders.lines_folded(reference, budget.policy.language)))
    folded = replace(result, parts=tuple(parts), came_text=result.original_text)
    return folded if len(folded.text) < len(result.text) else result


def _worthwhile(text: str) -> str | None:
    """Return a text with its runs folded; None if that saves little, which most texts are."""
    folded = fold(text)
    return folded if len(folded) <= len(text) * (1 - WORTHWHILE_FRACTION) else None


STEP = Step("log_runs", "lines that differ in figures only say the same", _apply)
