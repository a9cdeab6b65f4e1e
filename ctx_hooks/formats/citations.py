"""Anthropic's citations name a document by its number among all documents of the request: removing one moves the others.

https://platform.claude.com/docs/en/build-with-claude/citations
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ctx_hooks.formats.fields import CACHE_MARKER, compact_json, listed, mapping_or_empty

NUMBERS = {"document": "document_index", "search_result": "search_result_index"}
"""The field of a citation that has the number, by the type of the numbered block."""


def with_citations(came: Sequence[Any], sent: list[Any]) -> list[Any]:
    """Return the messages to send with citations that name the same blocks as in the client's; others are dropped."""
    if not any(block.get("citations") for block in _blocks(sent)):
        return sent
    places: dict[str, dict[int, int]] = {}
    for kind, name in NUMBERS.items():
        left, known = ([_key(b) for b in _blocks(messages) if b.get("type") == kind] for messages in (sent, came))
        first = {key: place for place, key in reversed(list(enumerate(left)))}
        places[name] = {number: first[key] for number, key in enumerate(known) if key in first}
    return [_renumbered(message, places) for message in sent]


def _blocks(messages: Sequence[Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the blocks of messages and of the tool results in them, in order."""
    for block in (block for message in messages for block in listed(mapping_or_empty(message).get("content"))):
        if isinstance(block, Mapping):
            yield block
            yield from _blocks([block])


def _key(block: Mapping[str, Any]) -> str:
    """Return what identifies a block, without its cache marker; a shortened one is another."""
    return compact_json({name: value for name, value in block.items() if name != CACHE_MARKER})


def _renumbered(message: Any, places: Mapping[str, Mapping[int, int]]) -> Any:
    blocks = listed(mapping_or_empty(message).get("content"))
    if not any(mapping_or_empty(block).get("citations") for block in blocks):
        return message
    return {**message, "content": [_with_places(block, places) for block in blocks]}


def _with_places(block: Any, places: Mapping[str, Mapping[int, int]]) -> Any:
    cited = listed(mapping_or_empty(block).get("citations"))
    left = []
    for citation in cited:
        own = mapping_or_empty(citation)
        name = next((n for n in places if isinstance(own.get(n), int)), None)
        if name is None:
            left.append(citation)
        elif own[name] in places[name]:
            left.append({**own, name: places[name][own[name]]})
    if left == list(cited):
        return block
    return {**block, "citations": left} if left else {name: value for name, value in block.items() if name != "citations"}
