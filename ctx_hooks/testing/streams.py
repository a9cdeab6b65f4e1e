"""Answers of the four formats, whole and as server-sent events, in the shapes of the real APIs."""

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any
from uuid import uuid4

from ctx_hooks.testing.behaviour import Format, Reply
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
    if fmt == "openai-chat":
        message: Event = {"role": "assistant", "content": reply.text or None}
        if reply.calls:
            message["tool_calls"] = _chat_calls(reply)
        choice = {"index": 0, "message": message, "finish_reason": _stop(reply)}
        return {**_chat_head(payload, "chat.completion"), "choices": [choice], "usage": _chat_usage(tokens, cached)}
    if fmt == "anthropic":
        content = [block for block, _ in _anthropic_blocks(reply)]
        stop = "tool_use" if reply.calls else "end_turn"
        return {**_anthropic_message(payload, tokens, cached), "content": content, "stop_reason": stop}
    if fmt == "gemini":
        chunks = _gemini_events(payload, reply, tokens, cached)
        (last,) = chunks[-1]["candidates"]
        parts = [part for chunk in chunks for part in chunk["candidates"][0]["content"]["parts"]]
        return {**chunks[-1], "candidates": [{**last, "content": {"role": "model", "parts": parts}}]}
    usage = {
        "input_tokens": tokens,
        "input_tokens_details": {"cached_tokens": cached},
        "output_tokens": OUTPUT_TOKENS,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": tokens + OUTPUT_TOKENS,
    }
    repeated = {name: payload[name] for name in REPEATED if name in payload}
    output = _items(reply, shows_encrypted=ENCRYPTED in (payload.get("include") or ()))
    return {**_response(payload), **repeated, "output": output, "usage": usage}


async def stream(fmt: Format, payload: Mapping[str, Any], reply: Reply, tokens: int, cached: int) -> AsyncIterator[str]:
    """Yield the events of a streamed answer, except of the Responses route."""
    makers = {"openai-chat": _chat_events, "anthropic": anthropic_events, "gemini": _gemini_events}
    for event in makers[fmt](payload, reply, tokens, cached):
        yield sse(event)
    if fmt == "openai-chat":
        yield "data: [DONE]\n\n"


async def response_stream(response: Mapping[str, Any]) -> AsyncIterator[str]:
    """Yield the events of a whole answer of the Responses route."""
    for event in response_events(response):
        yield sse(event)


def sse(event: Mapping[str, Any]) -> str:
    """Return the event as it is sent; chunks of chat and Google have no type for its name."""
    head = f"event: {event['type']}\n" if "type" in event else ""
    return f"{head}data: {json.dumps(event)}\n\n"


def _pieces(text: str) -> list[str]:
    return [text[at : at + PIECE_CHARS] for at in range(0, len(text), PIECE_CHARS)]


def _words(text: str) -> list[str]:
    return [word + " " for word in text.split(" ")]


def _stop(reply: Reply) -> str:
    return "tool_calls" if reply.calls else "stop"


def _chat_usage(tokens: int, cached: int) -> Event:
    counts = {"prompt_tokens": tokens, "completion_tokens": OUTPUT_TOKENS, "total_tokens": tokens + OUTPUT_TOKENS}
    return {**counts, "prompt_tokens_details": {"cached_tokens": cached}}


def _chat_calls(reply: Reply) -> list[Event]:
    functions = ({"name": call.tool, "arguments": call.json} for call in reply.calls)
    return [{"id": new_id("call"), "type": "function", "function": function} for function in functions]


def _chat_events(payload: Mapping[str, Any], reply: Reply, tokens: int, cached: int) -> list[Event]:
    deltas: list[Event] = [{"role": "assistant", "content": ""}]
    if reply.text or not reply.calls:
        deltas += [{"content": word} for word in _words(reply.text)]
    for i, call in enumerate(_chat_calls(reply)):
        # As OpenAI does: the name comes first, the arguments in later chunks.
        deltas.append({"tool_calls": [{"index": i, **call, "function": {**call["function"], "arguments": ""}}]})
        pieces = _pieces(call["function"]["arguments"])
        deltas += [{"tool_calls": [{"index": i, "function": {"arguments": piece}}]} for piece in pieces]
    head = _chat_head(payload)
    events = [*(_chat_chunk(head, delta) for delta in deltas), _chat_chunk(head, {}, _stop(reply))]
    if (payload.get("stream_options") or {}).get("include_usage"):
        events.append({**head, "choices": [], "usage": _chat_usage(tokens, cached)})
    return events


def _chat_head(payload: Mapping[str, Any], kind: str = "chat.completion.chunk") -> Event:
    return {"id": new_id("chatcmpl"), "object": kind, "created": 1, "model": payload.get("model")}


