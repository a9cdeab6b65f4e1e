"""OpenAI chat completions: `messages` with `tool_calls` and `role: tool`, and the older `function_call`."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ctx_hooks.conversation.model import ELIDED, Media, Message, Opaque, Part, Reasoning, Role, Text, ToolCall, ToolResult
from ctx_hooks.formats.content import text_parts, write_block, write_content
from ctx_hooks.formats.fields import (
    CHAT,
    MAPPINGS,
    OPENAI_ROLES,
    compact_json,
    listed,
    mapping_or_empty,
    opaque_of,
    reasoning_of,
    text_or_empty,
)
from ctx_hooks.formats.wire_format import WireFormat

ROLES: Mapping[str, Role] = OPENAI_ROLES | {"tool": "tool", "function": "tool"}
TEXT_TYPES = frozenset({"text"})
REASONING_FIELDS = ("thinking_blocks", "reasoning_content", "reasoning", "reasoning_details")
"""Fields in which LiteLLM and OpenAI-compatible servers carry an assistant message's thinking."""
ARGUMENTS = {"function": "arguments", "custom": "input"}
"""The fields of a call that may contain its tool, and the tool's field for its arguments."""


def _tool_result(call: ToolCall, text: str, *, is_error: bool) -> Message:
    """Return the message that answers `call`; there is no flag of an error."""
    raw = {"role": "tool", "tool_call_id": call.id, "content": text}
    return Message("tool", (ToolResult(call.id, (Text(text),), is_error),), raw=raw)


def _read(raw: Mapping[str, Any]) -> Message:
    role = ROLES.get(text_or_empty(raw.get("role")), "other")
    content = text_parts(raw.get("content"), TEXT_TYPES)
    parts: tuple[Part, ...] = content
    if role == "tool":
        parts = (ToolResult(text_or_empty(raw.get("tool_call_id")), content, raw=raw),)
    elif role == "assistant":
        parts = (*_reasoning(raw), *content, *_calls(raw))
    name = raw.get("name") if role != "tool" else None
    return Message(role, parts, raw, name if isinstance(name, str) else None)


def _reasoning(raw: Mapping[str, Any]) -> tuple[Reasoning, ...]:
    fields = [f for f in REASONING_FIELDS if raw.get(f)]
    if not fields:
        return ()
    value = raw[fields[0]]  # LiteLLM sends `reasoning_content` beside `thinking_blocks`: one is counted
    found = Reasoning(value, raw=fields) if isinstance(value, str) else reasoning_of(value, fields)
    return (replace(found, is_signed=not any(isinstance(raw[f], str) for f in fields)),)


def _calls(raw: Mapping[str, Any]) -> tuple[ToolCall | Opaque, ...]:
    calls, legacy = map(_call, listed(raw.get("tool_calls"))), raw.get("function_call")
    return (*calls, _call_of("", legacy, legacy, "arguments")) if isinstance(legacy, MAPPINGS) else tuple(calls)


def _call(raw: Any) -> ToolCall | Opaque:
    kind = _kind(mapping_or_empty(raw))
    return opaque_of(raw) if kind is None else _call_of(text_or_empty(raw.get("id")), raw[kind], raw, ARGUMENTS[kind])


def _kind(raw: Mapping[str, Any]) -> str | None:
    return next((kind for kind in ARGUMENTS if isinstance(raw.get(kind), MAPPINGS)), None)


def _call_of(call_id: str, tool: Mapping[str, Any], raw: Mapping[str, Any], field: str) -> ToolCall:
    arguments = tool.get(field)
    if arguments is None and field == "input":  # of a custom call, whose input is a text
        arguments = ""
    text = arguments if isinstance(arguments, str) else compact_json(arguments)
    return ToolCall(call_id, text_or_empty(tool.get("name")), text, raw)


def _write(message: Message) -> dict[str, Any]:
    raw = dict(message.raw)
    if message.role == "tool":
        result = message.results[0]
        return {**raw, "content": write_content(result.parts, raw.get("content"), "text")}
    thoughts = next((p.text for p in message.parts if isinstance(p, Reasoning)), None)
    if thoughts is None or thoughts == ELIDED:
        texts = [name for name in REASONING_FIELDS if isinstance(raw.get(name), str)] or ["reasoning_content"]
        raw = {name: value for name, value in raw.items() if name not in REASONING_FIELDS}
        raw |= dict.fromkeys(texts, ELIDED) if thoughts else {}
    known_ids = set(map(id, listed(raw.get("tool_calls"))))  # the object identifies an unknown call: two may be equal
    calls = [_write_call(p) for p in message.parts if isinstance(p, (ToolCall, Opaque)) and id(p.raw) in known_ids]
    content = [p for p in message.parts if isinstance(p, (Text, Media, Opaque)) and id(p.raw) not in known_ids]
    if content or raw.get("content") is not None:
        raw["content"] = write_content(content, raw.get("content"), "text")
    raw["tool_calls"] = calls
    return raw if calls else {name: value for name, value in raw.items() if name != "tool_calls"}  # [] is refused


def _write_call(call: ToolCall | Opaque) -> Any:
    if isinstance(call, Opaque):
        return write_block(call, "text")
    raw = call.raw
    kind = _kind(raw) or "function"
    tool, field = raw[kind], ARGUMENTS[kind]
    unchanged = raw.get("id", "") == call.id and tool.get(field) == call.arguments
    return raw if unchanged else {**raw, "id": call.id, kind: {**tool, field: call.arguments}}


WIRE = WireFormat(
    name=CHAT,
    call_types=("completion", "acompletion"),
    messages_field="messages",
    read_message=_read,
    write_message=_write,
    tool_result=_tool_result,
    elided=Reasoning(ELIDED),
)
