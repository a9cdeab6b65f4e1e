"""JSON as text: its value if it is small enough to parse, and its strings with the exact text between them."""

import re
from collections.abc import Iterator
from typing import Any

import orjson

LARGEST_CHARS = 1_000_000
MOST_DEPTH = 100
"""Deeper JSON is text: orjson writes only 254 levels of the 1,024 that it reads."""
MOST_CONTAINERS = 25_000
"""Larger JSON is not parsed: within these bounds orjson holds the interpreter lock for 11 ms at most."""
_COLON = re.compile(r"\s*:")


def parsed(text: str) -> Any:
    """Return the value of JSON `text`, None if it is no JSON, nested too deeply, or too large to parse at once."""
    if len(text) > LARGEST_CHARS or (containers := text.count("[") + text.count("{")) > MOST_CONTAINERS:
        return None
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError:
        return None
    return None if containers > MOST_DEPTH and _is_deep(value) else value


def _is_deep(value: Any, levels: int = MOST_DEPTH) -> bool:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return not levels or any(_is_deep(v, levels - 1) for v in inner if isinstance(v, (dict, list)))


def strings(text: str) -> Iterator[tuple[str, str, bool]]:
    """Yield the text before each string, the string with its quotes, and whether it is a key; at last the rest and ""."""
    start = 0
    while (opening := text.find('"', start)) >= 0:
        end = _end_of_string(text, opening + 1)
        yield text[start:opening], text[opening:end], _COLON.match(text, end) is not None
        start = end
    yield text[start:], "", False


def _end_of_string(text: str, start: int) -> int:
    """Return the offset after the next quote that no odd number of backslashes escapes."""
    while (quote := text.find('"', start)) >= 0:
        before = text[start:quote]
        start = quote + 1
        if (len(before) - len(before.rstrip("\\"))) % 2 == 0:
            return start
    return len(text)
