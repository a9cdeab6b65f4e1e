"""Protocols that carry one of the four formats in another shape, for the fake provider beside its own.

Bedrock's Converse has its own shape for every model, its Invoke carries Anthropic's, and both stream the binary events of
AWS. Cohere and Mistral take OpenAI's messages, with rules and errors of their own; Ollama has lines of JSON, arguments as
objects, and pairs calls and results only by their order.
"""

import base64
import json
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import count, pairwise
from typing import Any

from ctx_hooks.testing import streams
from ctx_hooks.testing.behaviour import Reply
from ctx_hooks.testing.provider import Payload, Protocol
from ctx_hooks.testing.streams import new_id


def _json_line(event: Any) -> str:
    return json.dumps(event) + "\n"


def _model_of(path: str) -> dict[str, Any]:
    """Return what Bedrock's path `/model/{model}/{method}` says."""
    _, _, model, method = path.split("/")
    return {"model": model, "stream": method.endswith("-stream")}


def _read_converse(body: Payload, path: str) -> dict[str, Any]:
    """Return the request in Anthropic's shape, which has the same turns, tool uses and tool results."""
    messages = [{"role": m["role"], "content": [_block(b) for b in m["content"]]} for m in body.get("messages") or []]
    tools = [
        {"name": t["toolSpec"]["name"], "input_schema": t["toolSpec"]["inputSchema"]["json"]}
        for t in (body.get("toolConfig") or {}).get("tools") or []
        if "toolSpec" in t
    ]
    limit = (body.get("inferenceConfig") or {}).get("maxTokens")
    system = [{"type": "text", **part} for part in body.get("system") or [] if "text" in part]
    return {**_model_of(path), "messages": messages, "tools": tools, "system": system, "max_tokens": limit}


def _block(block: Mapping[str, Any]) -> dict[str, Any]:
    if "toolUse" in block:
        use = block["toolUse"]
        return {"type": "tool_use", "id": use["toolUseId"], "name": use["name"], "input": use["input"]}
    if "toolResult" in block:
        result = block["toolResult"]
        return {"type": "tool_result", "tool_use_id": result["toolUseId"], "content": result["content"]}
    return {"type": "text" if "text" in block else next(iter(block)), **block}


def _broken_converse(body: Payload, _headers: Mapping[str, str]) -> Iterator[str]:
    messages = body.get("messages") or []
    roles = [m.get("role") for m in messages]
    if roles[:1] != ["user"]:
        yield "A conversation must start with a user message. Try again with a conversation that starts with a user message."
    if any(a == b for a, b in pairwise(roles)):
        yield "A conversation must alternate between user and assistant roles. Make sure the conversation alternates."
    if "toolConfig" not in body and any("toolUse" in b or "toolResult" in b for m in messages for b in m["content"]):
        yield "The toolConfig field must be defined when using toolUse and toolResult content blocks."


def _converse_usage(tokens: int, cached: int) -> dict[str, int]:
    counts = {"inputTokens": tokens - cached, "outputTokens": streams.OUTPUT_TOKENS, "cacheReadInputTokens": cached}
    return {**counts, "totalTokens": tokens + streams.OUTPUT_TOKENS}


def _whole_converse(_payload: Payload, reply: Reply, tokens: int, cached: int) -> dict[str, Any]:
    output = {"message": {"role": "assistant", "content": [{"text": reply.text}]}}
    usage = _converse_usage(tokens, cached)
    return {"output": output, "stopReason": "end_turn", "usage": usage, "metrics": {"latencyMs": 1}}


def _converse_events(_payload: Payload, reply: Reply, tokens: int, cached: int) -> Iterator[bytes]:
    yield _event("messageStart", {"role": "assistant"})
    for word in reply.text.split(" "):
        yield _event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": word + " "}})
    yield _event("contentBlockStop", {"contentBlockIndex": 0})
    yield _event("messageStop", {"stopReason": "end_turn"})
    yield _event("metadata", {"usage": _converse_usage(tokens, cached), "metrics": {"latencyMs": 1}})


def _invoke_events(payload: Payload, reply: Reply, tokens: int, cached: int) -> Iterator[bytes]:
    for told in streams.anthropic_events(payload, reply, tokens, cached):
        yield _event("chunk", {"bytes": base64.b64encode(json.dumps(told).encode()).decode()})


def _event(kind: str, payload: Any) -> bytes:
    return _framed({":message-type": "event", ":event-type": kind}, payload)


