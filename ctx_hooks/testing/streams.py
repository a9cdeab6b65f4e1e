"""Answers of the routes, whole and as server-sent events, in the shapes of the real APIs."""

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any
from uuid import uuid4

from ctx_hooks.testing import gemini
from ctx_hooks.testing.behaviour import Call, Format, ProviderSettings, Reply, StreamedForm
from ctx_hooks.testing.rules import sign

Event = dict[str, Any]
OUTPUT_TOKENS = 12
PIECE_CHARS = 16
"""Characters of a call's arguments, or of thinking, in one event."""
EMPTY: Mapping[str, Any] = {"text": "", "thinking": "", "signature": "", "input": {}}
"""The content of a block of Anthropic's when it is announced, before its deltas."""
REPEATED = ("tools", "tool_choice", "store")
"""Fields of a Responses request that its answer repeats."""
ENCRYPTED = "reasoning.encrypted_content"
"""A Responses request includes this to get its reasoning in a form that it can send back."""


def new_id(kind: str) -> str:
    """Return an id that no other answer has: clients join items with the same id."""
    return f"{kind}_{uuid4().hex[:24]}"


def whole(fmt: Format, payload: Mapping[str, Any], reply: Reply, tokens: int, cached: int) -> Event:
    """Return the answer to a request that is not streamed."""
    model = payload.get("model")
    if fmt == "gemini":
        return gemini.whole(model, reply, gemini.usage_of(tokens, cached, OUTPUT_TOKENS))
    if fmt == "openai-chat":
        message: Event = {"role": "assistant", "content": reply.text or None}
        if reply.calls:
            message["tool_calls"] = [_chat_call(call) for call in reply.calls]
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if reply.calls else "stop"}
        return {**_chat_head(payload, "chat.completion"), "choices": [choice], "usage": _chat_usage(tokens, cached)}
    if fmt == "anthropic":
        stop = "tool_use" if reply.calls else "end_turn"
        content = [block for block, _ in _anthropic_blocks(reply)]
        return {**_anthropic_message(model, tokens, cached), "content": content, "stop_reason": stop}
    usage = {
        "input_tokens": tokens,
        "input_tokens_details": {"cached_tokens": cached},
        "output_tokens": OUTPUT_TOKENS,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": tokens + OUTPUT_TOKENS,
    }
    repeated = {name: payload[name] for name in REPEATED if name in payload}
    output = _items(reply, shows_encrypted=ENCRYPTED in (payload.get("include") or ()))
    return {**_response(model, "completed"), **repeated, "output": output, "usage": usage}


async def stream(fmt: Format, payload: Mapping[str, Any], reply: Reply, tokens: int, cached: int) -> AsyncIterator[str]:
    """Yield the events of a streamed answer, except of the Responses route."""
    if fmt == "gemini":
        events = gemini.chunks(payload.get("model"), reply, gemini.usage_of(tokens, cached, OUTPUT_TOKENS))
    else:
        events = (_chat_events if fmt == "openai-chat" else anthropic_events)(payload, reply, tokens, cached)
    for event in events:
        yield sse(event)
    if fmt == "openai-chat":
        yield "data: [DONE]\n\n"


async def response_stream(response: Mapping[str, Any]) -> AsyncIterator[str]:
    """Yield the events of a whole answer of the Responses route."""
    for event in response_events(response):
        yield sse(event)


async def error_stream(fmt: Format, payload: Mapping[str, Any], body: Any, settings: ProviderSettings) -> AsyncIterator[str]:
    """Yield an error event as the only one of a 200 answer, or after its opening events."""
    error = body.get("error", body) if isinstance(body, dict) else body
    opening = _opening(fmt, payload) if settings.refused_after_opening else []
    for event in (*opening, _error_event(fmt, payload, error, settings.refused_form)):
        yield sse(event)


def sse(event: Mapping[str, Any]) -> str:
    """Return the event as it is sent; chunks of chat and Google have no type for its name."""
    head = f"event: {event['type']}\n" if "type" in event else ""
    return f"{head}data: {json.dumps(event)}\n\n"


def _opening(fmt: Format, payload: Mapping[str, Any]) -> list[Event]:
    """Return the events that come before the content of a streamed answer; Google's first chunk has content."""
    model = payload.get("model")
    if fmt == "anthropic":
        return [{"type": "message_start", "message": _anthropic_message(model, 1, 0)}, {"type": "ping"}]
    if fmt == "openai-responses":
        kinds, response = ("response.created", "response.in_progress"), _response(model, "in_progress")
        return [{"type": kind, "response": response, "sequence_number": n} for n, kind in enumerate(kinds)]
    return [] if fmt == "gemini" else [_chat_chunk(_chat_head(payload), {"role": "assistant", "content": ""}, None)]


