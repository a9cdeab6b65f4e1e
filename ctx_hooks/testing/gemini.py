"""Google's `generateContent` and `streamGenerateContent`: what they refuse and what they answer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any
from uuid import uuid4

if TYPE_CHECKING:
    from ctx_hooks.testing.behaviour import Reply


def violations(payload: Mapping[str, Any]) -> Iterator[str]:
    """Yield Google's text for every rule of turns that the payload breaks."""
    contents = payload.get("contents")
    if not isinstance(contents, list) or not contents:
        yield "* GenerateContentRequest.contents: contents is not specified"
        return
    calls_before = 0
    for n, content in enumerate(contents):
        parts = content.get("parts") or []
        if not parts:
            yield f"* GenerateContentRequest.contents[{n}].parts: contents.parts must not be empty."
        calls, responses = _number_of(parts, "function_call"), _number_of(parts, "function_response")
        if calls and (n == 0 or contents[n - 1].get("role") == "model"):
            yield "Please ensure that function call turn comes immediately after a user turn or after a function response turn."
        if responses != calls_before:
            yield (
                "Please ensure that the number of function response parts is equal to the number of function call parts of "
                "the function call turn."
            )
        calls_before = calls


def refusal(message: str, status: int) -> dict[str, Any]:
    """Return the body of a refused request."""
    return {"error": {"code": status, "message": message, "status": "INVALID_ARGUMENT"}}


def chunks(model: Any, reply: Reply, usage: Mapping[str, int]) -> list[dict[str, Any]]:
    """Return the chunks of a streamed answer; the usage stands in each, as Google's does."""
    call = {"functionCall": {"name": reply.tool, "args": dict(reply.arguments)}}
    parts: list[dict[str, Any]] = [call] if reply.tool else [{"text": word + " "} for word in reply.text.split(" ")]
    head = {"usageMetadata": dict(usage), "modelVersion": model, "responseId": uuid4().hex}
    found = [{**head, "candidates": [_candidate([part])]} for part in parts]
    found[-1]["candidates"][0]["finishReason"] = "STOP"
    return found


def whole(model: Any, reply: Reply, usage: Mapping[str, int]) -> dict[str, Any]:
    """Return the answer to a request that is not streamed."""
    streamed = chunks(model, reply, usage)
    parts = [part for chunk in streamed for part in chunk["candidates"][0]["content"]["parts"]]
    return {**streamed[-1], "candidates": [{**_candidate(parts), "finishReason": "STOP"}]}


def usage_of(tokens: int, cached: int, output_tokens: int) -> dict[str, int]:
    """Return what Google bills."""
    counts = {"promptTokenCount": tokens, "candidatesTokenCount": output_tokens, "totalTokenCount": tokens + output_tokens}
    return {**counts, "cachedContentTokenCount": cached}


def max_tokens(payload: Mapping[str, Any]) -> int | None:
    """Return the most output that a request asks for."""
    limits = payload.get("generationConfig") or {}
    found = limits.get("maxOutputTokens") or limits.get("max_output_tokens")
    return found if isinstance(found, int) else None


def _candidate(parts: list[dict[str, Any]]) -> dict[str, Any]:
    return {"index": 0, "content": {"role": "model", "parts": parts}}


def _number_of(parts: list[Mapping[str, Any]], kind: str) -> int:
    """Return how many parts are of a kind; Google reads both spellings of a name."""
    head, tail = kind.split("_")
    return sum(kind in part or head + tail.capitalize() in part for part in parts)
