"""Amazon Bedrock: Converse, which has its own shape for every model, and Invoke, which carries Anthropic's.

Both stream the binary events of AWS: length, headers and payload of each message, with a checksum before and behind.
"""

import base64
import json
import struct
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from typing import Any

from ctx_hooks.testing import streams
from ctx_hooks.testing.behaviour import ProviderSettings, Reply
from ctx_hooks.testing.provider import Payload, Protocol

INVOKE_VERSION = "bedrock-2023-05-31"


def _where(path: str) -> dict[str, Any]:
    """Return what the path `/model/{model}/{method}` says."""
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
    limits = body.get("inferenceConfig") or {}
    system = [{"type": "text", **part} for part in body.get("system") or [] if "text" in part]
    return {**_where(path), "messages": messages, "tools": tools, "system": system, "max_tokens": limits.get("maxTokens")}


def _block(block: Mapping[str, Any]) -> dict[str, Any]:
    if "toolUse" in block:
        use = block["toolUse"]
        return {"type": "tool_use", "id": use["toolUseId"], "name": use["name"], "input": use["input"]}
    if "toolResult" in block:
        result = block["toolResult"]
        return {"type": "tool_result", "tool_use_id": result["toolUseId"], "content": result["content"]}
    return {"type": "text", **block} if "text" in block else {"type": next(iter(block)), **block}


def _broken_converse(body: Payload, _headers: Mapping[str, str]) -> Iterator[str]:
    roles = [m.get("role") for m in body.get("messages") or []]
    if roles[:1] != ["user"]:
        yield "A conversation must start with a user message. Try again with a conversation that starts with a user message."
    if any(a == b for a, b in pairwise(roles)):
        yield "A conversation must alternate between user and assistant roles. Make sure the conversation alternates."
    if "toolConfig" not in body and any(
        "toolUse" in b or "toolResult" in b for m in body.get("messages") or [] for b in m["content"]
    ):
        yield "The toolConfig field must be defined when using toolUse and toolResult content blocks."


def _usage(tokens: int, cached: int) -> dict[str, int]:
    counts = {"inputTokens": tokens - cached, "outputTokens": streams.OUTPUT_TOKENS, "cacheReadInputTokens": cached}
    return {**counts, "totalTokens": tokens + streams.OUTPUT_TOKENS}


def _whole_converse(_payload: Payload, reply: Reply, tokens: int, cached: int) -> dict[str, Any]:
    output = {"message": {"role": "assistant", "content": [{"text": reply.text}]}}
    return {"output": output, "stopReason": "end_turn", "usage": _usage(tokens, cached), "metrics": {"latencyMs": 1}}


def _converse_events(_payload: Payload, reply: Reply, tokens: int, cached: int) -> Iterator[bytes]:
    yield _event("messageStart", {"role": "assistant"})
    for word in reply.text.split(" "):
        yield _event("contentBlockDelta", {"contentBlockIndex": 0, "delta": {"text": word + " "}})
    yield _event("contentBlockStop", {"contentBlockIndex": 0})
    yield _event("messageStop", {"stopReason": "end_turn"})
    yield _event("metadata", {"usage": _usage(tokens, cached), "metrics": {"latencyMs": 1}})


def _failed(_payload: Payload, body: Any, settings: ProviderSettings) -> Iterator[bytes]:
    if settings.refused_after_opening:
        yield _event("messageStart", {"role": "assistant"})
    yield _exception(body)


def _event(kind: str, payload: Any) -> bytes:
    return _framed({":message-type": "event", ":event-type": kind}, payload)


def _exception(payload: Any) -> bytes:
    """Return a message that ends the stream with an error."""
    return _framed({":message-type": "exception", ":exception-type": "validationException"}, payload)


def _framed(headers: Mapping[str, str], payload: Any) -> bytes:
    head = b"".join(_header(*named) for named in {**headers, ":content-type": "application/json"}.items())
    body = json.dumps(payload).encode()
    lengths = struct.pack("!II", 16 + len(head) + len(body), len(head))
    message = lengths + struct.pack("!I", zlib.crc32(lengths)) + head + body
    return message + struct.pack("!I", zlib.crc32(message))


def _header(name: str, value: str) -> bytes:
    string = 7  # the number of a header whose value is one
    return struct.pack("!B", len(name)) + name.encode() + struct.pack("!BH", string, len(value)) + value.encode()


def _broken_invoke(body: Payload, _headers: Mapping[str, str]) -> Iterator[str]:
    if body.get("anthropic_version") != INVOKE_VERSION:
        yield "Malformed input request: anthropic_version is required, please reformat your input and try again."
    for name in ("model", "stream"):
        if name in body:
            extraneous = f"#: extraneous key [{name}] is not permitted"
            yield f"Malformed input request: {extraneous}, please reformat your input and try again."


def _invoke_events(payload: Payload, reply: Reply, tokens: int, cached: int) -> Iterator[bytes]:
    for told in streams.anthropic_events(payload, reply, tokens, cached):
        yield _event("chunk", {"bytes": base64.b64encode(json.dumps(told).encode()).decode()})


CONVERSE = Protocol(
    paths=("/model/{model}/converse", "/model/{model}/converse-stream"),
    fmt="anthropic",
    read=_read_converse,
    violations=_broken_converse,
    refused=lambda message: {"message": message},
    whole=_whole_converse,
    stream=_converse_events,
    failed=_failed,
    media_type="application/vnd.amazon.eventstream",
)
INVOKE = replace(
    CONVERSE,
    paths=("/model/{model}/invoke", "/model/{model}/invoke-with-response-stream"),
    read=lambda body, path: {**body, **_where(path)},
    violations=_broken_invoke,
    whole=None,
    stream=_invoke_events,
    failed=lambda _payload, body, _settings: [_exception(body)],
)