def _framed(headers: Mapping[str, str], payload: Any) -> bytes:
    """Return a message of AWS: its length, headers and payload, with a checksum before and behind."""
    head = b"".join(_header(*named) for named in {**headers, ":content-type": "application/json"}.items())
    body = json.dumps(payload).encode()
    lengths = struct.pack("!II", 16 + len(head) + len(body), len(head))
    message = lengths + struct.pack("!I", zlib.crc32(lengths)) + head + body
    return message + struct.pack("!I", zlib.crc32(message))


def _header(name: str, value: str) -> bytes:
    string = 7  # the number of a header whose value is one
    return struct.pack("!B", len(name)) + name.encode() + struct.pack("!BH", string, len(value)) + value.encode()


def _broken_invoke(body: Payload, _headers: Mapping[str, str]) -> Iterator[str]:
    if body.get("anthropic_version") != "bedrock-2023-05-31":
        yield "Malformed input request: anthropic_version is required, please reformat your input and try again."
    for name in body.keys() & {"model", "stream"}:
        yield f"Malformed input request: #: extraneous key [{name}] is not permitted, please reformat your input."


CONVERSE = Protocol(
    paths=("/model/{model}/converse", "/model/{model}/converse-stream"),
    fmt="anthropic",
    read=_read_converse,
    violations=_broken_converse,
    refused=lambda message: {"message": message},
    whole=_whole_converse,
    stream=_converse_events,
    media_type="application/vnd.amazon.eventstream",
)
INVOKE = replace(
    CONVERSE,
    paths=("/model/{model}/invoke", "/model/{model}/invoke-with-response-stream"),
    read=lambda body, path: {**body, **_model_of(path)},
    violations=_broken_invoke,
    whole=None,
    stream=_invoke_events,
)
COHERES_FIELDS = frozenset({"model", "messages", "tools", "tool_choice", "max_tokens", "stream", "temperature"})


def _broken_cohere(body: Payload, _headers: Mapping[str, str]) -> Iterator[str]:
    yield from (f"unknown field: parameter '{name}' is not a valid field" for name in sorted(body.keys() - COHERES_FIELDS))


def _coheres_usage(tokens: int) -> dict[str, Any]:
    counts = {"input_tokens": tokens, "output_tokens": streams.OUTPUT_TOKENS}
    return {"billed_units": counts, "tokens": counts}


def _whole_cohere(_payload: Payload, reply: Reply, tokens: int, _cached: int) -> dict[str, Any]:
    message = {"role": "assistant", "content": [{"type": "text", "text": reply.text}]}
    return {"id": new_id("chat"), "finish_reason": "COMPLETE", "message": message, "usage": _coheres_usage(tokens)}


def _cohere_events(_payload: Payload, reply: Reply, tokens: int, _cached: int) -> Iterator[str]:
    yield _json_line({"type": "message-start", "id": new_id("chat"), "delta": {"message": {"role": "assistant"}}})
    yield _json_line({"type": "content-start", "index": 0, "delta": {"message": {"content": {"type": "text", "text": ""}}}})
    for word in reply.text.split(" "):
        content = {"message": {"content": {"text": word + " "}}}
        yield _json_line({"type": "content-delta", "index": 0, "delta": content})
    yield _json_line({"type": "content-end", "index": 0})
    yield _json_line({"type": "message-end", "delta": {"finish_reason": "COMPLETE", "usage": _coheres_usage(tokens)}})


COHERE = Protocol(
    paths=("/v2/chat",),
    fmt="openai-chat",
    violations=_broken_cohere,
    refused=lambda message: {"id": new_id("error"), "message": message},
    whole=_whole_cohere,
    stream=_cohere_events,
    media_type="application/stream+json",
)


def _broken_mistral(body: Payload, _headers: Mapping[str, str]) -> Iterator[str]:
    messages = body.get("messages") or []
    roles = [m.get("role") for m in messages]
    for before, here in pairwise(roles):
        if before == "tool" and here in {"user", "system"}:
            yield f"Unexpected role '{here}' after role 'tool'"
    if roles and roles[-1] not in {"user", "tool"} and not messages[-1].get("prefix"):
        yield f"Expected last role User or Tool (or Assistant with prefix True) for serving but got {roles[-1]}"
    if sum(len(m.get("tool_calls") or []) for m in messages) != roles.count("tool"):
        yield "Not the same number of function calls and responses"


