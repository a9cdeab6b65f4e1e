"""Terminal escapes, trailing blanks and blank lines: what shows nothing. Every visible character stays.

What a carriage return overwrites stays as well: a file of an old Mac separates its lines by nothing else. Redrawn
progress is folded, with a count, by `log_runs`.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ctx_hooks.compaction.steps import Step
from ctx_hooks.compaction.tool_results import rewrite_older_results
from ctx_hooks.texts.pieces import PIECE_CHARS, whole_lines

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctx_hooks.conversation.model import Conversation
    from ctx_hooks.tokens.budget import Budget

# ECMA-48: control sequences (CSI) are parameters, intermediates and a final character; operating system commands (OSC) are
# a number and a text up to BEL or ST. `ESC ( B`, `ESC 7` and the like choose a character set or save the cursor.
_UNSEEN = re.compile(
    r"\x1b(?:\[[0-?]{0,64}[ -/]{0,4}[@-~]|\][0-9]{1,5};[^\x00-\x1f\x7f]{0,4096}(?:\x07|\x1b\\)|\([0AB]|[78=>])"
)
_MOVES = re.compile(r"\x1b\[[0-9;]{0,32}[A-H`a-ef]")
"""Sequences that move the cursor: what they held apart stays apart by a blank."""
_SEQUENCE = "\x1b["
_BLANK_LINES = re.compile(r"\n{4,}")
_LINE_END = re.compile(r"\n(?=[ \t]{0,200}\S)")
"""Where a piece may end: never within blank lines, which are folded together."""


def clean(text: str) -> str:
    """Return `text` without what shows nothing."""
    return "".join(map(_clean, whole_lines(text, _LINE_END)))


def _clean(text: str) -> str:
    lines = _fold_blank_lines(text).split("\n")
    if "\x1b" in text:
        lines = [_without_escapes(line) if "\x1b" in line else line for line in lines]
    if lines != [line.rstrip() for line in lines]:
        lines = [_without_trailing_blanks(line) for line in lines]
    return _fold_blank_lines("\n".join(lines))


def _fold_blank_lines(text: str) -> str:
    return _BLANK_LINES.sub("\n\n", text) if "\n\n\n\n" in text else text


def _without_escapes(line: str) -> str:
    """Return the line without its escapes; as it is where one is malformed, since what follows it may be part of it."""
    shown = "".join(_UNSEEN.sub("", _MOVES.sub(" ", piece)) for piece in _sequences(line))
    return line if "\x1b" in shown else shown


def _sequences(line: str) -> Iterator[str]:
    """Yield a long line in pieces that begin with a sequence."""
    start = 0
    while start < len(line):
        end = line.find(_SEQUENCE, start + PIECE_CHARS)
        end = end if end >= 0 else len(line)
        yield line[start:end]
        start = end


def _without_trailing_blanks(line: str) -> str:
    return line.rstrip(" \t\r") + ("\r" if line.endswith("\r") else "")


def _apply(conversation: Conversation, budget: Budget) -> Conversation:
    return rewrite_older_results(conversation, budget, clean)


STEP = Step("terminal_noise", "escapes, trailing blanks and runs of blank lines show nothing", _apply)
