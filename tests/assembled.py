"""Streamed answers put together as clients do of OpenAI's two APIs and Anthropic's, in their order or not at all."""

import json
from typing import Any


def chat(chunks: list[Any]) -> dict[str, Any]:
    """Return the answer that the chunks of a chat bring."""
    assert len({(c["id"], c["model"], c["created"]) for c in chunks}) == 1
    choices = [choice for chunk in chunks for choice in chunk["choices"]]
    deltas = [choice["delta"] for choice in choices]
    (role,) = [delta["role"] for delta in deltas if delta.get("role")]
    message: dict[str, Any] = {"role": role, "content": "".join(delta.get("content") or "" for delta in deltas)}
    if thoughts := [delta["reasoning_content"] for delta in deltas if delta.get("reasoning_content")]:
        message["reasoning_content"] = "".join(thoughts)
    calls: list[Any] = []
    for piece in (piece for delta in deltas for piece in delta.get("tool_calls") or ()):
        assert piece["index"] in (len(calls), len(calls) - 1), "calls come in their order"
        if piece["index"] == len(calls):
            calls.append({"id": piece["id"], "type": "function", "function": dict(piece["function"])})
        else:
            calls[-1]["function"]["arguments"] += piece["function"]["arguments"]
    message |= {"tool_calls": calls} if calls else {}
    (reason,) = [choice["finish_reason"] for choice in choices if choice.get("finish_reason")]
    (bill,) = [chunk["usage"] for chunk in chunks if chunk.get("usage")]
    return {"choices": [{"message": message, "finish_reason": reason}], "usage": bill}


def messages(events: list[Any]) -> dict[str, Any]:
    """Return the answer that the events of a message bring."""
    kinds = [event["type"] for event in events if event["type"] != "ping"]
    assert [kinds[0], *kinds[-2:]] == ["message_start", "message_delta", "message_stop"]
    assert [kinds.count(kind) for kind in ("message_start", "message_delta", "message_stop")] == [1, 1, 1]
    answer = events[0]["message"]
    blocks: list[Any] = []
    is_open = False
    for event in events:
        kind = event["type"].removeprefix("content_block_")
        if kind == "start":
            assert (is_open, event["index"]) == (False, len(blocks)), "blocks are numbered through"
            blocks.append({**event["content_block"], "arguments": ""})
            is_open = True
        elif kind in ("delta", "stop"):
            assert (is_open, event["index"]) == (True, len(blocks) - 1)
            is_open = kind == "delta"
            for name, value in event.get("delta", {}).items():
                if name != "type":
                    grown = "arguments" if name == "partial_json" else name
                    blocks[-1][grown] = blocks[-1].get(grown, "") + value
        elif kind == "message_delta":
            answer = {**answer, **event["delta"], "usage": {**answer["usage"], **event["usage"]}}
    assert not is_open
    for block in blocks:
        arguments = block.pop("arguments")
        if block["type"] == "tool_use":
            block["input"] = json.loads(arguments)
    return {**answer, "content": blocks}


def assert_whole(events: list[Any]) -> None:
    """Check how a stream of Responses begins and ends, and that it is of one response."""
    kinds = [event["type"] for event in events]
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert [kinds.count(f"response.{kind}") for kind in ("created", "in_progress")] == [1, 1]
    assert kinds[-1] in ("response.completed", "response.incomplete")
    assert len({event["response"]["id"] for event in events if "response" in event}) == 1


def responses(events: list[Any]) -> dict[str, Any]:
    """Return the response that the events of its stream bring, whose last one states it as a whole."""
    assert_whole(events)
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    items: list[Any] = []
    is_open = False
    for event in events:
        kind = event["type"]
        if kind == "response.output_item.added":
            assert (is_open, event["output_index"]) == (False, len(items)), "items are numbered through"
            items.append({"id": event["item"]["id"], "arguments": ""})
            is_open = True
        elif kind == "response.output_item.done":
            assert (is_open, event["item"].get("arguments", "")) == (True, items[-1]["arguments"])
            items[-1] = event["item"]
            is_open = False
        elif "output_index" in event:
            assert (is_open, event["output_index"], event["item_id"]) == (True, len(items) - 1, items[-1]["id"])
            items[-1]["arguments"] += event["delta"] if kind.endswith("arguments.delta") else ""
    assert not is_open
    assert items == events[-1]["response"]["output"]
    return dict(events[-1]["response"])


def translated_responses(events: list[Any]) -> dict[str, Any]:
    """Return the response of a stream that LiteLLM makes of another provider's, of which it numbers some events alone."""
    assert_whole(events)
    numbers = [event["sequence_number"] for event in events if event.get("sequence_number") is not None]
    assert numbers == sorted(set(numbers))
    items = {event["output_index"]: event["item"] for event in events if event["type"] == "response.output_item.added"}
    assert list(items) == list(range(len(items))), "items are numbered through"
    assert all(event.get("output_index", 0) in items for event in events[2:-1])
    response = dict(events[-1]["response"])
    shown, whole = ({i["id"] for i in listed if i["type"] != "reasoning"} for listed in (items.values(), response["output"]))
    assert shown == whole
    return response
