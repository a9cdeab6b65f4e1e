"""The records of a structured text: objects in JSON or in a string of JSON, rows of tables, items of YAML."""

import re
from collections import Counter as Occurrences
from collections.abc import Sequence
from itertools import pairwise
from typing import TypeAlias

LEAST_RECORDS, MOST_RECORDS = 3, 5_000
MOST_RECORD_CHARS = 4_000
"""A list of larger parts is divided inside them, if there is a list, else as other text."""
MOST_BESIDE_CHARS = 1_600
"""The most text before and after the records, which always stays beside one: else it is a text with a small list in it."""
LEAST_SAME = 0.9
"""The share of a table's rows with as many delimiters as its header: a field may contain one."""
DELIMITERS = ("\t", "|", ";", ",")
MOST_STRUCTURED_CHARS = 1_000_000
MOST_BEGINNING_CHARS = MOST_BESIDE_CHARS + MOST_RECORD_CHARS
"""The first record is in this beginning."""
_TOKEN = re.compile(r'["\[\]{}]')
_OBJECT = re.compile(r'\{(?:\s|\\+[nrt])*(\\*)"')
_RECORD = re.compile(r'(?:\[(?:\s|\\+[nrt])*[\d-]|[\[{](?:\s|\\+[nrt])*(?:\\*"|[\[{\]}]))')
"""The beginning of an object or array, unlike a block of code."""
_ENDS = re.compile(r"[ \t]*,?(?:[ \t]*(?:\r?\n|\\+n))?")
_ITEM = re.compile(r"^( *)- [\w\"'].{0,200}?:(?: |$)", re.MULTILINE)
_SEPARATOR = re.compile(r"[\s|:+-]*--[\s|:+-]*")
SAVED_CHARS = 2_000
"""A tool says at either end of its output where it has saved the whole."""
_SAVING = ("saved", "stored", "written", "available")
_SAVED = re.compile(rf"\b(?:{'|'.join(_SAVING)})\b", re.IGNORECASE)
_WHOLE = re.compile(
    r"\b(?:full|whole|complete|entire|original|remaining)\W+(?:\w+\W+){0,2}"
    r"(?:outputs?|results?|contents?|responses?|text|logs?|lines|data|files?|documents?|transcripts?)\b.*[/\\][\w.-]+",
    re.IGNORECASE,
)


_Records: TypeAlias = list[tuple[int, int]]


def record_spans(text: str) -> list[tuple[int, int]]:
    """Return the spans of the records of a structured text, side by side; none of another text."""
    if len(text) > MOST_STRUCTURED_CHARS:
        return []
    for found in (_objects(text), _rows(text), _items(text)):
        if not LEAST_RECORDS <= len(found) <= MOST_RECORDS or max(found[0][0], len(text) - found[-1][1]) > MOST_BESIDE_CHARS:
            continue
        if all(end - start <= MOST_RECORD_CHARS for start, end in found):
            return found
    return []


def saved_line(text: str) -> tuple[int, int] | None:
    """Return the span of the line that says where a tool has saved its whole output, None without one."""
    for start in (0, max(0, len(text) - SAVED_CHARS)):
        end_of_text = text[start : start + SAVED_CHARS].lower()
        if not any(word in end_of_text for word in _SAVING):  # this is ten times faster than the pattern
            continue
        for found in _SAVED.finditer(text, start, start + SAVED_CHARS):
            begin = max(text.rfind("\n", start, found.start()) + 1, found.start() - 200)
            end = text.find("\n", found.end(), found.end() + 200)
            end = min(len(text), found.end() + 200) if end < 0 else end
            if _WHOLE.search(text, begin, end):
                return begin, end
    return None


def _rows(text: str) -> list[tuple[int, int]]:
    """Return the rows below the header of a table."""
    lines = text.splitlines(keepends=True)
    header = next((line for line in lines if line.strip()), "")
    for delimiter in filter(header.__contains__, DELIMITERS):
        counts = [line.count(delimiter) for line in lines if line.strip()]
        if len(counts) > LEAST_RECORDS and counts.count(counts[0]) >= LEAST_SAME * len(counts):
            if delimiter == "," and counts[0] == 1:
                return []  # prose and code have a comma in many lines
            ends = [0]
            for line in lines:
                ends.append(ends[-1] + len(line))
            first = 2 if _SEPARATOR.fullmatch(lines[1]) else 1
            return list(pairwise(ends[first:]))
    return []


def _items(text: str) -> list[tuple[int, int]]:
    """Return the outermost items of a list in YAML that have keys."""
    if _ITEM.search(text, 0, MOST_BEGINNING_CHARS) is None:
        return []
    found = [(len(item[1]), item.start()) for item in _ITEM.finditer(text)]
    least = min(found, default=(0, 0))[0]
    return list(pairwise([*(start for indent, start in found if indent == least), len(text)]))


def _objects(text: str) -> list[tuple[int, int]]:
    """Return the records of the list of objects that covers most of the text; a string that contains JSON is read, too."""
    if _RECORD.search(text, 0, MOST_BEGINNING_CHARS) is None:
        return []
    # In a string that contains JSON each quote has as many backslashes; those with fewer enclose the string.
    levels = Occurrences(found[1] for found in _OBJECT.finditer(text, 0, MOST_BEGINNING_CHARS))
    slashes = max(levels, key=levels.__getitem__, default="")
    if len(text) > MOST_BEGINNING_CHARS + MOST_BESIDE_CHARS:
        begun = _lists(text[:MOST_BEGINNING_CHARS], slashes)[1]
        if not any(records and records[0][0] <= MOST_BESIDE_CHARS for records in begun):
            return []
    lists = [records for found in _lists(text, slashes) for records in found]
    fitting = [c for c in lists if len(c) >= LEAST_RECORDS and max(b - a for a, b in c) <= MOST_RECORD_CHARS]
    best: Sequence[tuple[int, int]] = max(fitting, key=lambda c: sum(b - a for a, b in c), default=())
    ends = [found.end() if (found := _ENDS.match(text, end)) else end for _, end in best]
    return list(zip([_first(text, best), *ends], ends, strict=False)) if best else []


def _lists(text: str, slashes: str) -> tuple[list[_Records], list[_Records]]:
    """Return the records of each closed and each open container, if `slashes` are before each quote."""
    closed: list[_Records] = []
    containers: list[tuple[int, _Records]] = [(0, [])]
    is_quoted = False
    for token in _TOKEN.finditer(text):
        mark = token[0]
        if mark == '"':
            before = text[max(0, token.start() - len(slashes) - 1) : token.start()]
            is_quoted ^= len(before) - len(before.rstrip("\\")) == len(slashes)
        elif is_quoted:
            continue
        elif mark in "[{":
            containers.append((token.start(), []))
        elif len(containers) > 1:
            start, records = containers.pop()
            closed.append(records)
            if _RECORD.match(text, start):
                containers[-1][1].append((start, token.end()))
    return closed, [records for _, records in containers]


def _first(text: str, records: Sequence[tuple[int, int]]) -> int:
    """Return where the first record begins: at its key, if it has one."""
    start = records[0][0]
    line = max(text.rfind(mark, 0, start) for mark in "{[,\n")
    key = text[line + 1 : start]
    return line + 1 if key.rstrip().endswith(":") else start
