"""The flags by which a caller protects a message or a tool result, as `{"context": {"pin": true}}`.

No provider knows them, and most refuse a message with a field that they do not know: they are read here and not sent on.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ctx_hooks.formats.fields import MAPPINGS

FIELD = "context"
PIN = "pin"
"""The message stays whole."""
SKIP = "truncation_skip"
"""The tool result stays whole."""
_FLAGS = frozenset({PIN, SKIP})


def flag(value: Any, name: str) -> bool:
    """Whether the caller set a flag on a message or block."""
    context = value.get(FIELD) if isinstance(value, MAPPINGS) else None
    return context is not None and isinstance(context, Mapping) and context.get(name) is True


def without_flags(items: Any) -> list[Any] | None:
    """Return messages without the flags of theirs and of their blocks, None where there are none.

    Other fields of `context`, which Azure's search has as well, stay.
    """
    if not isinstance(items, (list, tuple)) or not any(FIELD in value for item in items for value in _places(item)):
        return None
    bare = [_without(item) for item in items]
    return None if all(new is old for new, old in zip(bare, items, strict=True)) else bare


def _places(item: Any) -> Iterator[Mapping[str, Any]]:
    """Yield where flags may stand: the message, and each of its blocks."""
    if isinstance(item, MAPPINGS):
        yield item
        yield from (block for name in ("content", "parts") for block in _blocks(item, name) if isinstance(block, MAPPINGS))


def _blocks(item: Mapping[str, Any], name: str) -> Sequence[Any]:
    blocks = item.get(name)
    return blocks if isinstance(blocks, (list, tuple)) else ()


def _without(item: Any) -> Any:
    item = _bare(item)
    for name in ("content", "parts") if isinstance(item, MAPPINGS) else ():
        blocks = [_bare(block) for block in _blocks(item, name)]
        if any(new is not old for new, old in zip(blocks, _blocks(item, name), strict=True)):
            item = {**item, name: blocks}
    return item


def _bare(value: Any) -> Any:
    context = value.get(FIELD) if isinstance(value, MAPPINGS) else None
    if not isinstance(context, Mapping) or not _FLAGS & context.keys():
        return value
    rest = {name: inner for name, inner in context.items() if name not in _FLAGS}
    others = {name: inner for name, inner in value.items() if name != FIELD}
    return {**others, FIELD: rest} if rest else others
