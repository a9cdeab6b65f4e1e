"""Mistral's chat API: OpenAI's shape, and rules of its own on the order of roles."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from itertools import pairwise
from typing import Any

from ctx_hooks.testing import streams
from ctx_hooks.testing.protocol import Payload, Protocol


def _read(body: Payload, path: str) -> dict[str, Any]:
    """Return the request; every stream ends with its usage."""
    del path
    return {**body, "stream_options": {"include_usage": True}}


def _broken(body: Payload) -> Iterator[str]:
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


def _refused(message: str) -> dict[str, Any]:
    return {"object": "error", "message": message, "type": "invalid_request_error", "param": None, "code": "3051"}


MISTRAL = Protocol(
    paths=("/mistral/v1/chat/completions",),
    fmt="openai-chat",
    read=_read,
    violations=_broken,
    refused=_refused,
    whole=partial(streams.whole, "openai-chat"),
    stream=partial(streams.stream, "openai-chat"),
    told=partial(streams.error_stream, "openai-chat"),
)
