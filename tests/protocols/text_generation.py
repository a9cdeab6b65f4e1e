"""Text Generation Inference as Predibase serves it: one prompt, and a stream whose refusal is an event of a 200 answer."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ctx_hooks.testing import streams
from ctx_hooks.testing.protocol import Payload, Protocol

if TYPE_CHECKING:
    from ctx_hooks.testing.behaviour import ProviderSettings, Reply


def _read(body: Payload, path: str) -> dict[str, Any]:
    """Return the prompt as a user's message; what the parameters say is no part of the input."""
    limit = (body.get("parameters") or {}).get("max_new_tokens")
    said = [{"role": "user", "content": body.get("inputs")}]
    return {"model": path.split("/")[-2], "stream": path.endswith("_stream"), "messages": said, "max_tokens": limit}


def _refused(message: str) -> dict[str, str]:
    return {"error": message, "error_type": "validation"}


def _whole(payload: Payload, reply: Reply, tokens: int, cached: int) -> dict[str, Any]:
    del payload, cached
    details = {"finish_reason": "eos_token", "generated_tokens": streams.OUTPUT_TOKENS, "prefill": [], "tokens": []}
    return {"generated_text": reply.text, "details": {**details, "prompt_tokens": tokens}}


def _events(payload: Payload, reply: Reply, tokens: int, cached: int) -> Iterator[str]:
    del payload, tokens, cached  # none of it is said in a stream
    words = [word + " " for word in reply.text.split(" ")]
    for number, word in enumerate(words):
        last = number == len(words) - 1
        token = {"id": number, "text": word, "logprob": 0.0, "special": False}
        details = {"finish_reason": "eos_token", "generated_tokens": len(words)} if last else None
        yield _sent({"token": token, "generated_text": reply.text if last else None, "details": details})


def _told(payload: Payload, body: Any, settings: ProviderSettings) -> Iterator[str]:
    del payload, settings  # a stream has no opening
    yield _sent(body)


def _sent(event: Any) -> str:
    return f"data: {json.dumps(event)}\n\n"


TEXT_GENERATION = Protocol(
    paths=("/{tenant}/deployments/v2/llms/{model}/generate", "/{tenant}/deployments/v2/llms/{model}/generate_stream"),
    fmt="openai-chat",
    read=_read,
    refused=_refused,
    whole=_whole,
    stream=_events,
    told=_told,
)
