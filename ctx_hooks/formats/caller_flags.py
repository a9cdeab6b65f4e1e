"""The flags by which a caller keeps a message whole, as `{"context": {"pin": true}}`.

No provider knows them, and most refuse a message with a field that they do not know: they are read here and not sent on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ctx_hooks.formats.fields import MAPPINGS

FIELD = "context"
PIN = "pin"
SKIP = "truncation_skip"
"""The same, unless the policy ignores it; MyCodeAgent sets it on tool results."""
FLAGS = frozenset({PIN, SKIP})
BLOCKS = ("content", "parts")
"""The fields of a message that hold its blocks."""


MOST_AT_ONCE = 2_000
"""Messages and blocks that are looked at within some 2 ms."""


def are_many(items: Any) -> bool:
    """Whether messages and their blocks are too many to be looked at on the event loop."""
    if not isinstance(items, (list, tuple)) or len(items) > MOST_AT_ONCE:
        return isinstance(items, (list, tuple))
    found = (item.get(name) for item in items if isinstance(item, MAPPINGS) for name in BLOCKS)
    return sum(len(blocks) for blocks in found if isinstance(blocks, list)) > MOST_AT_ONCE


def flag(value: Any, name: str) -> bool:
    """Whether the caller set a flag on a message or block."""
    context = value.get(FIELD) if isinstance(value, MAPPINGS) else None
    return context is not None and isinstance(context, Mapping) and context.get(name) is True


def is_pinned(message: Any, *, honors_skip: bool = True) -> bool:
    """Whether the caller keeps a message whole, by a flag of the message or of one of its blocks."""
    if not _has_flags(message):
        return False
    names = (PIN, SKIP) if honors_skip else (PIN,)
    listed = [message.get(name) for name in BLOCKS]
    blocks = [block for value in listed if isinstance(value, (list, tuple)) for block in value]
    return any(flag(value, name) for value in (message, *blocks) for name in names)


def without_flags(items: Any) -> list[Any] | None:
    """Return messages without the flags of theirs and of their blocks, None where there are none.

    Other fields of `context`, which Azure's search has as well, stay.
    """
    if not isinstance(items, (list, tuple)) or not any(map(_has_flags, items)):
        return None
    return [_without(item) for item in items]


def _has_flags(item: Any) -> bool:
    """Whether the message or one of its blocks has flags; every message of every request passes here."""
    if not isinstance(item, MAPPINGS):
        return False
    if FIELD in item and _is_flagged(item):
        return True
    for name in BLOCKS:
        blocks = item.get(name)
        if isinstance(blocks, (list, tuple)):
            for block in blocks:
                if isinstance(block, MAPPINGS) and FIELD in block and _is_flagged(block):
                    return True
    return False


def _is_flagged(value: Mapping[str, Any]) -> bool:
    context = value.get(FIELD)
    return isinstance(context, Mapping) and not FLAGS.isdisjoint(context)


def _without(item: Any) -> Any:
    if not _has_flags(item):
        return item
    bare = _bare(item)
    return {
        name: [_bare(v) for v in value] if name in BLOCKS and isinstance(value, (list, tuple)) else value
        for name, value in bare.items()
    }


def _bare(value: Any) -> Any:
    if not isinstance(value, MAPPINGS) or not _is_flagged(value):
        return value
    rest = {name: inner for name, inner in value[FIELD].items() if name not in FLAGS}
    others = {name: inner for name, inner in value.items() if name != FIELD}
    return {**others, FIELD: rest} if rest else others
