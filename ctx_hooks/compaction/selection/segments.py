"""The segments of a text, the units of selection: spans that a reader can follow."""

from __future__ import annotations

import re
from array import array
from collections.abc import Callable, Hashable, Iterable
from dataclasses import dataclass
from itertools import pairwise
from sys import getsizeof
from typing import TypeAlias

from ctx_hooks.compaction.selection.records import record_spans
from ctx_hooks.runtime.content_cache import ContentCache, digest
from ctx_hooks.texts.pieces import lines

Spans: TypeAlias = tuple[tuple[int, int], ...]
Position: TypeAlias = tuple[int, int]
"""Index of a message, and of a part in it."""
LONGEST_SEGMENT_CHARS = 1_600
"""A longer line (minified code, one-line JSON) is divided into segments of at most half this length."""
LEAST_SPAN_LINES, MOST_SPAN_LINES = 3, 16
"""A span begins after a blank line, at the left edge. The span before it has at least the first number of lines, and at most
the second: an edit quotes up to 60 lines, and with 6 half of these quotations were broken."""
MOST_SPAN_CHARS = 800
"""Spans of long lines have fewer lines."""
MOST_SEGMENTS = 20_000
"""In a text with more lines, short neighbours are one segment: a segment takes 5 µs, so a text of 1 MB takes 0.1 s."""
BREAKS = " \t,;}]"
"""A long line is best cut after one of these."""
_NUMBERED = re.compile(r"\s{0,8}\d{1,6}(?:→|:|\t|\||\. ) ?")
"""A line number that a tool has added."""


@dataclass(frozen=True, slots=True)
class Segments:
    """The pieces of a text, each kept or removed whole: spans of lines, pieces of very long lines, groups of short ones."""

    bounds: array[int]
    """The start of each segment, and the end of the last one: they cover the text."""
    records: range = range(0)
    """The numbers of the segments that are records of a structured text; the others are before and after them."""

    @property
    def spans(self) -> list[tuple[int, int]]:
        """The beginning and end of each segment."""
        return list(pairwise(self.bounds))

    def __len__(self) -> int:
        return len(self.bounds) - 1


_segments: ContentCache[Segments] = ContentCache()


def segments(text: str) -> Segments:
    """Return the segments of `text`; remembered by content."""

    def analyse() -> Segments:
        if not (found := record_spans(text)):
            return segments_at(end for _, end in segment_spans(text))
        head, tail = found[0][0], found[-1][1]
        ends = (*[head] * (head > 0), *(end for _, end in found), *[len(text)] * (tail < len(text)))
        return Segments(segments_at(ends).bounds, range(head > 0, (head > 0) + len(found)))

    return remembered(digest(text), analyse)


def segments_at(ends: Iterable[int]) -> Segments:
    """Return segments with these ends, in order."""
    return Segments(array("l", (0, *ends)))


def remembered(key: Hashable, analyse: Callable[[], Segments]) -> Segments:
    """Return the result of `analyse`, remembered by a key of the text and all else that it depends on."""
    return _segments.get(key, analyse, lambda found: getsizeof(found.bounds))


def segment_spans(text: str) -> list[tuple[int, int]]:
    """Return the spans of the segments of `text`, without gaps."""
    least_chars = len(text) // MOST_SEGMENTS
    found = []
    start = end = count = 0
    after_blank = False
    for line in lines(text):
        bare = line[number.end() :] if (number := _NUMBERED.match(line)) else line
        is_full = count >= MOST_SPAN_LINES or end - start + len(line) > MOST_SPAN_CHARS
        begins = after_blank and not bare[:1].isspace()
        if count and end - start >= least_chars and (is_full or (begins and count >= LEAST_SPAN_LINES)):
            found.append((start, end))
            start, count = end, 0
        end += len(line)
        count += 1
        after_blank = not bare.strip()
        while end - start > MOST_SPAN_CHARS:
            stop = _last_break(text, start, start + LONGEST_SEGMENT_CHARS // 2)
            found.append((start, stop))
            start = stop
    if start < end:
        found.append((start, end))
    return found


def _last_break(text: str, start: int, end: int) -> int:
    """Return the end of the piece from `start`: after the last separator of its second half, if there is one."""
    last = max(text.rfind(character, (start + end) // 2, end) for character in BREAKS)
    return last + 1 if last >= 0 else end


def chars_of(spans: Spans) -> int:
    """Return the total length of some spans."""
    return sum(b - a for a, b in spans)
