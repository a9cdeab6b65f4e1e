"""Terminal escapes, overwritten progress lines and trailing blanks: what a screen would not show."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from ctx_hooks.steps import Step
from ctx_hooks.steps.results import rewrite_older_results

if TYPE_CHECKING:
    from ctx_hooks.budget import Budget
    from ctx_hooks.conversation import Conversation

# ECMA-48: control sequences (CSI), operating system commands up to BEL or ST, and two-character escapes.
_ESCAPE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
_OVERWRITTEN = re.compile(r"[^\r\n]*\r(?!\n)")
_BLANK_LINES = re.compile(r"\n{4,}")


def clean(text: str) -> str:
    """Return what a terminal would show of `text`."""
    if "\x1b" in text:
        text = _ESCAPE.sub("", text)
    if "\r" in text:
        text = _OVERWRITTEN.sub("", text)
    text = "\n".join(map(_without_trailing_blanks, text.split("\n")))
    return _BLANK_LINES.sub("\n\n", text) if "\n\n\n\n" in text else text


def _without_trailing_blanks(line: str) -> str:
    return line[:-1].rstrip(" \t") + "\r" if line.endswith("\r") else line.rstrip(" \t")


def _apply(conversation: Conversation, budget: Budget) -> Conversation:
    del budget  # lossless: done whenever anything is done
    return rewrite_older_results(conversation, clean)


STEP = Step("terminal_noise", "escapes, redrawn lines and trailing blanks show nothing", _apply)