def _error_event(fmt: Format, payload: Mapping[str, Any], error: Any, form: StreamedForm) -> Event:
    if fmt == "gemini":
        return {"error": error}
    if fmt == "openai-chat":
        return {"object": "error", **error} if form == "flat" else {"error": error}
    if fmt == "openai-responses" and form == "failed":
        said = {"code": error.get("code"), "message": error.get("message")}
        return {"type": "response.failed", "response": {**_response(payload.get("model"), "failed"), "error": said}}
    if fmt == "openai-responses" and form == "flat":
        said = {name: error.get(name) for name in ("code", "message", "param")}
        return {"type": "error", "sequence_number": 2, **said}
    return {"type": "error", "sequence_number": 2, "error": error}


def _pieces(text: str) -> list[str]:
    return [text[at : at + PIECE_CHARS] for at in range(0, len(text), PIECE_CHARS)]


def _words(text: str) -> list[str]:
    return [word + " " for word in text.split(" ")]


def _chat_usage(tokens: int, cached: int) -> Event:
    counts = {"prompt_tokens": tokens, "completion_tokens": OUTPUT_TOKENS, "total_tokens": tokens + OUTPUT_TOKENS}
    return {**counts, "prompt_tokens_details": {"cached_tokens": cached}}


def _chat_call(call: Call) -> Event:
    return {"id": new_id("call"), "type": "function", "function": {"name": call.tool, "arguments": call.json}}


def _chat_events(payload: Mapping[str, Any], reply: Reply, tokens: int, cached: int) -> list[Event]:
    head = _chat_head(payload)
    deltas: list[Event] = [{"role": "assistant", "content": ""}]
    if reply.text or not reply.calls:
        deltas += [{"content": word} for word in _words(reply.text)]
    for i, call in enumerate(map(_chat_call, reply.calls)):
        # As OpenAI does: the name comes first, the arguments in later chunks.
        function = call["function"]
        opening = {"index": i, **call, "function": {**function, "arguments": ""}}
        arguments = [{"index": i, "function": {"arguments": piece}} for piece in _pieces(function["arguments"])]
        deltas += [{"tool_calls": [piece]} for piece in (opening, *arguments)]
    events = [_chat_chunk(head, delta, None) for delta in deltas]
    events.append(_chat_chunk(head, {}, "tool_calls" if reply.calls else "stop"))
    if (payload.get("stream_options") or {}).get("include_usage"):
        events.append({**head, "choices": [], "usage": _chat_usage(tokens, cached)})
    return events


def _chat_head(payload: Mapping[str, Any], kind: str = "chat.completion.chunk") -> Event:
    return {"id": new_id("chatcmpl"), "object": kind, "created": 1, "model": payload.get("model")}


def _chat_chunk(head: Mapping[str, Any], delta: Mapping[str, Any], finish: str | None) -> Event:
    return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def _anthropic_message(model: Any, tokens: int, cached: int) -> Event:
    counts = {"input_tokens": tokens - cached, "cache_read_input_tokens": cached, "cache_creation_input_tokens": 0}
    head = {"id": new_id("msg"), "type": "message", "role": "assistant", "model": model, "content": []}
    return {**head, "stop_reason": None, "stop_sequence": None, "usage": {**counts, "output_tokens": OUTPUT_TOKENS}}


def _anthropic_blocks(reply: Reply) -> list[tuple[Event, list[Event]]]:
    """Return the blocks of an answer, each with the deltas that stream its content."""
    blocks: list[tuple[Event, list[Event]]] = []
    if reply.thinking:
        signature = sign(reply.thinking)
        deltas = [{"type": "thinking_delta", "thinking": piece} for piece in _pieces(reply.thinking)]
        deltas.append({"type": "signature_delta", "signature": signature})
        blocks.append(({"type": "thinking", "thinking": reply.thinking, "signature": signature}, deltas))
    if reply.text or not reply.calls:
        words = [{"type": "text_delta", "text": word} for word in _words(reply.text)]
        blocks.append(({"type": "text", "text": reply.text}, words))
    for call in reply.calls:
        given = {} if isinstance(call.arguments, str) else dict(call.arguments)
        block = {"type": "tool_use", "id": new_id("toolu"), "name": call.tool, "input": given}
        blocks.append((block, [{"type": "input_json_delta", "partial_json": piece} for piece in _pieces(call.json)]))
    return blocks


