"""Blocks of a pasted text, each kept or removed whole: files, documents, sections, paragraphs."""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from ctx_hooks.compaction.selection.segments import Segments, remembered, segments_at
from ctx_hooks.runtime.content_cache import digest

LEAST_PIECE_CHARS = 500
"""Smaller pieces of a block would cost more placeholders and headings than text."""
LONGEST_OPENING_CHARS = 200
"""The first characters of a line that may open or close a block."""
LONGEST_NAME_CHARS = 120
"""Paths in repositories are shorter; a longer line is no title."""
FILE_TAGS = ("file", "document", "doc", "source_file", "file_content", "file_contents", "attachment", "page", "article")
"""Elements in which people and clients paste files (Anthropic's guide to long prompts: `<document>` with `<source>`)."""
_FILE_OPENING = re.compile(rf"<({'|'.join(FILE_TAGS)})\b", re.IGNORECASE)
_OPENING = re.compile(r"<([A-Za-z][\w:.-]{0,60})(?=[\s>])")
_CLOSING = re.compile(r"</([A-Za-z][\w:.-]{0,60})>")
_NAME = re.compile(
    r"""\b(?:path|name|file|filename|title|source|src)=["']([^"'<>\n]{1,120})["']|<(?:source|path|title|name)>([^<>\n]{1,120})</""",
    re.IGNORECASE,
)
_FILE_HEADING = re.compile(r"(?:-{3,}|={3,}|#{1,6}) (?:file:? )?([\w./\\-]{0,150}\.\w{1,10})(?: [-=#]+|:)?", re.IGNORECASE)
"""`--- src/app.py`, `=== notes.md ===`, `### File: src/app.py`."""
_HEADING_MARKS = ("-", "=", "#")
FENCES = ("```", "~~~")
_PATH = re.compile(r"[\w./\\-]{0,110}\.\w{1,10}\b")
_ITEM = re.compile(r"(?:[-*+•]|\d{1,3}[.)])\s")
NAME_LINES = 3
"""The first lines of a block, which may contain its name."""


class _Line(NamedTuple):
    """A line, or a piece of a very long one, and its beginning without blanks, which may open or close a block."""

    start: int
    end: int
    text: str


def blocks(text: str, most_chars: int) -> tuple[tuple[int, int], ...]:
    """Return the spans of files, fences and elements, else of paragraphs, in pieces of `most_chars`; they cover `text`."""
    most = max(LEAST_PIECE_CHARS, most_chars)
    lines = _lines(text, most)
    starts = sorted({0, *_starts(lines), len(lines)})
    return tuple(span for first, behind in pairwise(starts) for span in _split(lines[first:behind], most))


def block_segments(text: str, most_chars: int, apart: Sequence[tuple[int, int]] = ()) -> Segments:
    """Return the blocks of `text` as segments; the spans `apart` are segments of their own."""

    def analyse() -> Segments:
        return segments_at(sorted({end for _, end in blocks(text, most_chars)}.union(*apart) - {0}))

    return remembered((digest(text), most_chars, tuple(apart)), analyse)


def names_of(text: str, spans: Iterable[tuple[int, int]]) -> tuple[str, ...]:
    """Return the names at the beginning of these blocks, each once."""
    found = (_name(text[a : min(b, a + 4 * LONGEST_NAME_CHARS)]) for a, b in spans)
    return tuple(dict.fromkeys(name for name in found if name))


def _name(beginning: str) -> str:
    lines = [line.strip() for line in beginning.splitlines()[:NAME_LINES]]
    for n, line in enumerate(lines):
        if heading := _FILE_HEADING.fullmatch(line):
            return heading[1]
        if _FILE_OPENING.match(line):
            named = _NAME.search(" ".join(lines[n:]))
            return (named[1] or named[2]) if named else ""
        if line.startswith(FENCES):
            path = _PATH.search(" ".join(lines[: n + 1]))
            return path[0] if path else ""
    return ""


