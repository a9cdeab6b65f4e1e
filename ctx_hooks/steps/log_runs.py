"""Runs of near-identical lines, folded into the first, a count and the last."""

from __future__ import annotations

import re
from itertools import groupby, pairwise
from typing import TYPE_CHECKING

from ctx_hooks import notices
from ctx_hooks.steps import Step
from ctx_hooks.steps.results import rewrite_older_results

if TYPE_CHECKING:
    from ctx_hooks.budget import Budget
    from ctx_hooks.conversation import Conversation

SHORTEST_RUN_LINES = 4
"""Shorter runs are left: first, count and last would be three lines as well."""
_FIGURES = re.compile(r"[0-9a-fA-F]*[0-9][0-9a-fA-F]*")


def fold(text: str) -> str:
    """Return `text` with each run of lines that differ in their figures only folded."""
    if text.count("\n") < SHORTEST_RUN_LINES or not _likely(text):
        return text
    folded: list[str] = []
    for _, run in groupby(text.splitlines(keepends=True), key=_shape):
        lines = list(run)
        if len(lines) < SHORTEST_RUN_LINES or not lines[0].strip():
            folded += lines
        else:
            folded += [lines[0], f"{notices.GAP} {len(lines) - 2} more like it\n", lines[-1]]
    return "".join(folded)


def _shape(line: str) -> str:
    return _FIGURES.sub("0", line)


def _likely(text: str) -> bool:
    """Whether enough neighbouring lines are the same without anything that a figure may hold: a cheap look."""
    alike = 0
    bare = text.encode("utf-8", "surrogatepass").translate(None, b"0123456789abcdefABCDEF")
    for a, b in pairwise(bare.split(b"\n")):
        alike = alike + 1 if a == b else 0
        if alike >= SHORTEST_RUN_LINES - 1:
            return True
    return False


def _apply(conversation: Conversation, budget: Budget) -> Conversation:
    del budget  # nearly lossless: done whenever anything is done
    return rewrite_older_results(conversation, fold)


STEP = Step("log_runs", "lines that differ in figures only say the same", _apply)