def anthropic_events(payload: Mapping[str, Any], reply: Reply, tokens: int, cached: int) -> list[Event]:
    """Return the events of an answer in Anthropic's shape, which other providers wrap in their own streams."""
    events: list[Event] = [{"type": "message_start", "message": _anthropic_message(payload.get("model"), tokens, cached)}]
    for i, (block, deltas) in enumerate(_anthropic_blocks(reply)):
        begun = {name: EMPTY.get(name, value) for name, value in block.items()}
        events.append({"type": "content_block_start", "index": i, "content_block": begun})
        events += [{"type": "content_block_delta", "index": i, "delta": d} for d in deltas]
        events.append({"type": "content_block_stop", "index": i})
    stop = {"stop_reason": "tool_use" if reply.calls else "end_turn", "stop_sequence": None}
    events.append({"type": "message_delta", "delta": stop, "usage": {"output_tokens": OUTPUT_TOKENS}})
    return [*events, {"type": "message_stop"}]


def _response(model: Any, status: str) -> Event:
    """Return a response without items; LiteLLM's types demand all these fields."""
    empty = dict.fromkeys(("error", "incomplete_details", "instructions"))
    head = {"id": new_id("resp"), "object": "response", "created_at": 1, "status": status, "model": model, "output": []}
    tools = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    return {**head, **tools, **empty, "metadata": {}, "temperature": 1.0, "top_p": 1.0}


def _items(reply: Reply, *, shows_encrypted: bool) -> list[Event]:
    """Return the items of an answer; the id of a call after reasoning begins with the reasoning's id, as `rules` checks."""
    items: list[Event] = []
    reasoning = new_id("rs") if reply.thinking else ""
    if reasoning:
        encrypted = {"encrypted_content": sign(reply.thinking)} if shows_encrypted else {}
        summary = [{"type": "summary_text", "text": reply.thinking}]
        items.append({"type": "reasoning", "id": reasoning, "summary": summary, **encrypted})
    if reply.text or not reply.calls:
        content = [{"type": "output_text", "text": reply.text, "annotations": []}]
        head = {"type": "message", "id": new_id("msg"), "status": "completed", "role": "assistant"}
        items.append({**head, "content": content})
    for call in reply.calls:
        ids = {"id": new_id(f"fc_{reasoning}" if reasoning else "fc"), "call_id": new_id("call")}
        said = {"name": call.tool, "arguments": call.json}
        items.append({"type": "function_call", **ids, "status": "completed", **said})
    return items


def response_events(response: Mapping[str, Any]) -> list[Event]:
    """Return the events of a streamed response."""
    begun = {**response, "status": "in_progress", "output": []}
    begun.pop("usage", None)
    found: list[Event] = [
        *({"type": f"response.{kind}", "response": begun} for kind in ("created", "in_progress")),
        *(event for i, item in enumerate(response["output"]) for event in _item_events(i, item)),
        {"type": "response.completed", "response": response},
    ]
    return [{**event, "sequence_number": n} for n, event in enumerate(found)]


def _item_events(index: int, item: Event) -> list[Event]:
    """Return the events of an item: it is announced without its content, which comes in deltas."""
    at = {"item_id": item["id"], "output_index": index}
    if item["type"] == "function_call":
        begun = {**item, "arguments": "", "status": "in_progress"}
        kind, field, text = "response.function_call_arguments", "arguments", item["arguments"]
        texts, around = _pieces(text), []
    elif item["type"] == "reasoning":
        begun, at["summary_index"] = {**item, "summary": []}, 0
        kind, field, text = "response.reasoning_summary_text", "text", item["summary"][0]["text"]
        texts, part = _pieces(text), item["summary"][0]
        around = ["response.reasoning_summary_part", {**part, "text": ""}, part]
    else:
        begun, at["content_index"] = {**item, "content": [], "status": "in_progress"}, 0
        part = item["content"][0]
        kind, field, text = "response.output_text", "text", part["text"]
        texts, around = _words(text), ["response.content_part", {**part, "text": ""}, part]
    events = [{"type": f"{kind}.delta", **at, "delta": piece} for piece in texts]
    events.append({"type": f"{kind}.done", **at, field: text})
    if around:
        name, before, after = around
        events = [{"type": f"{name}.added", **at, "part": before}, *events, {"type": f"{name}.done", **at, "part": after}]
    where = {"output_index": index}
    added = {"type": "response.output_item.added", **where, "item": begun}
    return [added, *events, {"type": "response.output_item.done", **where, "item": item}]
