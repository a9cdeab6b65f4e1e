"""Indented JSON in older results, written compactly."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from ctx_hooks.steps import Step
from ctx_hooks.steps.results import rewrite_older_results

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ctx_hooks.budget import Budget
    from ctx_hooks.conversation import Conversation

LARGEST_CHARS = 2_000_000
_PIECE = re.compile(r'"(?:[^"\\]|\\.)*"|[\[\]{},]|\s+|[^\s"\[\]{},]+')


def compact(text: str) -> str:
    """Return JSON `text` without layout, one top-level member or item a line so that lines stay units; else `text`.

    Only blanks between values go: figures, escapes and doubled keys stay to the letter.
    """
    if text.lstrip()[:1] not in ("{", "[") or "\n" not in text or len(text) > LARGEST_CHARS:
        return text
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return text
    return "".join(_without_layout(text))


def _without_layout(text: str) -> Iterator[str]:
    depth = 0
    for piece in _PIECE.findall(text):
        if piece.isspace():
            continue
        depth += (piece in "[{") - (piece in "]}")
        yield ",\n" if piece == "," and depth == 1 else piece


def _apply(conversation: Conversation, budget: Budget) -> Conversation:
    del budget  # lossless: done whenever anything is done
    return rewrite_older_results(conversation, compact)


STEP = Step("json_layout", "the layout of JSON carries no meaning", _apply)