def _lines(text: str, most: int) -> list[_Line]:
    """Return the lines of `text`; lines longer than `most` in pieces."""
    found = []
    start = 0
    for line in text.splitlines(keepends=True):
        end = start + len(line)
        for at in range(0, len(line), most):
            opening = line[at : min(at + LONGEST_OPENING_CHARS, at + most)].strip()
            found.append(_Line(start + at, min(end, start + at + most), opening))
        start = end
    return found


def _starts(lines: Sequence[_Line]) -> Iterator[int]:
    """Yield the numbers of the lines at which a block begins."""
    if headings := _headings(lines):
        yield from headings
        return
    behind = 0
    for first, last, _ in _enclosed(lines):
        yield from _paragraphs(lines, behind, first)
        yield first - 1 if first and _is_title(lines, first - 1) else first
        yield from [last + 1] * (last + 1 < len(lines))
        behind = last + 1
    yield from _paragraphs(lines, behind, len(lines))


def _paragraphs(lines: Sequence[_Line], start: int, end: int) -> Iterator[int]:
    """Yield the numbers of the lines behind a blank one; a heading stays above its text, and items of a list together."""
    above = ""
    for n in range(max(1, start), end):
        above = lines[n - 1].text or above
        is_joined = (
            above.startswith("#") or above.endswith((":", "\uff1a")) or (_ITEM.match(above) and _ITEM.match(lines[n].text))
        )
        if lines[n].text and not lines[n - 1].text and not is_joined:
            yield n


def enclosed(text: str) -> list[tuple[int, int, str]]:
    """Return start (with the title), end and tag of the elements, fenced blocks and files under headings."""
    lines = _lines(text, max(LEAST_PIECE_CHARS, len(text)))
    if headings := _headings(lines):
        starts = [lines[n].start for n in headings]
        return [(a, b, FILE_TAGS[0]) for a, b in pairwise((*starts, len(text)))]
    return [
        (lines[first - (first > 0 and _is_title(lines, first - 1))].start, lines[last].end, tag)
        for first, last, tag in _enclosed(lines)
    ]


def _headings(lines: Sequence[_Line]) -> list[int]:
    """Return the numbers of the lines that are files' headings; a single one may be a comment and divides nothing."""
    found = [n for n, line in enumerate(lines) if line.text[:1] in _HEADING_MARKS and _FILE_HEADING.fullmatch(line.text)]
    return found if len(found) > 1 else []


def _enclosed(lines: Sequence[_Line]) -> Iterator[tuple[int, int, str]]:
    """Yield the first and last line of each opened and closed block, and its tag or fence."""
    closings: dict[str, list[int]] = {}
    for n, line in enumerate(lines):
        for closing in _CLOSING.finditer(line.text) if "</" in line.text else ():
            closings.setdefault(closing[1].lower(), []).append(n)
        if line.text in FENCES:
            closings.setdefault(line.text, []).append(n)
    behind = 0
    for n, line in enumerate(lines):
        opening = _OPENING.match(line.text) if line.text[:1] == "<" else None
        if n < behind or not (opening or line.text.startswith(FENCES)):
            continue
        tag = opening[1].lower() if opening else line.text[:3]
        ends = closings.get(tag, [])
        at = bisect_right(ends, n - 1 if opening else n)  # an element may close on its own line
        if at < len(ends):
            yield n, ends[at], tag
            behind = ends[at] + 1


def _is_title(lines: Sequence[_Line], n: int) -> bool:
    """Whether line `n`, above a block, is its title: a path or a line that ends in a colon."""
    text = lines[n].text
    return len(text) <= LONGEST_NAME_CHARS and (text.endswith(":") or _PATH.fullmatch(text.strip("*`#: ")) is not None)


def _split(lines: Sequence[_Line], most: int) -> Iterator[tuple[int, int]]:
    start, end = lines[0].start, lines[0].start
    for line in lines:
        if line.end - start > most and end > start:
            yield start, end
            start = end
        end = line.end
    yield start, end
