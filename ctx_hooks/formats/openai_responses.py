"""OpenAI responses: the `input` items, read by their shape. A provider's own (compaction, references) stay unchanged."""

import json
from collections.abc import Mapping
from typing import Any

from ctx_hooks.conversation.conversation import REFERENCE_FIELDS
from ctx_hooks.conversation.model import PROVIDER_SUMMARIES, Media, Message, Opaque, Part, Text, ToolCall, ToolResult
from ctx_hooks.formats.content import SEALED, parts_of_value, text_parts, write_content, write_parts
from ctx_hooks.formats.fields import OPENAI_ROLES, RESPONSES, opaque_of, reasoning_of, text_or_empty
from ctx_hooks.formats.wire_format import WireFormat

TEXT_TYPES = frozenset({"input_text", "output_text", "text"})
CONTROLS = frozenset({*PROVIDER_SUMMARIES, "compaction_trigger", "configuration_update"})
"""Items for the provider, not for the model."""
FRAME = frozenset(
    {"type", "id", "call_id", "name", "namespace", "status", "execution", "server_label", "caller", "created_by"}
)
"""Fields that say what an item is. All other fields are what the model asks for, or what it gets."""
RESULTS = frozenset({"output", "outputs", "result", "results", "content", "tools", "error"})
"""Fields of what the model gets, in an item that contains a call and its result (`mcp_call`, `code_interpreter_call`)."""
TEXT_FIELDS = ({"output"}, {"content"})
"""The only field of a result that is a text or a list of blocks."""
ANSWERABLE = frozenset({"function_call", "custom_tool_call", "local_shell_call"})
"""Calls for which a missing result can be added: it may be a text. Codex answers a local shell's call as a function's."""


def _tool_result(call: ToolCall, text: str, *, is_error: bool) -> Message:
    """Return the item that answers the function call `call`; the format has no error flag, the text says it."""
    kind = "custom_tool" if call.raw and call.raw.get("type") == "custom_tool_call" else "function"
    raw = {"type": f"{kind}_call_output", "call_id": call.id, "output": text}
    return Message("tool", (ToolResult(call.id, (Text(text),), is_error, raw),), raw=raw)


def _read(raw: Mapping[str, Any]) -> Message:
    kind = text_or_empty(raw.get("type")) or "message"
    if kind in CONTROLS or (kind != "message" and "role" in raw and "content" not in raw):
        return Message("other", (opaque_of(raw),), raw)
    if raw.keys() <= REFERENCE_FIELDS:  # beside the items of its answer
        return Message("assistant", (opaque_of(raw),), raw, pinned=True)
    if kind == "message" or "role" in raw:
        return Message(
            OPENAI_ROLES.get(text_or_empty(raw.get("role")), "other"), text_parts(raw.get("content"), TEXT_TYPES), raw
        )
    if kind == "reasoning":
        return Message("assistant", (reasoning_of(raw, raw),), raw)
    call_id, asks, gets = _shape(raw)
    result = () if gets is None else (ToolResult(call_id, _result_parts(gets), raw=raw),)
    return Message("tool", result, raw) if asks is None else Message("assistant", (*_call(call_id, asks, raw), *result), raw)


def _shape(raw: Mapping[str, Any]) -> tuple[str, dict[str, Any] | None, dict[str, Any] | None]:
    """Return the id of a call, what the model asks for, and what it gets; None if the item has no such part."""
    fields = {name: value for name, value in raw.items() if name not in FRAME and value not in (None, "", [], {})}
    kind, own_id = text_or_empty(raw.get("type")), text_or_empty(raw.get("id"))
    call_id = text_or_empty(raw.get("call_id")) or (own_id if kind == "local_shell_call_output" else "")
    if not call_id:  # the provider ran the tool, or another agent wrote the item: it is a call with its result
        gets = {name: value for name, value in fields.items() if name in RESULTS}
        return own_id, {name: value for name, value in fields.items() if name not in RESULTS}, gets
    is_result = kind.endswith("_output") or (not kind.endswith("_call") and not RESULTS.isdisjoint(fields))
    return call_id, None if is_result else fields, fields if is_result else None


def _call(call_id: str, asks: Mapping[str, Any], raw: Mapping[str, Any]) -> tuple[ToolCall | Media, ...]:
    """Return a call with the value of its only field as arguments, or with all its fields; and the media in it."""
    value = _only(asks)
    read = opaque_of(asks if isinstance(value, str) else value)
    is_signed = bool(read.media) or any(map(raw.get, SEALED))
    arguments = value if isinstance(value, str) and not read.media else read.text
    return (ToolCall(call_id, text_or_empty(raw.get("name")) or raw["type"], arguments, raw, is_signed), *read.media)


def _only(fields: Mapping[str, Any]) -> Any:
    return next(iter(fields.values())) if len(fields) == 1 else fields


def _result_parts(gets: Mapping[str, Any]) -> tuple[Text | Media | Opaque, ...]:
    return text_parts(_only(gets), TEXT_TYPES) if gets.keys() in TEXT_FIELDS else parts_of_value(gets) if gets else ()


def _written(part: Part, asks: Mapping[str, Any], gets: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the fields of a call or of a result."""
    if isinstance(part, ToolResult) and part.parts:
        if gets and gets.keys() not in TEXT_FIELDS:
            return dict(write_parts(part.parts, lambda p: p.raw)[0])
        return {next(iter(gets), "output"): write_content(part.parts, _only(gets), "input_text")}
    if not isinstance(part, ToolCall) or part.is_signed or not asks:
        return {}
    value: Any = part.arguments if isinstance(_only(asks), str) else json.loads(part.arguments)
    return {next(iter(asks)): value} if len(asks) == 1 else dict(value)


def _write(message: Message) -> Any:
    raw = message.raw
    if message.calls or message.results:
        _, asks, gets = _shape(raw)
        written = [_written(part, asks or {}, gets or {}) for part in message.parts]
        return {**raw, **{name: value for fields in written for name, value in fields.items()}}
    if len(message.parts) == 1 and "content" not in raw:
        return raw
    text_type = "output_text" if message.role == "assistant" else "input_text"
    return {**raw, "content": write_content(message.parts, raw.get("content"), text_type)}


WIRE = WireFormat(
    name=RESPONSES,
    call_types=("responses", "aresponses"),
    messages_field="input",
    read_message=_read,
    write_message=_write,
    tool_result=_tool_result,
    system_field="instructions",
    output_field="max_output_tokens",
    items=lambda given: [{"role": "user", "content": given}] if isinstance(given, str) else given,
    has_items=True,
)
