"""The flags by which a caller keeps a message whole, as `{"context": {"pin": true}}`.

No provider knows them, and most refuse a message with an unknown field. So the plugin reads them here and never sends them.
"""

from collections.abc import Mapping
from typing import Any

from ctx_hooks.formats.fields import MAPPINGS

FIELD = "context"
PIN = "pin"
SKIP = "truncation_skip"
"""The same; MyCodeAgent sets it on tool results."""
FLAGS = frozenset({PIN, SKIP})
BLOCKS = ("content", "parts")
"""The fields of a message that contain its blocks."""


MOST_AT_ONCE = 2_000
"""This many messages and blocks are checked within some 2 ms."""


def are_many(items: Any) -> bool:
    """Whether there are too many messages and blocks to check on the event loop."""
    if not isinstance(items, (list, tuple)) or len(items) > MOST_AT_ONCE:
        return isinstance(items, (list, tuple))
    found = (item.get(name) for item in items if isinstance(item, MAPPINGS) for name in BLOCKS)
    return sum(len(blocks) for blocks in found if isinstance(blocks, list)) > MOST_AT_ONCE


def is_pinned(message: Any) -> bool:
    """Whether the caller keeps a message whole, by a flag of the message or of one of its blocks."""
    flagged = _flagged(message)  # rarely any: each message of each request passes here
    return any(value[FIELD].get(name) is True for value in flagged for name in FLAGS) if flagged else False


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
    for name in BLOCKS:
        blocks = item.get(name)
        if isinstance(blocks, (list, tuple)):
            for block in blocks:
                if isinstance(block, MAPPINGS) and FIELD in block and _has_flag(block):
                    found.append(block)  # noqa: PERF401 - most messages have a block or two: a list of its own costs more
    return found


def _has_flag(value: Mapping[str, Any]) -> bool:
    context = value.get(FIELD)
    return isinstance(context, Mapping) and not FLAGS.isdisjoint(context)


def _without(item: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: [_bare(v) for v in value] if name in BLOCKS and isinstance(value, (list, tuple)) else value
        for name, value in _bare(item).items()
    }


def _bare(value: Any) -> Any:
    if not isinstance(value, MAPPINGS) or not _has_flag(value):
        return value
    rest = {name: inner for name, inner in value[FIELD].items() if name not in FLAGS}
    others = {name: inner for name, inner in value.items() if name != FIELD}
    return {**others, FIELD: rest} if rest else others
