"""The four formats as their own providers speak them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from ctx_hooks.testing import streams
from ctx_hooks.testing.protocols.protocol import Payload, Protocol

if TYPE_CHECKING:
    from ctx_hooks.testing.rules import Format


def _as_sent(body: Payload, path: str) -> dict[str, Any]:
    del path
    return dict(body)


def _named_by_path(body: Payload, path: str) -> dict[str, Any]:
    """Return Google's request, whose model and method stand in the path."""
    model, _, method = path.rsplit("/", 1)[1].partition(":")
    return {**body, "model": model, "stream": method == "streamGenerateContent"}


def _own(fmt: Format, *paths: str) -> Protocol:
    return Protocol(
        paths=paths,
        fmt=fmt,
        read=_named_by_path if fmt == "gemini" else _as_sent,
        whole=partial(streams.whole, fmt),
        stream=partial(streams.stream, fmt),
        told=partial(streams.error_stream, fmt),
    )


OPENAI_CHAT = _own("openai-chat", "/v1/chat/completions", "/chat/completions")
ANTHROPIC = _own("anthropic", "/v1/messages")
OPENAI_RESPONSES = _own("openai-responses", "/v1/responses", "/responses")
GEMINI = _own("gemini", "/v1beta/models/{name}:{method}")
