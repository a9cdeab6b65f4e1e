"""Servers of OpenAI's shape with rules and errors of their own: Mistral and watsonx.ai."""

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from ctx_hooks.testing.provider import Payload, Protocol
from ctx_hooks.testing.streams import new_id

USAGE_IN_STREAMS = {"stream_options": {"include_usage": True}}


def _read_mistral(body: Payload, _path: str) -> dict[str, Any]:
    return {**body, **USAGE_IN_STREAMS}


def _broken_mistral(body: Payload, _headers: Mapping[str, str]) -> Iterator[str]:
    messages = body.get("messages") or []
    roles = [m.get("role") for m in messages]
    for before, here in pairwise(roles):
        if before == "tool" and here in {"user", "system"}:
            yield f"Unexpected role '{here}' after role 'tool'"
    if roles and roles[-1] not in {"user", "tool"} and not messages[-1].get("prefix"):
        yield (f"Expected last role User or Tool (or Assistant with prefix True) for serving but got {roles[-1]}")
    calls = sum(len(m.get("tool_calls") or []) for m in messages)
    if calls != roles.count("tool"):
        yield "Not the same number of function calls and responses"


def _refused_by_mistral(message: str) -> dict[str, Any]:
    return {"object": "error", "message": message, "type": "invalid_request_error", "param": None, "code": "3051"}


def _read_watsonx(body: Payload, path: str) -> dict[str, Any]:
    return {**body, "model": body.get("model_id"), "stream": path.endswith("_stream"), **USAGE_IN_STREAMS}


def _broken_watsonx(body: Payload, _headers: Mapping[str, str]) -> Iterator[str]:
    if not body.get("model_id"):
        yield "Missing required field: model_id"
    if not body.get("project_id") and not body.get("space_id"):
        yield "Either space_id or project_id has to be given"


def _refused_by_watsonx(message: str) -> dict[str, Any]:
    errors = [{"code": "invalid_input_argument", "message": message}]
    return {"errors": errors, "trace": new_id("trace"), "status_code": 400}


MISTRAL = Protocol(
    paths=("/mistral/v1/chat/completions",),
    fmt="openai-chat",
    read=_read_mistral,
    violations=_broken_mistral,
    refused=_refused_by_mistral,
)
WATSONX = Protocol(
    paths=("/ml/v1/text/chat", "/ml/v1/text/chat_stream"),
    fmt="openai-chat",
    read=_read_watsonx,
    violations=_broken_watsonx,
    refused=_refused_by_watsonx,
)
