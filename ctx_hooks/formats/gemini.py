"""Google's `contents`, in camelCase or snake_case; calls and responses without an id get one, in the neutral model only."""

import json
from collections import Counter, defaultdict, deque
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ctx_hooks.conversation.model import Media, Message, Opaque, Part, Reasoning, Role, Text, ToolCall, ToolResult
from ctx_hooks.formats.content import parts_of_value, write_parts
from ctx_hooks.formats.fields import (
    GEMINI,
    MAPPINGS,
    compact_json,
    listed,
    mapping_or_empty,
    media_kind,
    opaque_of,
    payload_kind,
    text_or_empty,
)
from ctx_hooks.formats.wire_format import WireFormat

ROLES: Mapping[str, Role] = {"user": "user", "model": "assistant", "function": "tool", "system": "system"}
"""Responses have the role `user`, in older clients `function`."""
OUTPUT_KEY, ERROR_KEY = "output", "error"
"""Google: "use "output" key to specify function output and "error" key to specify error details (if any)"."""
MEDIA_FIELDS = frozenset({"inlineData", "inline_data", "fileData", "file_data"})
"""Fields of the parts that carry or name an image, a sound or a file."""
LOOKED_BACK_CONTENTS = 8
"""Responses directly follow their calls; clients with one response a content make at most this many calls in parallel."""
METHODS = (":generateContent", ":streamGenerateContent")
"""The path endings of routes that carry a conversation."""
CONFIGS = ("config", "generationConfig", "generation_config")
"""LiteLLM renames the field between its pre-call hook and the attempts; if a request has both, it sends `config`."""
OUTPUT_FIELDS = ("maxOutputTokens", "max_output_tokens")
COUNTED = ("responseSchema", "responseJsonSchema", "systemInstruction", "tools")
"""Google: "The size of your response schema counts towards the input token limit." Its SDK has the other two here."""


