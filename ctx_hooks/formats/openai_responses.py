"""OpenAI responses: the `input` items. A provider's own (compaction, references, encrypted reasoning) stay unchanged."""

from collections.abc import Mapping
from typing import Any

from ctx_hooks.conversation.model import Message, Opaque, Part, Reasoning, Role, Text, ToolCall, ToolResult
from ctx_hooks.formats.fields import (
    compact_json,
    opaque_of,
    reasoning_of,
    text_or_empty,
    text_parts,
    write_block,
    write_content,
)
from ctx_hooks.formats.wire_format import WireFormat

ROLES: Mapping[str, Role] = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant"}
TEXT_TYPES = frozenset({"input_text", "output_text", "text"})
CALL_TYPES: Mapping[str, str] = {"function_call": "arguments", "custom_tool_call": "input", "local_shell_call": "action"}
"""Item types that must be answered by an item of the type with `_output` appended, and the field of their arguments."""
RESULT_TYPES = frozenset(f"{kind}_output" for kind in CALL_TYPES)


def _items(given: Any) -> Any:
    """Return the items of an `input`, which may be a user's text."""
    return [{"role": "user", "content": given}] if isinstance(given, str) else given


def _tool_result(call: ToolCall, text: str, *, is_error: bool) -> Message:
    """Return the item that answers the function call `call`; the format has no error flag, the text says it."""
    raw = {"type": "function_call_output", "call_id": call.id, "output": text}
    return Message("tool", (ToolResult(call.id, (Text(text),), is_error, raw),), raw=raw)


def _read(raw: Mapping[str, Any]) -> Message:
    kind = text_or_empty(raw.get("type")) or "message"
    if kind == "message":
        role = ROLES.get(text_or_empty(raw.get("role")), "other")
        return Message(role, text_parts(raw.get("content"), TEXT_TYPES), raw)
    part: Part
    if kind in CALL_TYPES:
        arguments = raw.get(CALL_TYPES[kind])
        text = arguments if isinstance(arguments, str) else compact_json(arguments)
        part = ToolCall(text_or_empty(raw.get("call_id")), text_or_empty(raw.get("name")) or kind, text, raw)
        return Message("assistant", (part,), raw)
    if kind in RESULT_TYPES:
        part = ToolResult(text_or_empty(raw.get("call_id")), text_parts(raw.get("output"), TEXT_TYPES), raw=raw)
        return Message("tool", (part,), raw)
    if kind == "reasoning":
        return Message("assistant", (reasoning_of(raw, raw),), raw)
    return Message("other", (opaque_of(raw),), raw)


def _write(message: Message) -> Any:
    part = message.parts[0] if message.parts else None
    if isinstance(part, ToolCall):
        field = CALL_TYPES[message.raw["type"]]
        if not isinstance(message.raw.get(field), str):
            return message.raw
        return {**message.raw, "call_id": part.id, field: part.arguments}
    if isinstance(part, ToolResult):
        output = write_content(part.parts, message.raw.get("output"), "input_text")
        return {**message.raw, "call_id": part.call_id, "output": output}
    if isinstance(part, (Reasoning, Opaque)) and message.role in {"assistant", "other"} and "role" not in message.raw:
        return part.raw
    text_type = "output_text" if message.role == "assistant" else "input_text"
    content = message.raw.get("content")
    blocks = [p for p in message.parts if not isinstance(p, (Reasoning, ToolCall, ToolResult))]
    if not isinstance(content, (list, tuple)) and all(isinstance(p, Text) for p in blocks):
        return {**message.raw, "content": message.text}
    return {**message.raw, "content": [write_block(p, text_type) for p in blocks]}


WIRE = WireFormat(
    name="openai-responses",
    call_types=("responses", "aresponses"),
    messages_field="input",
    read_message=_read,
    write_message=_write,
    tool_result=_tool_result,
    system_field="instructions",
    output_field="max_output_tokens",
    items=_items,
    has_items=True,
)