MISTRAL = Protocol(
    paths=("/mistral/v1/chat/completions",),
    fmt="openai-chat",
    read=lambda body, _path: {**body, "stream_options": {"include_usage": True}},
    violations=_broken_mistral,
    refused=lambda message: {"object": "error", "message": message, "type": "invalid_request_error", "code": "3051"},
)


def _read_ollama(body: Payload, _path: str) -> dict[str, Any]:
    """Return the request with an id for each call and result, which Ollama has none of; it streams unless told otherwise."""
    calls, results = count(), count()
    messages = []
    for m in body.get("messages") or []:
        message = {"role": m.get("role"), "content": m.get("content")}
        if m.get("tool_calls"):
            message["tool_calls"] = [_numbered(call, next(calls)) for call in m["tool_calls"]]
        if m.get("role") == "tool":
            message["tool_call_id"] = str(next(results))
        messages.append(message)
    limit = (body.get("options") or {}).get("num_predict")
    asked = {"model": body.get("model"), "stream": body.get("stream", True), "tools": body.get("tools"), "max_tokens": limit}
    return {**asked, "messages": messages}


def _numbered(call: Mapping[str, Any], number: int) -> dict[str, Any]:
    function = {**call["function"], "arguments": json.dumps(call["function"]["arguments"])}
    return {"id": str(number), "type": "function", "function": function}


def _broken_ollama(body: Payload, _headers: Mapping[str, str]) -> Iterator[str]:
    for message in body.get("messages") or []:
        if message.get("role") not in {"system", "user", "assistant", "tool"}:
            yield f"invalid role: {message.get('role')}"
        if not isinstance(message.get("content", ""), str):
            yield "json: cannot unmarshal array into Go struct field ChatRequest.messages.content of type string"
        if not all(isinstance(call["function"].get("arguments"), Mapping) for call in message.get("tool_calls") or []):
            yield "json: cannot unmarshal string into Go struct field ChatRequest.messages.tool_calls.function.arguments"


def _said_by_ollama(payload: Payload, text: str, tokens: int | None = None) -> dict[str, Any]:
    """Return a line that says a text; with the input's tokens it is the last one."""
    said = {"model": payload.get("model"), "created_at": "2026-01-01T00:00:00Z", "done": tokens is not None}
    end = {"done_reason": "stop", "prompt_eval_count": tokens, "eval_count": streams.OUTPUT_TOKENS} if said["done"] else {}
    return {**said, "message": {"role": "assistant", "content": text}, **end}


def _ollama_lines(payload: Payload, reply: Reply, tokens: int, _cached: int) -> Iterator[str]:
    yield from (_json_line(_said_by_ollama(payload, word + " ")) for word in reply.text.split(" "))
    yield _json_line(_said_by_ollama(payload, "", tokens))


OLLAMA = Protocol(
    paths=("/api/chat",),
    fmt="openai-chat",
    read=_read_ollama,
    violations=_broken_ollama,
    refused=lambda message: {"error": message},
    whole=lambda payload, reply, tokens, _cached: _said_by_ollama(payload, reply.text, tokens),
    stream=_ollama_lines,
    media_type="application/x-ndjson",
)
PROTOCOLS = (CONVERSE, INVOKE, COHERE, MISTRAL, OLLAMA)
_EXCEPTION = _framed(
    {":message-type": "exception", ":exception-type": "validationException"},
    {"message": "Input is too long for requested model."},
)
_OPENED = _event("messageStart", {"role": "assistant"}) + _EXCEPTION
_ERROR = f"data: {json.dumps({'error': {'message': 'MESSAGE', 'type': 'invalid_request_error', 'code': '3051'}})}\n\n"
_BEGUN = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "served"}
_ROLE = json.dumps({**_BEGUN, "choices": [{"index": 0, "delta": {"role": "assistant", "content": ""}}]})
REFUSED_IN_STREAM = {
    "bedrock-converse": (_EXCEPTION.decode("latin-1"), _OPENED.decode("latin-1")),
    "bedrock-invoke": (_EXCEPTION.decode("latin-1"),),
    "mistral": (_ERROR, f"data: {_ROLE}\n\n{_ERROR}"),
    "ollama": (_json_line({"error": "MESSAGE"}),),
}
"""Refusals inside a stream, in forms that LiteLLM reads: at once, and behind the stream's opening."""
