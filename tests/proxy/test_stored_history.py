"""A session whose history the provider keeps goes on past the window, with one refusal a turn."""

import random

import pytest
from configurations import WINDOW, deployment
from routes import RESPONSES, events_of

from ctx_hooks.testing.conversations import read_tool, source_text

TURNS = 8
RESULT_CHARS = 2_000
"""About 600 tokens: the history is above the window from the fifth turn on."""


def groups(url):
    yield deployment(url, "files-unknown", "openai/files-unknown")
    yield deployment(url, "files-known", "openai/files-known", max_input_tokens=WINDOW)


def ask(proxy, fields):
    answer = RESPONSES.post(proxy, fields)
    assert answer.status_code == 200, answer.text
    if not fields.get("stream"):
        return answer.json()
    return events_of(answer.text)[-1]["response"]


def run_session(proxy, model, **fields):
    """Run a session that reads a file a turn, and sends each result behind the provider's history."""
    sent = {"model": model, "tools": [read_tool("openai-responses")], "instructions": "Review the project.", **fields}
    response = ask(proxy, {**sent, "input": "Read every file, one after another."})
    for turn in range(TURNS):
        call = next(item for item in response["output"] if item["type"] == "function_call")
        result = {"type": "function_call_output", "call_id": call["call_id"], "output": text_of(turn)}
        response = ask(proxy, {**sent, "input": [result], "previous_response_id": response["id"]})


def text_of(turn):
    return source_text(random.Random(turn), RESULT_CHARS)


@pytest.mark.parametrize(("model", "stream"), [("unknown", True), ("known", False)])
def test_session_goes_on_past_window(model, stream, proxy, provider):
    run_session(proxy, f"files-{model}", stream=stream)
    records = provider.requests()
    outputs = [r["payload"]["input"][0]["output"] for r in records[1:]]
    assert set(outputs) == {text_of(turn) for turn in range(TURNS)}, "no fresh result is cut"
    said = [(r["status"], r["payload"].get("truncation")) for r in records]
    assert said[:4] == [(200, None)] * 4, "nothing is asked for while the history fits"
    assert said[5:] == [(400, None), (200, "auto")] * (len(said[5:]) // 2)
