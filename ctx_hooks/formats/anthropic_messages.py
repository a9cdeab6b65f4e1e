"""Anthropic messages: `tool_use` and `tool_result` blocks, signed thinking, cache markers, citations."""

import json
from collections.abc import Mapping
from typing import Any

from ctx_hooks.conversation.model import ELIDED, Media, Message, Part, Reasoning, Role, Text, ToolCall, ToolResult
from ctx_hooks.formats.content import block_parts, text_parts, write_block, write_content, write_parts
from ctx_hooks.formats.fields import (
    ANTHROPIC,
    MAPPINGS,
    compact_json,
    listed,
    mapping_or_empty,
    text_or_empty,
)
from ctx_hooks.formats.wire_format import WireFormat

ROLES: Mapping[str, Role] = {"system": "system", "user": "user", "assistant": "assistant"}
TEXT_TYPES = frozenset({"text"})
REASONING_TYPES = frozenset({"thinking", "redacted_thinking"})
CITED_NUMBERS = frozenset({"document_index", "search_result_index"})
"""Fields of a citation with the number of a block among all of its type in the request
(https://platform.claude.com/docs/en/build-with-claude/citations)."""


def _tool_result(call: ToolCall, text: str, *, is_error: bool) -> Message:
    block = {"type": "tool_result", "tool_use_id": call.id, "content": text} | ({"is_error": True} if is_error else {})
    result = ToolResult(call.id, (Text(text),), is_error, raw=block)
    return Message("user", (result,), raw={"role": "user", "content": [block]})


def _read(raw: Mapping[str, Any]) -> Message:
    content = raw.get("content")
    if isinstance(content, (list, tuple)):
        parts = tuple([part for block in content for part in _parts(block)])
    else:
        parts = text_parts(content, TEXT_TYPES)
    return Message(ROLES.get(text_or_empty(raw.get("role")), "other"), parts, raw)


def _parts(block: Any) -> tuple[Part, ...]:
    kind = text_or_empty(block.get("type")) if isinstance(block, MAPPINGS) else ""
    if kind == "tool_use":
        name, arguments = text_or_empty(block.get("name")), compact_json(block.get("input"))
        return (ToolCall(text_or_empty(block.get("id")), name, arguments, block),)
    if kind == "tool_result":
        parts = text_parts(block.get("content"), TEXT_TYPES)
        return (ToolResult(text_or_empty(block.get("tool_use_id")), parts, block.get("is_error") is True, block),)
    if kind in REASONING_TYPES:
        sealed, thinking = text_or_empty(block.get("data")), text_or_empty(block.get("thinking"))
        media = (Media("sealed", len(sealed), raw=sealed),) if sealed else ()
        return (Reasoning(thinking, block, media, is_signed=bool(block.get("signature"))),)
    return block_parts(block, TEXT_TYPES)


def _write(message: Message) -> dict[str, Any]:
    original = message.raw.get("content")
    if isinstance(original, str) and all(isinstance(p, Text) for p in message.parts):
        return {**message.raw, "content": message.text}
    return {**message.raw, "content": write_parts(message.parts, _write_part)}


def _write_part(part: Part) -> Any:
    if isinstance(part, Reasoning):
        return part.raw if part.text != ELIDED else {**part.raw, "thinking": ELIDED}
    if isinstance(part, ToolCall):
        unchanged = part.raw.get("id") == part.id and compact_json(part.raw.get("input")) == part.arguments
        return part.raw if unchanged else {**part.raw, "id": part.id, "input": json.loads(part.arguments)}
    if isinstance(part, ToolResult):
        content = part.raw.get("content")
        if part.parts == text_parts(content, TEXT_TYPES) and part.raw.get("tool_use_id") == part.call_id:
            return part.raw
        return {**part.raw, "tool_use_id": part.call_id, "content": write_content(part.parts, content, "text")}
    return write_block(part, "text")


def without_numbered_citations(message: Any) -> Any:
    """Return a message without the citations that name a block by its number: blocks before it may be gone."""
    blocks = listed(mapping_or_empty(message).get("content"))
    return {**message, "content": [_without_numbered(b) for b in blocks]} if any(map(_numbered, blocks)) else message


def _without_numbered(block: Any) -> Any:
    numbered = _numbered(block)
    if not numbered:
        return block
    left = [citation for citation in block["citations"] if citation not in numbered]
    others = {name: value for name, value in block.items() if name != "citations"}
    return {**others, "citations": left} if left else others


def _numbered(block: Any) -> list[Any]:
    cited = listed(mapping_or_empty(block).get("citations"))
    return [citation for citation in cited if not CITED_NUMBERS.isdisjoint(mapping_or_empty(citation))]


WIRE = WireFormat(
    name=ANTHROPIC,
    call_types=("anthropic_messages",),
    messages_field="messages",
    read_message=_read,
    write_message=_write,
    tool_result=_tool_result,
    system_field="system",
    route_ends=("/messages",),
    to_send=without_numbered_citations,
    elided=Reasoning(ELIDED, {"type": "thinking", "thinking": ELIDED, "signature": ""}),
)
