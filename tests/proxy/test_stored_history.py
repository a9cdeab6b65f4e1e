"""A session whose history the provider keeps: it goes on past the window, with one refusal at most."""

from __future__ import annotations

import json
import random

import pytest
from configurations import WINDOW, deployment

from ctx_hooks.testing import LOOPBACK
from ctx_hooks.testing.conversations import read_tool, source_text

TURNS = 8
RESULT_CHARS = 2_000
"""About 600 tokens: the history is above the window from the fifth turn on."""


def groups(url):
    for model in ("unknown", "unknown-streamed", "asked"):
        yield deployment(url, f"files-{model}", f"openai/files-{model}")
    yield deployment(url, "files-known", "openai/files-known", max_input_tokens=WINDOW)
    yield deployment(url, "files-strict", "openai/files-strict", ctx_hooks={"stored_history": "error"})


def ask(proxy, fields):
    answer = LOOPBACK.post(f"{proxy.url}/v1/responses", json=fields, headers=proxy.headers, timeout=120)
    if answer.status_code != 200:
        return answer, {}
    if not fields.get("stream"):
        return answer, answer.json()
    events = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: {")]
    return answer, events[-1]["response"]


def session(proxy, model, **fields):
    """Return the answers of a session that reads a file a turn, and sends each result behind the provider's history."""
    sent = {"model": model, "tools": [read_tool("openai-responses")], "instructions": "Review the project.", **fields}
    answer, response = ask(proxy, {**sent, "input": "Read every file, one after another."})
    answers = [answer]
    for turn in range(TURNS):
        call = next(item for item in response["output"] if item["type"] == "function_call")
        result = {"type": "function_call_output", "call_id": call["call_id"], "output": text_of(turn)}
        answer, continued = ask(proxy, {**sent, "input": [result], "previous_response_id": response["id"]})
        answers.append(answer)
        if not continued:
            break
        response = continued
    return answers


def text_of(turn):
    return source_text(random.Random(turn), RESULT_CHARS)


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("model", "overflows"), [("unknown", 1), ("known", 0)])
def test_the_session_goes_on_past_the_window(model, overflows, stream, proxy, provider):
    group = "files-unknown-streamed" if stream and overflows else f"files-{model}"
    answers = session(proxy, group, stream=stream)
    assert [a.status_code for a in answers] == [200] * (TURNS + 1), answers[-1].text
    records = provider.requests()
    assert [r["status"] for r in records].count(400) <= overflows
    outputs = [r["payload"]["input"][0]["output"] for r in records[1:]]
    assert set(outputs) == {text_of(turn) for turn in range(TURNS)}, "no fresh result is cut"
    asked = [r["payload"].get("truncation") for r in records]
    assert asked[:4] == [None] * 4, "nothing is asked for while the history fits"
    first = asked.index("auto")
    assert set(asked[first:]) == {"auto"}, "a history that was too long once stays too long"
    if overflows:
        assert [r["status"] for r in records].index(400) == first - 1, "the refusal is what shows the limit"


def test_a_caller_that_asks_for_truncation_is_not_helped_twice(proxy, provider):
    answers = session(proxy, "files-asked", truncation="auto")
    assert [a.status_code for a in answers] == [200] * (TURNS + 1), answers[-1].text
    records = provider.requests()
    assert len(records) == TURNS + 1, "nothing is refused, and nothing asked twice"
    assert all(r["payload"]["input"][0]["output"] == text_of(turn) for turn, r in enumerate(records[1:]))


def test_a_deployment_that_may_not_truncate_answers_with_the_error_after_one_refusal_a_request(proxy, provider):
    answers = session(proxy, "files-strict")
    assert answers[-1].status_code == 400
    assert "maximum context length" in answers[-1].text
    assert "provider" in answers[-1].json()["error"]["message"]
    records = provider.requests()
    assert [r["status"] for r in records] == [200] * (len(records) - 1) + [400]
    assert all("truncation" not in r["payload"] for r in records)


def test_a_fresh_result_that_exceeds_the_window_by_itself_is_cut_and_the_request_answered(proxy):
    fields = {"model": "files-unknown", "tools": [read_tool("openai-responses")], "user": "huge"}
    _, response = ask(proxy, {**fields, "input": "Read the log."})
    call = response["output"][0]["call_id"]
    huge = {"type": "function_call_output", "call_id": call, "output": source_text(random.Random(9), 30_000)}
    answer, _ = ask(proxy, {**fields, "input": [huge], "previous_response_id": response["id"]})
    assert answer.status_code == 200, answer.text
