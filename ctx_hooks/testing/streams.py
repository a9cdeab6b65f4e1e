"""Answers of the routes, whole and as server-sent events, in the shapes of the real APIs."""

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from ctx_hooks.testing import gemini, responses
from ctx_hooks.testing.behaviour import Call, Format, ProviderSettings, Reply, StreamedForm
from ctx_hooks.testing.responses import new_id, pieces
from ctx_hooks.testing.rules import sign

OUTPUT_TOKENS = 12
EMPTY: Mapping[str, Any] = {"text": "", "thinking": "", "signature": "", "input": {}}
"""The content of a block when it is announced, before its deltas."""


def whole(fmt: Format, payload: Mapping[str, Any], reply: Reply, tokens: int, cached: int) -> dict[str, Any]:
    """Return the answer to a request that is not streamed."""
    model = payload.get("model")
    if fmt == "openai-chat":
        message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
        if reply.calls:
            message["tool_calls"] = [_chat_call(call) for call in reply.calls]
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if reply.calls else "stop"}
        head = {"id": new_id("chatcmpl"), "object": "chat.completion", "created": 1, "model": model}
        return {**head, "choices": [choice], "usage": _chat_usage(tokens, cached)}
    if fmt == "anthropic":
        return {
            **_anthropic_message(model, tokens, cached),
            "content": [block for block, _ in _anthropic_blocks(reply)],
            "stop_reason": "tool_use" if reply.calls else "end_turn",
        }
    if fmt == "gemini":
        return gemini.whole(model, reply, gemini.usage_of(tokens, cached, OUTPUT_TOKENS))
    return responses.whole(payload, reply, responses.usage_of(tokens, cached, OUTPUT_TOKENS))


async def response_stream(response: Mapping[str, Any]) -> AsyncIterator[str]:
    """Yield the events of a whole answer of the Responses route."""
    for event in responses.events(response):
        yield sse(event)


async def stream(fmt: Format, payload: Mapping[str, Any], reply: Reply, tokens: int, cached: int) -> AsyncIterator[str]:
    """Yield the events of a streamed answer of the other routes."""
    if fmt == "gemini":
        events = gemini.chunks(payload.get("model"), reply, gemini.usage_of(tokens, cached, OUTPUT_TOKENS))
    else:
        events = (_chat_events if fmt == "openai-chat" else anthropic_events)(payload, reply, tokens, cached)
    for event in events:
        yield sse(event)
    if fmt == "openai-chat":
        yield "data: [DONE]\n\n"


async def error_stream(fmt: Format, payload: Mapping[str, Any], body: Any, settings: ProviderSettings) -> AsyncIterator[str]:
    """Yield an error event as the only one of a 200 answer, or after its opening events."""
    error = body.get("error", body) if isinstance(body, dict) else body
    opening = _opening(fmt, payload) if settings.refused_after_opening else []
    for event in (*opening, _error_event(fmt, payload, error, settings.refused_form)):
        yield sse(event)


