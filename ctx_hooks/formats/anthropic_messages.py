"""Anthropic messages: `tool_use` and `tool_result` blocks, signed thinking, cache markers."""

import json
from collections.abc import Mapping
from typing import Any

from ctx_hooks.conversation.model import ELIDED, Media, Message, Part, Reasoning, Role, Text, ToolCall, ToolResult
from ctx_hooks.formats.citations import with_citations
from ctx_hooks.formats.content import block_parts, text_parts, write_block, write_content, write_parts
from ctx_hooks.formats.fields import MAPPINGS, compact_json, text_or_empty
from ctx_hooks.formats.wire_format import WireFormat

ROLES: Mapping[str, Role] = {"system": "system", "user": "user", "assistant": "assistant"}
TEXT_TYPES = frozenset({"text"})
REASONING_TYPES = frozenset({"thinking", "redacted_thinking"})


def _tool_result(call: ToolCall, text: str, *, is_error: bool) -> Message:
    block = {"type": "tool_result", "tool_use_id": call.id, "content": text} | ({"is_error": True} if is_error else {})
    result = ToolResult(call.id, (Text(text),), is_error, raw=block)
    return Message("user", (result,), raw={"role": "user", "content": [block]})


def _read(raw: Mapping[str, Any]) -> Message:
    content = raw.get("content")
    parts: tuple[Part, ...] = text_parts(content, TEXT_TYPES)
    if isinstance(content, (list, tuple)):
        parts = tuple([part for block in content for part in _parts(block)])
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


WIRE = WireFormat(
    name="anthropic",
    call_types=("anthropic_messages",),
    messages_field="messages",
    read_message=_read,
    write_message=_write,
    tool_result=_tool_result,
    system_field="system",
    route_ends=("/messages",),
    cited=with_citations,
    elided=Reasoning(ELIDED, {"type": "thinking", "thinking": ELIDED, "signature": ""}),
)
