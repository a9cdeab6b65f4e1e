"""Answers of the routes, whole and as server-sent events, in the shapes of the real APIs."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from ctx_hooks.testing import gemini

if TYPE_CHECKING:
    from ctx_hooks.testing.behaviour import ProviderSettings, Reply, StreamedForm
    from ctx_hooks.testing.rules import Format

OUTPUT_TOKENS = 12


def new_id(kind: str) -> str:
    """Return an id that no other answer has: clients join what carries the same one."""
    return f"{kind}_{uuid4().hex[:24]}"


def whole(fmt: Format, payload: Mapping[str, Any], reply: Reply, tokens: int, cached: int) -> dict[str, Any]:
    """Return the answer to a request that is not streamed."""
    model = payload.get("model")
    if fmt == "openai-chat":
        message: dict[str, Any] = {"role": "assistant", "content": reply.text or None}
        if reply.tool:
            message["tool_calls"] = [_chat_call(reply)]
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if reply.tool else "stop"}
        head = {"id": new_id("chatcmpl"), "object": "chat.completion", "created": 1, "model": model}
        return {**head, "choices": [choice], "usage": _chat_usage(tokens, cached)}
    if fmt == "anthropic":
        block = _anthropic_call(reply) if reply.tool else {"type": "text", "text": reply.text}
        return {
            **_anthropic_message(model, tokens, cached),
            "content": [block],
            "stop_reason": "tool_use" if reply.tool else "end_turn",
        }
    if fmt == "gemini":
        return gemini.whole(model, reply, gemini.usage_of(tokens, cached, OUTPUT_TOKENS))
    return {
        **_response(model, "completed"),
        "output": [_item(reply)],
        "usage": _responses_usage(tokens, cached),
    }


async def response_stream(response: Mapping[str, Any]) -> AsyncIterator[str]:
    """Yield the events that bring a whole answer of the Responses route."""
    for event in _responses_events(response):
        yield _sse(event)


async def stream(fmt: Format, payload: Mapping[str, Any], reply: Reply, tokens: int, cached: int) -> AsyncIterator[str]:
    """Yield the events of a streamed answer of the other routes."""
    makers = {
        "openai-chat": _chat_events,
        "anthropic": anthropic_events,
        "gemini": _gemini_chunks,
    }
    for event in makers[fmt](payload, reply, tokens, cached):
        yield _sse(event)
    if fmt == "openai-chat":
        yield "data: [DONE]\n\n"


async def error_stream(fmt: Format, payload: Mapping[str, Any], body: Any, settings: ProviderSettings) -> AsyncIterator[str]:
    """Yield an error event as the only one of a 200 answer, or behind those that open it."""
    error = body.get("error", body) if isinstance(body, dict) else body
    opening = _opening(fmt, payload) if settings.refused_after_opening else []
    for event in (*opening, _error_event(fmt, payload, error, settings.refused_form)):
        yield _sse(event)


def _opening(fmt: Format, payload: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the events that come before the content of a streamed answer."""
    model = payload.get("model")
    if fmt == "anthropic":
        return [{"type": "message_start", "message": _anthropic_message(model, 1, 0)}, {"type": "ping"}]
    if fmt == "openai-responses":
        kinds = ("response.created", "response.in_progress")
        response = _response(model, "in_progress")
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
        return {"type": "response.failed", "response": {**_response(payload.get("model"), "failed"), "error": told}}
    if fmt == "openai-responses" and form == "flat":
        told = {name: error.get(name) for name in ("code", "message", "param")}
        return {"type": "error", "sequence_number": 2, **told}
    return {"type": "error", "sequence_number": 2, "error": error}


def _sse(event: Mapping[str, Any]) -> str:
    """Return the event as it is sent; chat's and Google's chunks have no type to be named after."""
    head = f"event: {event['type']}\n" if "type" in event else ""
    return f"{head}data: {json.dumps(event)}\n\n"


def _chat_usage(tokens: int, cached: int) -> dict[str, Any]:
    details = {"cached_tokens": cached}
    total = tokens + OUTPUT_TOKENS
    return {
        "prompt_tokens": tokens,
        "completion_tokens": OUTPUT_TOKENS,
        "total_tokens": total,
        "prompt_tokens_details": details,
    }


def _chat_call(reply: Reply) -> dict[str, Any]:
    function = {"name": reply.tool, "arguments": json.dumps(dict(reply.arguments))}
    return {"id": new_id("call"), "type": "function", "function": function}


def _chat_events(payload: Mapping[str, Any], reply: Reply, tokens: int, cached: int) -> list[dict[str, Any]]:
    head = _chat_head(payload)
    deltas: list[tuple[dict[str, Any], str | None]] = [({"role": "assistant", "content": ""}, None)]
    if reply.tool:
        call = _chat_call(reply)
        # As OpenAI does: the name comes first, the arguments in later chunks.
        opening = {"index": 0, **call, "function": {**call["function"], "arguments": ""}}
        arguments = {"index": 0, "function": {"arguments": call["function"]["arguments"]}}
        deltas += [({"tool_calls": [piece]}, None) for piece in (opening, arguments)]
    else:
        deltas += [({"content": word + " "}, None) for word in reply.text.split(" ")]
    deltas.append(({}, "tool_calls" if reply.tool else "stop"))
    events = [_chat_chunk(head, delta, finish) for delta, finish in deltas]
    if (payload.get("stream_options") or {}).get("include_usage"):
        events.append({**head, "choices": [], "usage": _chat_usage(tokens, cached)})
    return events


