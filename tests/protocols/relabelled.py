"""Servers of OpenAI's or Anthropic's shape with rules and errors of their own: Mistral, watsonx.ai and Vertex AI."""

from collections.abc import Iterator, Mapping
from functools import partial
from itertools import pairwise
from typing import Any

from ctx_hooks.testing import streams
from ctx_hooks.testing.protocol import Payload, Protocol
from ctx_hooks.testing.rules import Format
from ctx_hooks.testing.streams import new_id

VERTEX_VERSION = "vertex-2023-10-16"
USAGE_IN_STREAMS = {"stream_options": {"include_usage": True}}


def _spoken(fmt: Format) -> dict[str, Any]:
    """Return what a protocol says as the format does."""
    said = {"whole": streams.whole, "stream": streams.stream, "failed": streams.error_stream}
    return {"fmt": fmt, **{name: partial(say, fmt) for name, say in said.items()}}


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


def _read_vertex(body: Payload, path: str) -> dict[str, Any]:
    """Return the request, whose model stands in the path."""
    return {**body, "model": path.rsplit("/", 1)[1].partition(":")[0]}


def _broken_vertex(body: Payload, _headers: Mapping[str, str]) -> Iterator[str]:
    if body.get("anthropic_version") != VERTEX_VERSION:
        yield "anthropic_version: Field required"
    if "model" in body:
        yield "model: Extra inputs are not permitted"


MISTRAL = Protocol(
    paths=("/mistral/v1/chat/completions",),
    read=_read_mistral,
    violations=_broken_mistral,
    refused=_refused_by_mistral,
    **_spoken("openai-chat"),
)
WATSONX = Protocol(
    paths=("/ml/v1/text/chat", "/ml/v1/text/chat_stream"),
    read=_read_watsonx,
    violations=_broken_watsonx,
    refused=_refused_by_watsonx,
    **_spoken("openai-chat"),
)
VERTEX_CLAUDE = Protocol(
    paths=("/v1/projects/{project}/locations/{location}/publishers/anthropic/models/{name}:{method}",),
    read=_read_vertex,
    violations=_broken_vertex,
    **_spoken("anthropic"),
)