def _chat_chunk(head: Mapping[str, Any], delta: Mapping[str, Any], finish: str | None = None) -> Event:
    return {**head, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]}


def _gemini_events(payload: Mapping[str, Any], reply: Reply, tokens: int, cached: int) -> list[Event]:
    """Return the chunks of an answer; each contains the usage, as Google's chunks do."""
    parts: list[Event] = [{"functionCall": {"name": c.tool, "args": json.loads(c.json)}} for c in reply.calls]
    parts = parts or [{"text": word} for word in _words(reply.text)]
    counts = {"promptTokenCount": tokens, "candidatesTokenCount": OUTPUT_TOKENS, "totalTokenCount": tokens + OUTPUT_TOKENS}
    usage = {**counts, "cachedContentTokenCount": cached}
    head = {"usageMetadata": usage, "modelVersion": payload.get("model"), "responseId": uuid4().hex}
    candidates: list[Event] = [{"index": 0, "content": {"role": "model", "parts": [part]}} for part in parts]
    candidates[-1]["finishReason"] = "STOP"
    return [{**head, "candidates": [candidate]} for candidate in candidates]


def _anthropic_message(payload: Mapping[str, Any], tokens: int, cached: int) -> Event:
    counts = {"input_tokens": tokens - cached, "cache_read_input_tokens": cached, "cache_creation_input_tokens": 0}
    head: Event = {"id": new_id("msg"), "type": "message", "role": "assistant", "model": payload.get("model"), "content": []}
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
    events: list[Event] = [{"type": "message_start", "message": _anthropic_message(payload, tokens, cached)}]
    for i, (block, deltas) in enumerate(_anthropic_blocks(reply)):
        begun = {name: EMPTY.get(name, value) for name, value in block.items()}
        events.append({"type": "content_block_start", "index": i, "content_block": begun})
        events += [{"type": "content_block_delta", "index": i, "delta": d} for d in deltas]
        events.append({"type": "content_block_stop", "index": i})
    stop = {"stop_reason": "tool_use" if reply.calls else "end_turn", "stop_sequence": None}
    events.append({"type": "message_delta", "delta": stop, "usage": {"output_tokens": OUTPUT_TOKENS}})
    return [*events, {"type": "message_stop"}]


def _response(payload: Mapping[str, Any]) -> Event:
    """Return a completed response without items; LiteLLM's types demand all these fields."""
    empty = dict.fromkeys(("error", "incomplete_details", "instructions"))
    head = {
        "id": new_id("resp"),
        "object": "response",
        "created_at": 1,
        "status": "completed",
        "model": payload.get("model"),
    }
    tools = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    return {**head, "output": [], **tools, **empty, "metadata": {}, "temperature": 1.0, "top_p": 1.0}


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


CONTENTS = {
    "function_call": ("function_call_arguments", "arguments", _pieces, "", ""),
    "reasoning": ("reasoning_summary_text", "summary", _pieces, "summary_index", "reasoning_summary_part"),
    "message": ("output_text", "content", _words, "content_index", "content_part"),
}
"""By the type of an item: the events of its text, its field, how the text is cut; the index and the events of its only part."""


def response_events(response: Mapping[str, Any]) -> list[Event]:
    """Return the events of a streamed response."""
    begun = {**response, "status": "in_progress", "output": []}
    begun.pop("usage", None)
    events = [
        *({"type": f"response.{kind}", "response": begun} for kind in ("created", "in_progress")),
        *(event for i, item in enumerate(response["output"]) for event in _item_events(i, item)),
        {"type": "response.completed", "response": response},
    ]
    return [{**event, "sequence_number": n} for n, event in enumerate(events)]


def _item_events(index: int, item: Event) -> list[Event]:
    """Return the events of an item: it is announced without its content, which comes in deltas."""
    kind, field, cut, part_index, part_kind = CONTENTS[item["type"]]
    at = {"item_id": item["id"], "output_index": index, **({part_index: 0} if part_index else {})}
    (part,) = item[field] if part_kind else [{"text": item[field]}]
    begun = {**item, field: [] if part_kind else "", **({"status": "in_progress"} if "status" in item else {})}
    events = [{"type": f"response.{kind}.delta", **at, "delta": piece} for piece in cut(part["text"])]
    events.append({"type": f"response.{kind}.done", **at, "text" if part_kind else field: part["text"]})
    if part_kind:
        added = {"type": f"response.{part_kind}.added", **at, "part": {**part, "text": ""}}
        events = [added, *events, {"type": f"response.{part_kind}.done", **at, "part": part}]
    added = {"type": "response.output_item.added", "output_index": index, "item": begun}
    return [added, *events, {"type": "response.output_item.done", "output_index": index, "item": item}]
