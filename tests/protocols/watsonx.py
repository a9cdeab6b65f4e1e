"""IBM's watsonx.ai: OpenAI's messages and answers, with a path for streams and errors in a list."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from ctx_hooks.testing import streams
from ctx_hooks.testing.protocol import Payload, Protocol
from ctx_hooks.testing.responses import new_id


def _read(body: Payload, path: str) -> dict[str, Any]:
    """Return the request; every stream ends with its usage."""
    options = {"include_usage": True}
    return {**body, "model": body.get("model_id"), "stream": path.endswith("_stream"), "stream_options": options}


def _broken(body: Payload) -> Iterator[str]:
    if not body.get("model_id"):
        yield "Missing required field: model_id"
    if not body.get("project_id") and not body.get("space_id"):
        yield "Either space_id or project_id has to be given"


def _refused(message: str) -> dict[str, Any]:
    return {
        "errors": [{"code": "invalid_input_argument", "message": message}],
        "trace": new_id("trace"),
        "status_code": 400,
    }


WATSONX = Protocol(
    paths=("/ml/v1/text/chat", "/ml/v1/text/chat_stream"),
    fmt="openai-chat",
    read=_read,
    violations=_broken,
    refused=_refused,
    whole=partial(streams.whole, "openai-chat"),
    stream=partial(streams.stream, "openai-chat"),
    told=partial(streams.error_stream, "openai-chat"),
)