def _opening(fmt: Format, payload: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the events that come before the content of a streamed answer."""
    model = payload.get("model")
    if fmt == "anthropic":
        return [{"type": "message_start", "message": _anthropic_message(model, 1, 0)}, {"type": "ping"}]
    if fmt == "openai-responses":
        kinds = ("response.created", "response.in_progress")
        response = responses.begun(model, "in_progress")
        return [{"type": kind, "response": response, "sequence_number": n} for n, kind in enumerate(kinds)]
    if fmt == "gemini":
        return []  # Google's first chunk has content
    return [_chat_chunk(_chat_head(payload), {"role": "assistant", "content": ""}, None)]


def _error_event(fmt: Format, payload: Mapping[str, Any], error: Any, form: StreamedForm) -> dict[str, Any]:
    if fmt == "gemini":
        return {"error": error}
    if fmt == "openai-chat":
        return {"object": "error", **error} if form == "flat" else {"error": error}
    if fmt == "openai-responses" and form == "failed":
        told = {"code": error.get("code"), "message": error.get("message")}
        return {"type": "response.failed", "response": {**responses.begun(payload.get("model"), "failed"), "error": told}}
    if fmt == "openai-responses" and form == "flat":
        told = {name: error.get(name) for name in ("code", "message", "param")}
        return {"type": "error", "sequence_number": 2, **told}
    return {"type": "error", "sequence_number": 2, "error": error}


def sse(event: Mapping[str, Any]) -> str:
    """Return the event as it is sent; chunks of chat and Google have no type for its name."""
    head = f"event: {event['type']}\n" if "type" in event else ""
    return f"{head}data: {json.dumps(event)}\n\n"


def _chat_usage(tokens: int, cached: int) -> dict[str, Any]:
    counts = {"prompt_tokens": tokens, "completion_tokens": OUTPUT_TOKENS, "total_tokens": tokens + OUTPUT_TOKENS}
    return {**counts, "prompt_tokens_details": {"cached_tokens": cached}}


def _chat_call(call: Call) -> dict[str, Any]:
    return {"id": new_id("call"), "type": "function", "function": {"name": call.tool, "arguments": call.json}}


def _chat_events(payload: Mapping[str, Any], reply: Reply, tokens: int, cached: int) -> list[dict[str, Any]]:
    head = _chat_head(payload)
    deltas: list[tuple[dict[str, Any], str | None]] = [({"role": "assistant", "content": ""}, None)]
    if reply.text or not reply.calls:
        deltas += [({"content": word + " "}, None) for word in reply.text.split(" ")]
    for i, call in enumerate(map(_chat_call, reply.calls)):
        # As OpenAI does: the name comes first, the arguments in later chunks.
        function = call["function"]
        opening = {"index": i, **call, "function": {**function, "arguments": ""}}
        arguments = [{"index": i, "function": {"arguments": piece}} for piece in pieces(function["arguments"])]
        deltas += [({"tool_calls": [piece]}, None) for piece in (opening, *arguments)]
    deltas.append(({}, "tool_calls" if reply.calls else "stop"))
    events = [_chat_chunk(head, delta, finish) for delta, finish in deltas]
    if (payload.get("stream_options") or {}).get("include_usage"):
        events.append({**head, "choices": [], "usage": _chat_usage(tokens, cached)})
    return events


def _chat_head(payload: Mapping[str, Any]) -> dict[str, Any]:
    return {"id": new_id("chatcmpl"), "object": "chat.completion.chunk", "created": 1, "model": payload.get("model")}


def _chat_chunk(head: Mapping[str, Any], delta: Mapping[str, Any], finish: str | None) -> dict[str, Any]:
    return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def _anthropic_message(model: Any, tokens: int, cached: int) -> dict[str, Any]:
    usage = {
        "input_tokens": tokens - cached,
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": 0,
        "output_tokens": OUTPUT_TOKENS,
    }
    head = {"id": new_id("msg"), "type": "message", "role": "assistant", "model": model, "content": []}
    return {**head, "stop_reason": None, "stop_sequence": None, "usage": usage}


def _anthropic_blocks(reply: Reply) -> list[tuple[dict[str, Any], list[dict[str, Any]]]]:
    """Return the blocks of an answer, each with the deltas that stream its content."""
    blocks: list[tuple[dict[str, Any], list[dict[str, Any]]]] = []
    if reply.thinking:
        signature = sign(reply.thinking)
        block: dict[str, Any] = {"type": "thinking", "thinking": reply.thinking, "signature": signature}
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in pieces(reply.thinking)]
        blocks.append((block, [*deltas, {"type": "signature_delta", "signature": signature}]))
    if reply.text or not reply.calls:
        words = [{"type": "text_delta", "text": word + " "} for word in reply.text.split(" ")]
        blocks.append(({"type": "text", "text": reply.text}, words))
    for call in reply.calls:
        given = {} if isinstance(call.arguments, str) else dict(call.arguments)
        block = {"type": "tool_use", "id": new_id("toolu"), "name": call.tool, "input": given}
        blocks.append((block, [{"type": "input_json_delta", "partial_json": piece} for piece in pieces(call.json)]))
    return blocks


def anthropic_events(payload: Mapping[str, Any], reply: Reply, tokens: int, cached: int) -> list[dict[str, Any]]:
    """Return the events of an answer in Anthropic's shape, which other providers wrap in their own streams."""
    opening = {"type": "message_start", "message": _anthropic_message(payload.get("model"), tokens, cached)}
    events: list[dict[str, Any]] = [opening]
    for i, (block, deltas) in enumerate(_anthropic_blocks(reply)):
        begun = {name: EMPTY.get(name, value) for name, value in block.items()}
        events.append({"type": "content_block_start", "index": i, "content_block": begun})
        events += [{"type": "content_block_delta", "index": i, "delta": d} for d in deltas]
        events.append({"type": "content_block_stop", "index": i})
    stop = {"stop_reason": "tool_use" if reply.calls else "end_turn", "stop_sequence": None}
    events.append({"type": "message_delta", "delta": stop, "usage": {"output_tokens": OUTPUT_TOKENS}})
    return [*events, {"type": "message_stop"}]
