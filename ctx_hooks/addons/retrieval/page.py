"""What a call of the retrieval tool returns of a text: a page of it, or the lines that match a query best."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ctx_hooks.addons.retrieval.tool import MOST_PAGE_CHARS, PAGE_CHARS
from ctx_hooks.compaction.selection import bm25
from ctx_hooks.conversation.cut_texts import is_handle
from ctx_hooks.texts.json_text import parsed
from ctx_hooks.texts.pieces import utf8_bytes

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

NOT_AVAILABLE = "not available"
"""The answer to a handle that is unknown, expired or somebody else's: the same, so that it tells nothing."""
NO_ROOM = "the context window has no room for this text now: ask for fewer texts at once"
LEAST_PAGE_BYTES = 200
"""Less says too little to be worth its frame."""
LONGEST_LINE_CHARS = 400
"""A longer line is matched in pieces: of a text that is one line a query would else return all or nothing."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What a call asks for.

    Attributes:
        handle: names the text; "" where the call names none that could be one.
        query: what is looked for, "" for a page.
        offset_chars: where the page begins.
        limit_chars: the most that is returned of the text.
    """

    handle: str
    query: str = ""
    offset_chars: int = 0
    limit_chars: int = PAGE_CHARS


def asked_of(arguments: str) -> Asked:
    """Return what the arguments of a call, as JSON, ask for; what they say wrongly counts as not said.

    >>> asked_of('{"handle": "abcdefgh2345", "limit": 10}')
    Asked(handle='abcdefgh2345', query='', offset_chars=0, limit_chars=10)
    >>> asked_of('{"handle": "../etc').handle
    ''
    """
    given = parsed(arguments)
    fields: Mapping[str, Any] = given if isinstance(given, dict) else {}
    handle, query = fields.get("handle"), fields.get("query")
    handle = handle.strip().lower() if isinstance(handle, str) else ""
    return Asked(
        handle if is_handle(handle) else "",
        query.strip() if isinstance(query, str) else "",
        _number(fields.get("offset"), 0),
        min(MOST_PAGE_CHARS, _number(fields.get("limit"), PAGE_CHARS) or PAGE_CHARS),
    )


def page_of(text: str, asked: Asked, most_bytes: float = math.inf) -> str:
    """Return what a call asks for of a text, `most_bytes` of it at most, under a line that says which part of it this is.

    >>> print(page_of("one two three", Asked("", offset_chars=4, limit_chars=3)))
    [characters 4 to 7 of 13]
    two
    >>> print(page_of("the port is 8080", Asked("", query="port")))
    [the lines that match best, of 16 characters; with their offsets]
    0: the port is 8080
    """
    if most_bytes < LEAST_PAGE_BYTES:
        return NO_ROOM
    bytes_per_char = utf8_bytes(text) / max(1, len(text))
    limit_chars = int(min(asked.limit_chars, most_bytes / max(1, bytes_per_char)))
    less = "; the context window has no room for more at once" * (limit_chars < min(asked.limit_chars, len(text)))
    if asked.query:
        lines = list(_best_lines(text, asked.query, limit_chars))
        heading = "the lines that match best" if lines else "no line matches"
        return "\n".join((f"[{heading}, of {len(text)} characters; with their offsets{less}]", *lines))
    start = min(asked.offset_chars, len(text))
    end = min(len(text), start + limit_chars)
    return f"[characters {start} to {end} of {len(text)}{less}]\n{text[start:end]}"


def _best_lines(text: str, query: str, limit_chars: int) -> Iterator[str]:
    spans = list(_spans(text))
    lines = [text[start:end].strip() for start, end in spans]
    scores = bm25.rank(query, lines)
    for n in sorted(range(len(lines)), key=lambda n: -scores[n]):
        line = f"{spans[n][0]}: {lines[n]}"
        limit_chars -= len(line) + 1
        if scores[n] <= 0 or limit_chars < 0:
            return
        yield line


def _spans(text: str) -> Iterator[tuple[int, int]]:
    """Yield where each line of a text begins and ends, a long one in pieces."""
    start = 0
    for line in text.splitlines(keepends=True):
        end = start + len(line)
        for piece in range(start, end, LONGEST_LINE_CHARS):
            yield piece, min(end, piece + LONGEST_LINE_CHARS)
        start = end


def _number(value: Any, otherwise: int) -> int:
    """Return a number that a model gave, some as texts and some with a fraction; `otherwise` for what is none."""
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return otherwise
    return int(number) if math.isfinite(number) and number >= 0 else otherwise
