"""The flags by which a caller keeps a message whole, as `{"context": {"pin": true}}`; no provider accepts them."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ctx_hooks.formats.fields import MAPPINGS, listed

FIELD = "context"
FLAGS = ("pin", "truncation_skip")
"""Two names for one thing; MyCodeAgent sets the second one on tool results."""
BLOCKS = ("content", "parts")
"""The fields of a message that contain its blocks."""
MOST_AT_ONCE = 2_000
"""This many messages and blocks are checked within some 2 ms."""


def are_many(items: Any) -> bool:
    """Whether there are too many messages and blocks to check on the event loop."""
    messages = listed(items)
    blocks = sum(len(found) for item in messages[:MOST_AT_ONCE] for _, found in _blocks(item))
    return max(len(messages), blocks) > MOST_AT_ONCE


def is_pinned(message: Any) -> bool:
    """Whether the caller keeps a message whole, by a flag of the message or of one of its blocks."""
    values = [message, *(block for _, blocks in _blocks(message) for block in blocks)]
    return any(flag is True for value in values for flag in _flags(value))


def without_flags(items: Any) -> list[Any] | None:
    """Return messages without their own flags and those on their blocks; None if there are none.

    Other fields of `context` stay: Azure's search uses it too.
    """
    bare = [_without(item) for item in listed(items)]
    return None if all(new is old for new, old in zip(bare, listed(items), strict=True)) else bare


def _blocks(message: Any) -> Iterator[tuple[str, Sequence[Any]]]:
    if isinstance(message, MAPPINGS):
        yield from ((name, listed(message.get(name))) for name in BLOCKS)


def _flags(value: Any) -> list[Any]:
    context = value.get(FIELD) if isinstance(value, MAPPINGS) else None
    return [context[name] for name in FLAGS if name in context] if isinstance(context, Mapping) else []


def _without(message: Any) -> Any:
    changed = _without_own(message)
    for name, blocks in _blocks(message):
        bare = [_without_own(block) for block in blocks]
        if any(new is not old for new, old in zip(bare, blocks, strict=True)):
            changed = {**changed, name: bare}
    return changed


def _without_own(value: Any) -> Any:
    if not _flags(value):
        return value
    others = {name: inner for name, inner in value[FIELD].items() if name not in FLAGS}
    return {name: inner for name, inner in {**value, FIELD: others}.items() if name != FIELD or others}
