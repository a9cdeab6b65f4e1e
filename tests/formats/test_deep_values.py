"""A value that is nested too deeply to be read is text for every room, and is sent as it was."""

import json

import pytest

import ctx_hooks

LONG = "\n".join(f"row {n}: value {n * 7919 % 1000}" for n in range(400))


def nested(depth):
    value = "leaf"
    for _ in range(depth):
        value = {"a": value}
    return value


def nested_json(depth):
    """Return JSON that the standard library may be unable to write."""
    return '{"a":' * depth + '"leaf"' + "}" * depth


def chat(n, depth):
    call = {"id": f"c{n}", "type": "function", "function": {"name": "put", "arguments": nested_json(depth)}}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{n}", "content": LONG},
    ]


def messages(n, depth):
    use = {"type": "tool_use", "id": f"c{n}", "name": "put", "input": nested(depth)}
    result = {"type": "tool_result", "tool_use_id": f"c{n}", "content": LONG}
    return [{"role": "assistant", "content": [use]}, {"role": "user", "content": [result]}]


def responses(n, depth):
    return [
        {"type": "function_call", "call_id": f"c{n}", "name": "put", "arguments": nested_json(depth)},
        {"type": "function_call_output", "call_id": f"c{n}", "output": LONG},
    ]


def gemini(n, depth):
    call, response = {"name": "put", "args": nested(depth)}, {"name": "put", "response": {"output": f"{n}: {LONG}"}}
    return [
        {"role": "model", "parts": [{"functionCall": call}]},
        {"role": "user", "parts": [{"functionResponse": response}]},
    ]


ASKED = {"openai-chat": {"role": "user", "content": "Go."}, "gemini": {"role": "user", "parts": [{"text": "Go."}]}}
every_format = pytest.mark.parametrize(
    ("fmt", "exchange"),
    [("openai-chat", chat), ("anthropic", messages), ("openai-responses", responses), ("gemini", gemini)],
)


@every_format
@pytest.mark.parametrize("depth", [99, 101, 255, 500])
def test_deep_arguments_are_compressed(fmt, exchange, depth):
    asked = ASKED.get(fmt, ASKED["openai-chat"])
    session = [asked, *(item for n in range(6) for item in exchange(n, depth)), asked]
    result = ctx_hooks.compress(session, format=fmt, budget_tokens=5_000)
    assert result.fits
    assert result.tokens_before > 10_000


@every_format
@pytest.mark.parametrize("depth", [99, 101, 255, 500])
def test_deep_arguments_are_sent_unchanged(fmt, exchange, depth):
    asked = ASKED.get(fmt, ASKED["openai-chat"])
    session = [asked, *exchange(0, depth), asked]
    sent = ctx_hooks.compress(session, format=fmt, budget_tokens=50_000).messages
    assert json.dumps(sent) == json.dumps(session)
