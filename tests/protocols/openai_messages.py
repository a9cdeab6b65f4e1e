"""Servers of OpenAI's messages with rules and errors of their own: Cohere, with its own answers; Mistral; watsonx.ai."""

import json
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from ctx_hooks.testing import streams
from ctx_hooks.testing.behaviour import ProviderSettings, Reply
from ctx_hooks.testing.provider import Payload, Protocol
from ctx_hooks.testing.streams import new_id

ACCEPTED = {
    "model", "messages", "tools", "tool_choice", "documents", "citation_options", "response_format", "safety_mode",
    "max_tokens", "stop_sequences", "temperature", "seed", "frequency_penalty", "presence_penalty", "k", "p", "logprobs",
    "stream", "strict_tools", "thinking",
}  # fmt: skip


def _broken(body: Payload, _headers: Mapping[str, str]) -> Iterator[str]:
    for name in sorted(body.keys() - ACCEPTED):
        yield f"unknown field: parameter '{name}' is not a valid field"


def _usage(tokens: int) -> dict[str, Any]:
    counts = {"input_tokens": tokens, "output_tokens": streams.OUTPUT_TOKENS}
    return {"billed_units": counts, "tokens": counts}


def _whole(_payload: Payload, reply: Reply, tokens: int, _cached: int) -> dict[str, Any]:
    message = {"role": "assistant", "content": [{"type": "text", "text": reply.text}]}
    return {"id": new_id("chat"), "finish_reason": "COMPLETE", "message": message, "usage": _usage(tokens)}


def _events(_payload: Payload, reply: Reply, tokens: int, _cached: int) -> Iterator[str]:
    yield json_line({"type": "message-start", "id": new_id("chat"), "delta": {"message": {"role": "assistant"}}})
    yield json_line({"type": "content-start", "index": 0, "delta": {"message": {"content": {"type": "text", "text": ""}}}})
    for word in reply.text.split(" "):
        content = {"message": {"content": {"text": word + " "}}}
        yield json_line({"type": "content-delta", "index": 0, "delta": content})
    yield json_line({"type": "content-end", "index": 0})
    yield json_line({"type": "message-end", "delta": {"finish_reason": "COMPLETE", "usage": _usage(tokens)}})


def _failed(_payload: Payload, body: Any, settings: ProviderSettings) -> Iterator[str]:
    if settings.refused_after_opening:
        yield json_line({"type": "message-start", "id": new_id("chat"), "delta": {"message": {"role": "assistant"}}})
    delta = {"finish_reason": "ERROR", "error": body["message"], "usage": _usage(0)}
    yield json_line({"type": "message-end", "delta": delta})


def json_line(event: Any) -> str:
    """Return an event as a line of JSON: some servers send these, Cohere to who accepts no server-sent events."""
    return json.dumps(event) + "\n"


COHERE = Protocol(
    paths=("/v2/chat",),
    fmt="openai-chat",
    violations=_broken,
    refused=lambda message: {"id": new_id("error"), "message": message},
    whole=_whole,
    stream=_events,
    failed=_failed,
    media_type="application/stream+json",
)
USAGE_IN_STREAMS = {"stream_options": {"include_usage": True}}


def _broken_mistral(body: Payload, _headers: Mapping[str, str]) -> Iterator[str]:
    messages = body.get("messages") or []
    roles = [m.get("role") for m in messages]
    for before, here in pairwise(roles):
        if before == "tool" and here in {"user", "system"}:
            yield f"Unexpected role '{here}' after role 'tool'"
    if roles and roles[-1] not in {"user", "tool"} and not messages[-1].get("prefix"):
        yield f"Expected last role User or Tool (or Assistant with prefix True) for serving but got {roles[-1]}"
    calls = sum(len(m.get("tool_calls") or []) for m in messages)
    if calls != roles.count("tool"):
        yield "Not the same number of function calls and responses"


def _read_watsonx(body: Payload, path: str) -> dict[str, Any]:
    return {**body, "model": body.get("model_id"), "stream": path.endswith("_stream"), **USAGE_IN_STREAMS}


def _broken_watsonx(body: Payload, _headers: Mapping[str, str]) -> Iterator[str]:
    if not body.get("model_id"):
        yield "Missing required field: model_id"
    if not body.get("project_id") and not body.get("space_id"):
        yield "Either space_id or project_id has to be given"


MISTRAL = Protocol(
    paths=("/mistral/v1/chat/completions",),
    fmt="openai-chat",
    read=lambda body, _path: {**body, **USAGE_IN_STREAMS},
    violations=_broken_mistral,
    refused=lambda message: {"object": "error", "message": message, "type": "invalid_request_error", "code": "3051"},
)
WATSONX = Protocol(
    paths=("/ml/v1/text/chat", "/ml/v1/text/chat_stream"),
    fmt="openai-chat",
    read=_read_watsonx,
    violations=_broken_watsonx,
    refused=lambda message: {"errors": [{"code": "invalid_input_argument", "message": message}], "status_code": 400},
)
