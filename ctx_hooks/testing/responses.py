"""Answers of OpenAI's Responses API, whole and as events."""

from collections.abc import Mapping
from typing import Any
from uuid import uuid4

from ctx_hooks.testing.behaviour import Reply
from ctx_hooks.testing.rules import sign

PIECE_CHARS = 16
"""Characters of a call's arguments, or of thinking, in one event."""


def new_id(kind: str) -> str:
    """Return an id that no other answer has: clients join items with the same id."""
    return f"{kind}_{uuid4().hex[:24]}"


def pieces(text: str) -> list[str]:
    """Return the pieces of a streamed text."""
    return [text[at : at + PIECE_CHARS] for at in range(0, len(text), PIECE_CHARS)]


REPEATED = ("tools", "tool_choice", "store")
"""Fields of a request that its answer repeats."""
ENCRYPTED = "reasoning.encrypted_content"
"""A request includes this to get its reasoning in a form that it can send back."""


def whole(payload: Mapping[str, Any], reply: Reply, usage: Mapping[str, Any]) -> dict[str, Any]:
    """Return the answer to a request."""
    return {
        **begun(payload.get("model"), "completed"),
        **{name: payload[name] for name in REPEATED if name in payload},
        "output": _items(reply, shows_encrypted=ENCRYPTED in (payload.get("include") or ())),
        "usage": usage,
    }


def begun(model: Any, status: str) -> dict[str, Any]:
    """Return a response without items."""
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


def usage_of(tokens: int, cached: int, output_tokens: int) -> dict[str, Any]:
    """Return the usage that an answer states."""
    return {
        "input_tokens": tokens,
        "input_tokens_details": {"cached_tokens": cached},
        "output_tokens": output_tokens,
        "output_tokens_details": {"reasoning_tokens": 0},
        "total_tokens": tokens + output_tokens,
    }


def _items(reply: Reply, *, shows_encrypted: bool) -> list[dict[str, Any]]:
    """Return the items of an answer; the id of a call after reasoning begins with the reasoning's id, as `rules` checks."""
    items: list[dict[str, Any]] = []
    reasoning = new_id("rs") if reply.thinking else ""
    if reasoning:
        summary = [{"type": "summary_text", "text": reply.thinking}]
        encrypted = {"encrypted_content": sign(reply.thinking)} if shows_encrypted else {}
        items.append({"type": "reasoning", "id": reasoning, "summary": summary, **encrypted})
    if reply.text or not reply.calls:
        text = {"type": "output_text", "text": reply.text, "annotations": []}
        head = {"type": "message", "id": new_id("msg"), "status": "completed", "role": "assistant"}
        items.append({**head, "content": [text]})
    for call in reply.calls:
        ids = {"id": new_id(f"fc_{reasoning}" if reasoning else "fc"), "call_id": new_id("call")}
        said = {"name": call.tool, "arguments": call.json}
        items.append({"type": "function_call", **ids, "status": "completed", **said})
    return items


def _begun(item: dict[str, Any]) -> dict[str, Any]:
    """Return an item as it is announced, without the content of its deltas."""
    if item["type"] == "reasoning":
        return {**item, "summary": []}
    empty: dict[str, Any] = {"arguments": ""} if "arguments" in item else {"content": []}
    return {**item, **empty, "status": "in_progress"}


def events(response: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the events of a streamed response."""
    head = {name: value for name, value in response.items() if name != "usage"}
    begun_head = {**head, "status": "in_progress", "output": []}
    found: list[dict[str, Any]] = [
        *({"type": f"response.{kind}", "response": begun_head} for kind in ("created", "in_progress")),
        *(event for i, item in enumerate(response["output"]) for event in _item_events(i, item)),
        {"type": "response.completed", "response": response},
    ]
    return [{**event, "sequence_number": n} for n, event in enumerate(found)]


def _item_events(index: int, item: dict[str, Any]) -> list[dict[str, Any]]:
    where = {"item_id": item["id"], "output_index": index}
    events: list[dict[str, Any]] = [{"type": "response.output_item.added", "output_index": index, "item": _begun(item)}]
    if item["type"] == "function_call":
        kind, arguments = "response.function_call_arguments", item["arguments"]
        events += [{"type": f"{kind}.delta", **where, "delta": piece} for piece in pieces(arguments)]
        events.append({"type": f"{kind}.done", **where, "arguments": arguments})
    elif item["type"] == "reasoning":
        kind, text = "response.reasoning_summary_text", item["summary"][0]["text"]
        where |= {"summary_index": 0}
        events.append(_summary_part("added", where, ""))
        events += [{"type": f"{kind}.delta", **where, "delta": piece} for piece in pieces(text)]
        events += [{"type": f"{kind}.done", **where, "text": text}, _summary_part("done", where, text)]
    else:
        part = item["content"][0]
        events.append({"type": "response.content_part.added", **where, "content_index": 0, "part": {**part, "text": ""}})
        kind, words = "response.output_text", part["text"].split(" ")
        events += [{"type": f"{kind}.delta", **where, "content_index": 0, "delta": word + " "} for word in words]
        events.append({"type": f"{kind}.done", **where, "content_index": 0, "text": part["text"]})
        events.append({"type": "response.content_part.done", **where, "content_index": 0, "part": part})
    return [*events, {"type": "response.output_item.done", "output_index": index, "item": item}]


def _summary_part(end: str, where: Mapping[str, Any], text: str) -> dict[str, Any]:
    return {"type": f"response.reasoning_summary_part.{end}", **where, "part": {"type": "summary_text", "text": text}}
