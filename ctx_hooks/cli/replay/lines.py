"""The JSON objects of a file, one by one: JSON lines or a JSON array, which their first characters show."""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterator
from typing import Any, BinaryIO, NamedTuple

import orjson

from ctx_hooks.cli.replay.recorded import Row

MOST_ROW_BYTES = 64_000_000
"""Of a line, or of an object of an array: twice the largest request that the plugin reads. It bounds the memory."""
CHUNK_CHARS = 1_000_000
"""Read at once of an array, whose objects may stand on one line."""
_BEGIN = re.compile(r"[^\s,]")
"""Of an object of an array, or the end of the array."""
_BOM = b"\xef\xbb\xbf"


class Broken(NamedTuple):
    """A place in a file that could not be read, and why."""

    line: int
    reason: str


def rows_of(file: BinaryIO) -> Iterator[Row | Broken]:
    """Yield each object of a file, and each place where none could be read; raises OSError if the file cannot be read."""
    first = file.readline(MOST_ROW_BYTES).removeprefix(_BOM)
    file.seek(0)
    begin = first.strip()
    if begin == b"{" or begin.startswith(b"["):
        yield from _of_document(file)
    else:
        yield from _of_lines(file)


def _of_lines(file: BinaryIO) -> Iterator[Row | Broken]:
    for number, line in _bounded(file):
        if line is None:
            yield Broken(number, f"longer than {MOST_ROW_BYTES:,} bytes")
        elif line.strip():
            yield _row(number, line.removeprefix(_BOM))


def _bounded(file: BinaryIO) -> Iterator[tuple[int, bytes | None]]:
    """Yield the number of each line and the line; None for one that is too long, which is passed over."""
    number = 0
    while line := file.readline(MOST_ROW_BYTES):
        number += 1
        if len(line) < MOST_ROW_BYTES or line.endswith(b"\n"):
            yield number, line
            continue
        while line and not line.endswith(b"\n"):
            line = file.readline(MOST_ROW_BYTES)
        yield number, None


def _row(number: int, line: bytes) -> Row | Broken:
    try:
        return _of_value(number, loads(line))
    except (ValueError, RecursionError):
        return Broken(number, "no JSON")


def loads(text: str | bytes) -> Any:
    """Return the value of a JSON text; raises ValueError, or RecursionError where it is nested too deeply."""
    try:
        return orjson.loads(text)
    except ValueError:
        return json.loads(text)  # takes lone surrogates and huge integers, which orjson refuses


def json_of(value: Any) -> Any:
    """Return a value that may be given as its JSON text, as columns of a database are; a text that is no JSON unchanged."""
    if not isinstance(value, str) or value[:1] not in ("{", "["):
        return value
    try:
        return loads(value)
    except (ValueError, RecursionError):
        return value


def _of_value(number: int, value: Any) -> Row | Broken:
    return Row(number, value) if isinstance(value, dict) else Broken(number, "no JSON object")


def _of_document(file: BinaryIO) -> Iterator[Row | Broken]:
    """Yield the objects of an array, or of a document written over several lines; after broken JSON no more follow."""
    decode = json.JSONDecoder().raw_decode
    characters = codecs.getincrementaldecoder("utf-8-sig")("replace")
    text, line = "", 1
    size, is_begin = CHUNK_CHARS, True
    while True:
        more = file.read(size)
        text += characters.decode(more, final=not more)
        if is_begin:
            text, is_begin = text.lstrip().removeprefix("["), False
        at = 0
        while (begin := _BEGIN.search(text, at)) and begin.group() != "]":
            try:
                value, end = decode(text, begin.start())
            except (ValueError, RecursionError):
                break
            line += text.count("\n", at, end)
            yield _of_value(line, value)
            at = end
        rest = text[at:]
        if not more or len(rest) > MOST_ROW_BYTES:
            left = rest.strip().strip(",]")
            if left:
                yield Broken(line + 1, "no JSON from here on: the rest of the file is left out")
            return
        # What is incomplete is tried again with twice as much, so that the whole stays linear.
        size = max(CHUNK_CHARS, len(rest))
        text = rest