def _config_of(fields: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Return the name of the configuration's field, and the configuration; LiteLLM's name and an empty one without one."""
    name = next((n for n in CONFIGS if isinstance(fields.get(n), MAPPINGS)), CONFIGS[0])
    return name, mapping_or_empty(fields.get(name))


def _value_of(fields: Any, name: str) -> Any:
    """Return the value of the field `name` in camelCase or in snake_case, None without one."""
    own = mapping_or_empty(fields)
    return own.get(_name_in(own, name))


def _name_in(fields: Mapping[str, Any], name: str) -> str:
    """Return the name of a field as the caller writes it."""
    return name if fields.get(name) is not None else "".join(f"_{c.lower()}" if c.isupper() else c for c in name)


def _new_message(role: Role, text: str) -> Message:
    return Message(role, (Text(text),), raw={"role": "model" if role == "assistant" else role, "parts": [{"text": text}]})


def _tool_result(call: ToolCall, text: str, *, is_error: bool) -> Message:
    """Return the user's content that answers `call`, by its id if it has one."""
    own_id = _own_id(_value_of(call.raw, "functionCall"))
    response = {"name": call.name, "response": {ERROR_KEY if is_error else OUTPUT_KEY: text}}
    raw = {"functionResponse": {"id": own_id, **response} if own_id else response}
    return Message("user", (ToolResult(call.id, (Text(text),), is_error, raw),), raw={"role": "user", "parts": [raw]})


def _read(raw: Mapping[str, Any]) -> Message:
    given, unnamed = raw.get("parts"), Counter[str]()
    blocks = listed(given) if given is None or isinstance(given, (list, tuple)) else (given,)
    parts = tuple([part for block in blocks for part in _parts(block, unnamed)])
    return Message(ROLES.get(text_or_empty(raw.get("role")) or "user", "other"), parts, raw)


def _own_id(fields: Any) -> str:
    return text_or_empty(mapping_or_empty(fields).get("id"))


def _id_of(fields: Mapping[str, Any], unnamed: Counter[str]) -> str:
    """Return the id of a call or response, else its function's name and its number among those without an id."""
    name = text_or_empty(fields.get("name"))
    unnamed[name] += not _own_id(fields)
    return _own_id(fields) or f"{name}#{unnamed[name]}"


def _parts(block: Any, unnamed: Counter[str]) -> tuple[Part, ...]:
    if not isinstance(block, Mapping):
        return (Text(block, raw=block) if isinstance(block, str) else opaque_of(block),)
    is_signed = bool(_value_of(block, "thoughtSignature"))
    text, call, response = block.get("text"), _value_of(block, "functionCall"), _value_of(block, "functionResponse")
    if isinstance(text, str):
        return (Reasoning(text, block) if block.get("thought") is True else Text(text, block, is_signed=is_signed),)
    if isinstance(call, Mapping):
        name, arguments = text_or_empty(call.get("name")), compact_json(call.get("args") or {})
        return (ToolCall(_id_of(call, unnamed), name, arguments, block, is_signed=is_signed),)
    if isinstance(response, Mapping):
        is_error = list(mapping_or_empty(response.get("response"))) == [ERROR_KEY]
        return (ToolResult(_id_of(response, unnamed), _result_parts(response), is_error, block),)
    return _media_or_rest(block)


def _media_or_rest(block: Any) -> tuple[Text | Media | Opaque, ...]:
    for name, field in (("inlineData", "data"), ("fileData", "fileUri")):
        data = _value_of(block, name)
        content = _value_of(data, field)
        if isinstance(content, str):
            return (Media(media_kind(text_or_empty(_value_of(data, "mimeType"))), len(content), raw=block),)
    return parts_of_value(block)


def _result_parts(response: Mapping[str, Any]) -> tuple[Text | Media | Opaque, ...]:
    """Return a function's result: its only text, else its JSON; and its media."""
    given = response.get("response")
    media = tuple([p for block in listed(response.get("parts")) for p in _media_or_rest(block)])
    if given is None or given == {}:
        return media
    key, text = next(iter(given.items())) if isinstance(given, Mapping) and len(given) == 1 else ("", None)
    if isinstance(text, str) and payload_kind(text_or_empty(key), text) is None:
        return (Text(text), *media)
    *texts, rest = parts_of_value(given)
    return (*texts, rest, *media) if isinstance(rest, Opaque) and rest.media else (Text(compact_json(given)), *media)


def _answering(message: Message, items: Sequence[Any], index: int) -> Message:
    """Return a message with responses named after their calls: by id, else in the order of the function's calls."""
    if not message.results:
        return message
    calls = _last_calls(items, index)
    called, answered = {c.id for c in calls}, {r.call_id for r in message.results}
    unanswered: defaultdict[str, deque[ToolCall]] = defaultdict(deque)
    for call in calls:
        if call.id not in answered:
            unanswered[call.name].append(call)
    parts = list(message.parts)
    for k, part in enumerate(parts):
        if isinstance(part, ToolResult) and part.call_id not in called:
            response = _value_of(part.raw, "functionResponse")
            open_calls = unanswered[text_or_empty(response.get("name"))]
            if open_calls and not (_own_id(response) and _own_id(_value_of(open_calls[0].raw, "functionCall"))):
                parts[k] = replace(part, call_id=open_calls.popleft().id)
    return replace(message, parts=tuple(parts))


def _last_calls(items: Sequence[Any], index: int) -> tuple[ToolCall, ...]:
    """Return the calls of the model's content before `index`, none if it is too far away."""
    for item in reversed(items[max(0, index - LOOKED_BACK_CONTENTS) : index]):
        if isinstance(item, Mapping) and ROLES.get(text_or_empty(item.get("role"))) == "assistant":
            return _read(item).calls
    return ()


def _write_part(part: Part) -> Any:
    if isinstance(part, Text):
        if isinstance(part.raw, Mapping):
            return part.raw if part.raw.get("text") == part.text else {**part.raw, "text": part.text}
        return part.text if isinstance(part.raw, str) else {"text": part.text}
    if isinstance(part, ToolCall):
        name = _name_in(part.raw, "functionCall")
        call = part.raw[name]
        if compact_json(call.get("args") or {}) == part.arguments:
            return part.raw
        return {**part.raw, name: {**call, "args": json.loads(part.arguments)}}
    if isinstance(part, ToolResult):
        return _write_result(part)
    return part.raw


def _write_result(result: ToolResult) -> Any:
    name = _name_in(result.raw, "functionResponse")
    response = result.raw[name]
    if result.parts == _result_parts(response):
        return result.raw
    given = response.get("response")
    changed = {k: v for k, v in response.items() if k != "parts"}
    rest = write_parts((p for p in result.parts if not isinstance(p, Text) or p.raw is not None), _write_part)
    if any(isinstance(p, Opaque) and p.raw is given for p in result.parts):
        changed["response"] = rest.pop(0)
    else:
        key = next(iter(given)) if isinstance(given, Mapping) and len(given) == 1 else OUTPUT_KEY
        changed["response"] = {key: "\n".join(p.text for p in result.parts if isinstance(p, Text) and p.raw is None)}
    return {**result.raw, name: {**changed, "parts": rest} if rest else changed}


WIRE = WireFormat(
    name=GEMINI,
    call_types=("generate_content", "agenerate_content", "generate_content_stream", "agenerate_content_stream"),
    messages_field="contents",
    read_message=_read,
    write_message=lambda message: {**message.raw, "parts": write_parts(message.parts, _write_part)},
    tool_result=_tool_result,
    new_message=_new_message,
    system_field="systemInstruction",
    output_fields=OUTPUT_FIELDS,
    output_field=OUTPUT_FIELDS[0],
    route_ends=METHODS,
    items=lambda given: [given] if isinstance(given, Mapping) else given,
    options=lambda fields: _config_of(fields)[1],
    with_options=lambda fields, changed: {_config_of(fields)[0]: {**_config_of(fields)[1], **changed}},
    counted=lambda fields: (
        _value_of(fields, "systemInstruction"),
        *(_value_of(_config_of(fields)[1], name) for name in COUNTED),
    ),
    completed=_answering,
    signs_parts=True,
)
