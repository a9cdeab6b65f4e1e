"""Text Generation Inference as Predibase serves it: one prompt, and a stream whose refusal is an event of a 200 answer."""

import json
from collections.abc import Iterator
from typing import Any

from ctx_hooks.testing import streams
from ctx_hooks.testing.behaviour import ProviderSettings, Reply
from ctx_hooks.testing.provider import Payload, Protocol


def _read(body: Payload, path: str) -> dict[str, Any]:
    """Return the prompt as a user's message; what the parameters say is no part of the input."""
    limit = (body.get("parameters") or {}).get("max_new_tokens")
    said = [{"role": "user", "content": body.get("inputs")}]
    return {"model": path.split("/")[-2], "stream": path.endswith("_stream"), "messages": said, "max_tokens": limit}


def _refused(message: str) -> dict[str, str]:
    return {"error": message, "error_type": "validation"}


def _whole(_payload: Payload, reply: Reply, tokens: int, _cached: int) -> dict[str, Any]:
    details = {"finish_reason": "eos_token", "generated_tokens": streams.OUTPUT_TOKENS, "prefill": [], "tokens": []}
    return {"generated_text": reply.text, "details": {**details, "prompt_tokens": tokens}}


def _events(_payload: Payload, reply: Reply, _tokens: int, _cached: int) -> Iterator[str]:
    words = [word + " " for word in reply.text.split(" ")]
    for number, word in enumerate(words):
        last = number == len(words) - 1
        token = {"id": number, "text": word, "logprob": 0.0, "special": False}
        details = {"finish_reason": "eos_token", "generated_tokens": len(words)} if last else None
        yield _sent({"token": token, "generated_text": reply.text if last else None, "details": details})


def _failed(_payload: Payload, body: Any, _settings: ProviderSettings) -> Iterator[str]:
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
    failed=_failed,
)
