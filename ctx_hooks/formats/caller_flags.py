"""The flags by which a caller keeps a message whole, as `{"context": {"pin": true}}`; no provider accepts them."""

from collections.abc import Mapping
from typing import Any

from ctx_hooks.formats.fields import MAPPINGS

FIELD = "context"
PIN, SKIP = "pin", "truncation_skip"
"""Two names for one thing; MyCodeAgent sets the second one on tool results."""
FLAGS = frozenset({PIN, SKIP})
BLOCKS = ("content", "parts")
"""The fields of a message that contain its blocks."""
MOST_AT_ONCE = 2_000
"""This many messages and blocks are checked within some 2 ms."""


def are_many(items: Any) -> bool:
    """Whether there are too many messages and blocks to check on the event loop."""
    listed = items if isinstance(items, (list, tuple)) else ()
    blocks = (item.get(name) for item in listed[:MOST_AT_ONCE] if isinstance(item, MAPPINGS) for name in BLOCKS)
    return len(listed) > MOST_AT_ONCE or sum(len(found) for found in blocks if isinstance(found, list)) > MOST_AT_ONCE


def is_pinned(message: Any) -> bool:
    """Whether the caller keeps a message whole, by a flag of the message or of one of its blocks."""
    return any(value[FIELD].get(name) is True for value in _flagged(message) for name in FLAGS)


def without_flags(items: Any) -> list[Any] | None:
    """Return messages without their own flags and those on their blocks; None if there are none.

    Other fields of `context` stay: Azure's search uses it too.
    """
    if not isinstance(items, (list, tuple)) or not any(map(_flagged, items)):
        return None
    return [_without(item) if _flagged(item) else item for item in items]


def _flagged(item: Any) -> list[Mapping[str, Any]]:
    """Return the message and those of its blocks that have a flag; every message of every request passes here."""
    if not isinstance(item, MAPPINGS):
        return []
    found = [item] if FIELD in item and _has_flag(item) else []
    for blocks in map(item.get, BLOCKS):
        if isinstance(blocks, (list, tuple)):
            found += [block for block in blocks if isinstance(block, MAPPINGS) and FIELD in block and _has_flag(block)]
    return found


def _has_flag(value: Mapping[str, Any]) -> bool:
    context = value.get(FIELD)
    return isinstance(context, Mapping) and not FLAGS.isdisjoint(context)


def _without(value: Any, *, blocks: bool = True) -> Any:
    if not isinstance(value, MAPPINGS):
        return value
    bare = dict(value)
    if _has_flag(value):
        bare[FIELD] = {name: inner for name, inner in value[FIELD].items() if name not in FLAGS}
        if not bare[FIELD]:
            del bare[FIELD]
    for name in BLOCKS if blocks else ():
        if isinstance(value.get(name), (list, tuple)):
            bare[name] = [_without(block, blocks=False) for block in value[name]]
    return bare