def _chat_head(payload: Mapping[str, Any]) -> dict[str, Any]:
    return {"id": new_id("chatcmpl"), "object": "chat.completion.chunk", "created": 1, "model": payload.get("model")}


def _chat_chunk(head: Mapping[str, Any], delta: Mapping[str, Any], finish: str | None) -> dict[str, Any]:
    return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def _gemini_chunks(payload: Mapping[str, Any], reply: Reply, tokens: int, cached: int) -> list[dict[str, Any]]:
    return gemini.chunks(payload.get("model"), reply, gemini.usage_of(tokens, cached, OUTPUT_TOKENS))


def _anthropic_message(model: Any, tokens: int, cached: int) -> dict[str, Any]:
    usage = {
        "input_tokens": tokens - cached,
        "cache_read_input_tokens": cached,
        "cache_creation_input_tokens": 0,
        "output_tokens": OUTPUT_TOKENS,
    }
    head = {"id": new_id("msg"), "type": "message", "role": "assistant", "model": model, "content": []}
    return {**head, "stop_reason": None, "stop_sequence": None, "usage": usage}


def _anthropic_call(reply: Reply) -> dict[str, Any]:
    return {"type": "tool_use", "id": new_id("toolu"), "name": reply.tool, "input": dict(reply.arguments)}


def anthropic_events(payload: Mapping[str, Any], reply: Reply, tokens: int, cached: int) -> list[dict[str, Any]]:
    """Return the events of an answer in Anthropic's shape, which other providers pack in their own streams."""
    start: dict[str, Any] = {"type": "text", "text": ""}
    deltas: list[dict[str, Any]] = [{"type": "text_delta", "text": word + " "} for word in reply.text.split(" ")]
    if reply.tool:
        start = {**_anthropic_call(reply), "input": {}}
        deltas = [{"type": "input_json_delta", "partial_json": json.dumps(dict(reply.arguments))}]
    stop = {"stop_reason": "tool_use" if reply.tool else "end_turn", "stop_sequence": None}
    return [
        {"type": "message_start", "message": _anthropic_message(payload.get("model"), tokens, cached)},
        {"type": "content_block_start", "index": 0, "content_block": start},
        *({"type": "content_block_delta", "index": 0, "delta": d} for d in deltas),
        {"type": "content_block_stop", "index": 0},
        {"type": "message_delta", "delta": stop, "usage": {"output_tokens": OUTPUT_TOKENS}},
        {"type": "message_stop"},
    ]


def _response(model: Any, status: str) -> dict[str, Any]:
    return {
        "id": new_id("resp"),
        "object": "response",
        "created_at": 1,
        "status": status,
        "model": model,
        "output": [],
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "temperature": 1.0,
        "top_p": 1.0,
    }


def _responses_usage(tokens: int, cached: int) -> dict[str, Any]:
    return {
        "input_tokens": tokens,
        "input_tokens_details": {"cached_tokens": cached},
        "output_tokens": OUTPUT_TOKENS,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": tokens + OUTPUT_TOKENS,
    }


def _item(reply: Reply) -> dict[str, Any]:
    if reply.tool:
        head = {"type": "function_call", "id": new_id("fc"), "call_id": new_id("call"), "status": "completed"}
        return {**head, "name": reply.tool, "arguments": json.dumps(dict(reply.arguments))}
    text = {"type": "output_text", "text": reply.text, "annotations": []}
    return {"type": "message", "id": new_id("msg"), "status": "completed", "role": "assistant", "content": [text]}


def _begun(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item as it is announced: without the content that its deltas bring."""
    empty: dict[str, Any] = {"arguments": ""} if "arguments" in item else {"content": []}
    return {**item, **empty, "status": "in_progress"}


def _responses_events(response: Mapping[str, Any]) -> list[dict[str, Any]]:
    item = response["output"][0]
    begun = {name: value for name, value in response.items() if name != "usage"}
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {**begun, "status": "in_progress", "output": []}},
        {"type": "response.output_item.added", "output_index": 0, "item": _begun(item)},
    ]
    where = {"item_id": item["id"], "output_index": 0}
    if item["type"] == "function_call":
        arguments = item["arguments"]
        events.append({"type": "response.function_call_arguments.delta", **where, "delta": arguments})
        events.append({"type": "response.function_call_arguments.done", **where, "arguments": arguments})
    else:
        part = item["content"][0]
        events.append({"type": "response.content_part.added", **where, "content_index": 0, "part": {**part, "text": ""}})
        events += [
            {"type": "response.output_text.delta", **where, "content_index": 0, "delta": word + " "}
            for word in part["text"].split(" ")
        ]
        events.append({"type": "response.output_text.done", **where, "content_index": 0, "text": part["text"]})
        events.append({"type": "response.content_part.done", **where, "content_index": 0, "part": part})
    events.append({"type": "response.output_item.done", "output_index": 0, "item": item})
    events.append({"type": "response.completed", "response": response})
    return [{**event, "sequence_number": n} for n, event in enumerate(events)]
