"""The cut that is left if the last resort fails too: the oldest items go; no code is shared with what may have failed."""

import json
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any

NAME = "last_resort"
"""The name of the step in reports, for either kind of cut."""
BYTES_PER_TOKEN = 2
"""English, code and JSON have three to four UTF-8 bytes a token, hex digits and base64 about two."""
INSTRUCTIONS = ("system", "developer")


def plain_cut(items: Sequence[Any], most_bytes: int) -> list[Any]:
    """Return the instructions at the beginning, and the newest items that have `most_bytes` of JSON with them.

    The rest begins with a user's message that is no result. If the newest of these leaves too much, it stays, and the oldest
    answers after it go with their results; the newest of these answers stays, whatever its size.
    """
    first = next((i for i, item in enumerate(items) if _field(item, "role") not in INSTRUCTIONS), len(items))
    head, sizes = list(items[:first]), [json_bytes(item) for item in items]
    left = most_bytes - sum(sizes[:first])
    tails = [*accumulate(reversed(sizes))][::-1]
    asked = [i for i in range(first, len(items)) if _asks(items[i])]
    for start in (first, *asked):
        if start < len(items) and tails[start] <= left:
            return [*head, *items[start:]]
    newest = asked[-1] if asked else first
    answers = [i for i in range(newest + 1, len(items)) if _is_result(items[i - 1]) and not _is_result(items[i])]
    left -= sum(sizes[newest : newest + 1])
    start = next((i for i in answers if tails[i] <= left), answers[-1] if answers else newest + 1)
    return [*head, *items[newest : newest + 1], *items[start:]]


def json_bytes(value: Any) -> int:
    """Return the bytes of a value's JSON."""
    return len(json.dumps(value, ensure_ascii=False, default=str).encode("utf-8", "replace"))


def _asks(item: Any) -> bool:
    """Whether an item is a user's message, which no earlier call has to precede; Google's default is the user."""
    role = _field(item, "role")
    return (role == "user" or (role is None and bool(_field(item, "parts")))) and not _is_result(item)


def _is_result(item: Any) -> bool:
    """Whether an item is the result of a call, or has one."""
    if _field(item, "role") in ("tool", "function") or str(_field(item, "type")).endswith("_output"):
        return True
    parts = _field(item, "content") or _field(item, "parts")
    parts = parts if isinstance(parts, (list, tuple)) else ()
    return any(_field(p, "type") == "tool_result" or _field(p, "functionResponse") for p in parts)


def _field(item: Any, name: str) -> Any:
    return item.get(name) if isinstance(item, Mapping) else None
