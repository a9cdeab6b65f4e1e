"""Runs of near-identical lines, folded into the first, a count and the last; so is progress redrawn on one line."""

from __future__ import annotations

import re
from dataclasses import replace
from itertools import pairwise
from string import hexdigits
from typing import TYPE_CHECKING

from ctx_hooks.compaction.steps import Step
from ctx_hooks.compaction.tool_results import rewrite_older_results
from ctx_hooks.conversation import placeholders
from ctx_hooks.conversation.model import Text, ToolResult
from ctx_hooks.texts.pieces import pieces, whole_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctx_hooks.conversation.model import Conversation, Message, Part
    from ctx_hooks.tokens.budget import Budget

SHORTEST_RUN_LINES = 4
"""Shorter runs are left: first, count and last would be three lines as well."""
_DIGITS = hexdigits.encode()
# The text before the figure's first digit is looked at from the start of its run of hexadecimal letters alone.
_FIGURES = re.compile(r"(?<![0-9a-fA-F])[a-fA-F]*[0-9][0-9a-fA-F]*")
_BARS = re.compile(r"[\s=#>.*\-_|/\\█▉▊▋▌▍▎▏░▒▓━╸╺─\u2800-\u28ff]+")
"""What progress bars and spinners are drawn with."""


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
    folded = rewrite_older_results(conversation, budget, fold)
    if budget.cut_texts is None:
        return folded
    return conversation.with_messages(
        tuple(
            before if after is before else after.with_parts(tuple(_referring(before, after, budget)))
            for before, after in zip(conversation.messages, folded.messages, strict=True)
        )
    )


def _referring(before: Message, after: Message, budget: Budget) -> Iterator[Part]:
    """Yield the parts of a folded message: of each folded result a line says where the whole is, where it stays shorter."""
    for whole, part in zip(before.parts, after.parts, strict=True):
        if part is whole or not isinstance(part, ToolResult) or not isinstance(whole, ToolResult):
            yield part
            continue
        reference = budget.reference(part.original_text)
        line = placeholders.lines_folded(reference, budget.policy.language) if reference is not None else ""
        referring = replace(part, parts=(*part.parts, Text(line)))
        yield referring if len(referring.text) < len(whole.text) else whole


STEP = Step("log_runs", "lines that differ in figures only say the same", _apply)
