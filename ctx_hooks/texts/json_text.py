"""JSON as the text it is: its strings and what stands between them, to the letter."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

if TYPE_CHECKING:
    from collections.abc import Iterator

LARGEST_CHARS = 1_000_000
MOST_CONTAINERS = 25_000
"""What is larger is not parsed: up to here orjson, which holds the interpreter lock, takes 4 ms, of short strings 11 ms.

A megabyte of brackets takes it 210 ms.
"""


def parsed(text: str) -> Any:
    """Return the value of JSON `text`, None when it is no JSON or too large to be parsed at once."""
    if len(text) > LARGEST_CHARS or text.count("[") + text.count("{") > MOST_CONTAINERS:
        return None
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError:
        return None


def strings(text: str) -> Iterator[tuple[str, str]]:
    """Yield each string of JSON `text`, with its quotes, behind what stands before it; at last the rest and ""."""
    start = 0
    while (opening := text.find('"', start)) >= 0:
        end = _end_of_string(text, opening + 1)
        yield text[start:opening], text[opening:end]
        start = end
    yield text[start:], ""


def _end_of_string(text: str, start: int) -> int:
    """Return the offset behind the next quote that no odd number of backslashes escapes."""
    while (quote := text.find('"', start)) >= 0:
        before = text[start:quote]
        start = quote + 1
        if (len(before) - len(before.rstrip("\\"))) % 2 == 0:
            return start
    return len(text)
