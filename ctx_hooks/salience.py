"""What a text is made of, for deciding which of its lines to keep: its lines and the identifiers each holds."""

from __future__ import annotations

import re
from dataclasses import dataclass

from ctx_hooks.content_cache import ContentCache, digest

LONGEST_UNIT_CHARS = 1_000
"""A longer line (minified code, one-line JSON) is looked at in pieces of at most half this length."""
CACHED_CHARS = 64_000_000
"""Characters of text whose analysis is remembered; an analysis takes two to three times the text's memory."""

_IDENTIFIER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./\-@#:]{2,}[A-Za-z0-9_]")
_TELLING = re.compile(r"[0-9_/.@#]|[a-z][A-Z]")
_PIECE_END = re.compile(r"[\s,;}\]]")


@dataclass(frozen=True, slots=True)
class Units:
    """A text in the pieces that are kept or cut whole: lines with their break, and pieces of very long lines.

    `spans` are offsets into the text, side by side and covering it. `cover` lists the units that bring identifiers the
    text has not shown before, densest first, each with those: together they hold every identifier of the text.
    """

    spans: tuple[tuple[int, int], ...]
    cover: tuple[tuple[int, frozenset[str]], ...]
    identifiers: frozenset[str]


_analyses: ContentCache[Units] = ContentCache(CACHED_CHARS)
_names: ContentCache[frozenset[str]] = ContentCache(CACHED_CHARS)


def identifiers(text: str) -> frozenset[str]:
    """Return the paths, names, ids and numbers in `text`: what a later step could refer to by name."""
    return _names.get(digest(text), lambda: _telling(_IDENTIFIER.findall(text)), weight=len(text) + 1)


def units(text: str) -> Units:
    """Return the units of `text`; remembered by content."""
    return _analyses.get(digest(text), lambda: _analyse(text), weight=len(text) + 1)


def _telling(words: list[str]) -> frozenset[str]:
    """Return the words that name something: a figure, a path, a dotted, underscored or camel-cased name."""
    search = _TELLING.search
    return frozenset(w for w in set(words) if search(w))


def _analyse(text: str) -> Units:
    spans = _spans(text)
    everything = _telling(_IDENTIFIER.findall(text))
    find = _IDENTIFIER.findall
    dense = []
    for n, (start, end) in enumerate(spans):
        found = everything.intersection(find(text, start, end))
        if found:
            dense.append((-len(found) / (end - start + 1), n, found))
    dense.sort()
    seen: set[str] = set()
    cover = []
    for _, n, found in dense:
        new = found - seen
        if new:
            seen |= new
            cover.append((n, new))
    return Units(tuple(spans), tuple(cover), everything)


def _spans(text: str) -> list[tuple[int, int]]:
    spans = []
    start = 0
    for line in text.splitlines(keepends=True):
        end = start + len(line)
        while end - start > LONGEST_UNIT_CHARS:
            stop = _last_break(text, start, start + LONGEST_UNIT_CHARS // 2)
            spans.append((start, stop))
            start = stop
        spans.append((start, end))
        start = end
    return spans


def _last_break(text: str, start: int, end: int) -> int:
    """Return where the piece from `start` ends: behind the last blank or separator before `end`, if there is one."""
    for i in range(end, (start + end) // 2, -1):
        if _PIECE_END.match(text[i - 1]):
            return i
    return end
