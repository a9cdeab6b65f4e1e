"""Cohere's second chat API: OpenAI's messages in the request, an answer and events of its own."""

import json
from collections.abc import Iterator, Mapping
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
    yield _sent({"type": "message-start", "id": new_id("chat"), "delta": {"message": {"role": "assistant"}}})
    yield _sent({"type": "content-start", "index": 0, "delta": {"message": {"content": {"type": "text", "text": ""}}}})
    for word in reply.text.split(" "):
        content = {"message": {"content": {"text": word + " "}}}
        yield _sent({"type": "content-delta", "index": 0, "delta": content})
    yield _sent({"type": "content-end", "index": 0})
    yield _sent({"type": "message-end", "delta": {"finish_reason": "COMPLETE", "usage": _usage(tokens)}})


def _failed(_payload: Payload, body: Any, settings: ProviderSettings) -> Iterator[str]:
    if settings.refused_after_opening:
        yield _sent({"type": "message-start", "id": new_id("chat"), "delta": {"message": {"role": "assistant"}}})
    delta = {"finish_reason": "ERROR", "error": body["message"], "usage": _usage(0)}
    yield _sent({"type": "message-end", "delta": delta})


def _sent(event: Payload) -> str:
    """Return an event as it is sent to who accepts JSON and no server-sent events, as LiteLLM does."""
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
