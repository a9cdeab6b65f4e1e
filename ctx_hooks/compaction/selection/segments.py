"""A text in segments, for deciding which of them to keep: its lines and the identifiers each holds."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import chain
from sys import getsizeof
from typing import TYPE_CHECKING, TypeAlias

from ctx_hooks.runtime.content_cache import ContentCache, digest
from ctx_hooks.texts import pieces
from ctx_hooks.texts.pieces import lines

if TYPE_CHECKING:
    from collections.abc import Iterable

LONGEST_SEGMENT_CHARS = 1_000
"""A longer line (minified code, one-line JSON) is divided into segments of at most half this length."""
MOST_SEGMENTS = 20_000
"""Of a text with more lines, short neighbours are one segment: a segment takes 5 µs, so that a text of 1 MB takes 0.1 s."""
BREAKS = " \t,;}]"
"""Behind these a long line is best cut."""
SEGMENT_BYTES = 130
"""What the span of a segment takes in memory, or its entry in the cover beside the names (measured)."""

_IDENTIFIER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_./\-@#:]{2,}[A-Za-z0-9_]")
_TELLING = re.compile(r"[0-9_/.@#]|[a-z][A-Z]")


@dataclass(frozen=True, slots=True)
class Segments:
    """A text in the pieces that are kept or cut whole: lines, pieces of very long lines, groups of many short ones.

    `spans` are offsets into the text, side by side and covering it. `cover` lists the segments that bring identifiers the
    text has not shown before, densest first, each with those: together they hold every identifier of the text.
    """

    spans: tuple[tuple[int, int], ...]
    cover: tuple[tuple[int, tuple[str, ...]], ...]
    identifiers: tuple[str, ...]


_Analysis: TypeAlias = tuple[tuple[tuple[int, int], ...], tuple[tuple[int, tuple[str, ...]], ...], tuple[str, ...]]

_analyses: ContentCache[_Analysis] = ContentCache(share=0.3)
_names: ContentCache[tuple[str, ...]] = ContentCache(share=0.1)


def identifiers(text: str) -> tuple[str, ...]:
    """Return the paths, names, ids and numbers in `text`: what a later step could refer to by name."""
    return _names.get(digest(text), lambda: tuple(_names_in(text)), _names_bytes)


def segments(text: str) -> Segments:
    """Return the segments of `text`; remembered by content."""
    return Segments(*_analyses.get(digest(text), lambda: _analyse(text), _analysis_bytes))


def _names_bytes(names: tuple[str, ...]) -> int:
    return getsizeof(names) + sum(map(getsizeof, names))


def _analysis_bytes(analysis: _Analysis) -> int:
    spans, cover, names = analysis
    # Each name of the cover is one of `names`, and stands there once.
    return SEGMENT_BYTES * (len(spans) + len(cover)) + _names_bytes(names) + getsizeof(names)


def _names_in(text: str) -> set[str]:
    return _telling(chain.from_iterable(_IDENTIFIER.findall(text, start, end) for start, end in pieces.spans(text)))


def _telling(words: Iterable[str]) -> set[str]:
    """Return the words that name something: a figure, a path, a dotted, underscored or camel-cased name."""
    search = _TELLING.search
    return {w for w in set(words) if search(w)}


def _analyse(text: str) -> _Analysis:
    spans = segment_spans(text)
    find = _IDENTIFIER.findall
    words_of_spans = [find(text, start, end) for start, end in spans]
    everything = _telling(chain.from_iterable(words_of_spans))
    dense = []
    for n, (words, (start, end)) in enumerate(zip(words_of_spans, spans, strict=True)):
        found = everything.intersection(words)
        if found:
            dense.append((-len(found) / (end - start + 1), n, found))
    dense.sort()
    seen: set[str] = set()
    cover = []
    for _, n, found in dense:
        new = found - seen
        if new:
            seen |= new
            cover.append((n, tuple(new)))
    return tuple(spans), tuple(cover), tuple(everything)


def segment_spans(text: str) -> list[tuple[int, int]]:
    """Return where the segments of `text` stand, without looking at what they hold."""
    least_chars = len(text) // MOST_SEGMENTS
    found = []
    start = end = 0
    for line in lines(text):
        end += len(line)
        if end - start < least_chars:
            continue
        while end - start > LONGEST_SEGMENT_CHARS:
            stop = _last_break(text, start, start + LONGEST_SEGMENT_CHARS // 2)
            found.append((start, stop))
            start = stop
        found.append((start, end))
        start = end
    if start < end:
        found.append((start, end))
    return found


def _last_break(text: str, start: int, end: int) -> int:
    """Return where the piece from `start` ends: behind the last separator of its second half, if there is one."""
    last = max(text.rfind(character, (start + end) // 2, end) for character in BREAKS)
    return last + 1 if last >= 0 else end
