"""The value of JSON that is small enough to parse."""

from typing import Any

import orjson

LARGEST_CHARS = 1_000_000
MOST_DEPTH = 100
"""Deeper JSON is text: orjson writes only 254 levels of the 1,024 that it reads."""
MOST_CONTAINERS = 25_000
"""Larger JSON is not parsed: within these bounds orjson holds the interpreter lock for 11 ms at most."""


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
