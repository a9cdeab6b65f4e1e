"""Recall: the share of what the next step names that is still there after compression. No model is called.

The next assistant message names paths, identifiers and numbers. It needed those that occur in the context before it. Recall
is the share that is still present; in-line recall the share of which a whole line (its first 300 characters) is; distant
recall counts only names that do not occur in the newest messages that fit the budget.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from contestants import size, text_of

import ctx_hooks

LINE_CHARS = 300
LEAST_CONTEXT_FRACTION = 1.05
"""A context is measured if it is at least this much larger than the budget."""
_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./\-@#:]{3,}[A-Za-z0-9_]")
_TELLING = re.compile(r"[0-9_/.@#]|[a-z][A-Z]")


@dataclass(frozen=True)
class Step:
    """A context and the names that the assistant's next message takes from it; `distant` are those said long ago."""

    context: list[Any]
    needed: frozenset[str]
    distant: frozenset[str]


def names(text: str) -> set[str]:
    """Return the telling names in `text`."""
    return {n for n in _NAME.findall(text) if _TELLING.search(n)}


def steps(messages: Sequence[Any], budget: int, most: int) -> Iterator[Step]:
    """Yield up to `most` evenly spread steps of a session whose context exceeds the budget and whose answer needs it."""
    sizes = [size([m]) for m in messages]
    before = 0
    places = []
    for t, message in enumerate(messages):
        follows = t > 0 and messages[t - 1].get("role") != "assistant"
        if message.get("role") == "assistant" and follows and before > budget * LEAST_CONTEXT_FRACTION:
            places.append(t)
        before += sizes[t]
    for t in places[:: max(1, len(places) // most)][:most]:
        context = list(messages[:t])
        whole = text_of(context)
        needed = frozenset(n for n in names(text_of(messages[t])) if n in whole)
        start, room = t, budget
        while start and room >= sizes[start - 1]:
            start -= 1
            room -= sizes[start]
        near = text_of(context[start:])
        yield Step(context, needed, frozenset(n for n in needed if n not in near))


def share(wanted: frozenset[str], held: str | Sequence[str]) -> float | None:
    """Return the share of names found in a text, or in any of several lines; None when none is wanted."""
    if not wanted:
        return None
    if isinstance(held, str):
        return sum(n in held for n in wanted) / len(wanted)
    return sum(any(n in line for line in held) for n in wanted) / len(wanted)


def kept_lines(before: str, after: str) -> list[str]:
    """Return the lines of `before`, cut to their first 300 characters, that still stand in `after`."""
    lines = {line.strip()[:LINE_CHARS] for line in before.split("\n")} - {""}
    return [line for line in lines if line in after]


def broken_pairs(messages: list[Any], fmt: str) -> bool:
    """Whether a call has lost its result or a result its call."""
    return any(r.rule == "calls_answered" for r in ctx_hooks.repair(messages, format=fmt).repairs)
