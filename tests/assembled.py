"""Streamed answers put together as clients do of OpenAI's two APIs and Anthropic's, in their order or not at all."""

import json
from typing import Any


def chat(chunks: list[Any]) -> dict[str, Any]:
    """Return the answer that the chunks of a chat bring."""
    assert len({(c["id"], c["model"], c["created"]) for c in chunks}) == 1
    message: dict[str, Any] = {"role": None, "content": ""}
    calls: list[Any] = []
    finish, usage = [], []
    for chunk in chunks:
        usage += [chunk["usage"]] if chunk.get("usage") else []
        for choice in chunk["choices"]:
            delta = choice["delta"]
            assert not (delta.get("role") and message["role"]), "the role comes once"
            message["role"] = message["role"] or delta.get("role")
            message["content"] += delta.get("content") or ""
            if delta.get("reasoning_content"):
                message["reasoning_content"] = message.get("reasoning_content", "") + delta["reasoning_content"]
            for piece in delta.get("tool_calls") or ():
                assert piece["index"] in (len(calls), len(calls) - 1), "calls come in their order"
                if piece["index"] == len(calls):
                    calls.append({"id": piece["id"], "type": "function", "function": dict(piece["function"])})
                    continue
                calls[-1]["function"]["arguments"] += piece["function"]["arguments"]
            finish += [choice["finish_reason"]] if choice.get("finish_reason") else []
    if calls:
        message["tool_calls"] = calls
    (reason,), (bill,) = finish, usage
    return {"choices": [{"message": message, "finish_reason": reason}], "usage": bill}


def messages(events: list[Any]) -> dict[str, Any]:
    """Return the answer that the events of a message bring."""
    kinds = [event["type"] for event in events if event["type"] != "ping"]
    assert kinds[0] == "message_start"
    assert kinds[-2:] == ["message_delta", "message_stop"]
    assert [kinds.count(kind) for kind in ("message_start", "message_delta", "message_stop")] == [1, 1, 1]
    answer = events[0]["message"]
    blocks: list[Any] = []
    is_open = False
    for event in events:
        kind = event["type"]
        if kind == "content_block_start":
            assert not is_open
            assert event["index"] == len(blocks), "blocks are numbered through"
            blocks.append({**event["content_block"], "arguments": ""})
            is_open = True
        elif kind == "content_block_delta":
            assert is_open
            assert event["index"] == len(blocks) - 1
            for name, value in event["delta"].items():
                if name != "type":
                    grown = "arguments" if name == "partial_json" else name
                    blocks[-1][grown] = blocks[-1].get(grown, "") + value
        elif kind == "content_block_stop":
            assert is_open
            assert event["index"] == len(blocks) - 1
            is_open = False
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
        if event["type"] == "response.output_item.added":
            assert not is_open
            assert event["output_index"] == len(items), "items are numbered through"
            items.append({"id": event["item"]["id"], "arguments": "", "text": ""})
            is_open = True
        elif event["type"] == "response.output_item.done":
            assert is_open
            assert event["item"].get("arguments", "") == items[-1]["arguments"]
            items[-1] = event["item"]
            is_open = False
        elif "output_index" in event:
            assert is_open
            assert event["output_index"] == len(items) - 1
            assert event["item_id"] == items[-1]["id"]
            items[-1]["arguments"] += event["delta"] if event["type"].endswith("arguments.delta") else ""
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
