"""Anthropic's citations name a document by its number among all documents of the request: removing one moves the others.

https://platform.claude.com/docs/en/build-with-claude/citations
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ctx_hooks.formats.fields import compact_json

NUMBERS = {"document": "document_index", "search_result": "search_result_index"}
"""The field of a citation that has the number, by the type of the numbered block."""


def with_citations(came: Sequence[Any], sent: list[Any]) -> list[Any]:
    """Return the messages to send with citations that name the same blocks as in the client's; others are dropped."""
    if not any(block.get("citations") for block in _blocks(sent)):
        return sent
    places: dict[str, list[int | None]] = {}
    for kind, name in NUMBERS.items():
        left, listed = ([_key(b) for b in _blocks(messages) if b.get("type") == kind] for messages in (sent, came))
        places[name] = [left.index(key) if key in left else None for key in listed]
    return [_renumbered(message, places) for message in sent]


def _blocks(messages: Sequence[Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the blocks of messages and of the tool results in them, in order."""
    for message in messages:
        content = message.get("content") if isinstance(message, Mapping) else None
        for block in content if isinstance(content, (list, tuple)) else ():
            if isinstance(block, Mapping):
                yield block
                yield from _blocks([block])


def _key(block: Mapping[str, Any]) -> str:
    """Return what identifies a block, without its cache marker; a shortened one is another."""
    return compact_json({name: value for name, value in block.items() if name != "cache_control"})


def _renumbered(message: Any, places: Mapping[str, Sequence[int | None]]) -> Any:
    content = message.get("content") if isinstance(message, Mapping) else None
    if not isinstance(content, (list, tuple)):
        return message
    blocks = [_renumbered_block(block, places) for block in content]
    return message if all(new is old for new, old in zip(blocks, content, strict=True)) else {**message, "content": blocks}


def _renumbered_block(block: Any, places: Mapping[str, Sequence[int | None]]) -> Any:
    cited = block.get("citations") if isinstance(block, Mapping) else None
    if not isinstance(cited, (list, tuple)):
        return block
    left = []
    for citation in cited:
        own = citation if isinstance(citation, Mapping) else {}
        name = next((n for n in places if isinstance(own.get(n), int)), None)
        if name is None:
            left.append(citation)
        elif 0 <= own[name] < len(places[name]) and (place := places[name][own[name]]) is not None:
            left.append({**own, name: place})
    if left == list(cited):
        return block
    rest = {name: value for name, value in block.items() if name != "citations"}
    return {**rest, "citations": left} if left else rest
