"""Claude on Google's Vertex AI: Anthropic's shape behind `rawPredict` and `streamRawPredict`."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

from ctx_hooks.testing import streams
from ctx_hooks.testing.protocol import Payload, Protocol

VERSION = "vertex-2023-10-16"


def _read(body: Payload, path: str) -> dict[str, Any]:
    """Return the request, whose model stands in the path."""
    return {**body, "model": path.rsplit("/", 1)[1].partition(":")[0]}


def _broken(body: Payload) -> Iterator[str]:
    if body.get("anthropic_version") != VERSION:
        yield "anthropic_version: Field required"
    if "model" in body:
        yield "model: Extra inputs are not permitted"


VERTEX_CLAUDE = Protocol(
    paths=("/v1/projects/{project}/locations/{location}/publishers/anthropic/models/{name}:{method}",),
    fmt="anthropic",
    read=_read,
    violations=_broken,
    whole=partial(streams.whole, "anthropic"),
    stream=partial(streams.stream, "anthropic"),
    told=partial(streams.error_stream, "anthropic"),
)
