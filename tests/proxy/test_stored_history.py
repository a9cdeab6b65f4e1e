"""A session whose history the provider keeps: it goes on past the window, with one refusal at most."""

from __future__ import annotations

import json
import random

import pytest
from configurations import PLUGIN, configuration, deployment
from proxies import Proxy

from ctx_hooks.testing import LOOPBACK, FakeProvider, ProviderSettings
from ctx_hooks.testing.behaviour import Reply
from ctx_hooks.testing.conversations import read_tool, source_text

WINDOW = 20_000
TURNS = 25
RESULT_CHARS = 4_000
"""About 1,200 tokens: the history is above the window from the sixteenth turn on."""


def calls_a_file(_format, _payload, answered):
    return Reply(tool="read_file", arguments={"path": f"src/file_{answered}.py"})


@pytest.fixture(scope="module")
def keeping():
    settings = ProviderSettings(window_tokens=WINDOW)
    with FakeProvider(settings, calls_a_file) as provider:
        models = (
            deployment(provider.url, "unknown", "openai/unknown"),
            deployment(provider.url, "unknown-streamed", "openai/unknown-streamed"),
            deployment(provider.url, "known", "openai/known", max_input_tokens=WINDOW),
            deployment(provider.url, "asked", "openai/asked"),
            deployment(provider.url, "strict", "openai/strict", ctx_hooks={"stored_history": "error"}),
        )
        with Proxy(configuration(provider.url, *models, litellm_settings={"callbacks": [PLUGIN]})) as proxy:
            yield proxy, provider


def ask(proxy, fields):
    answer = LOOPBACK.post(f"{proxy.url}/v1/responses", json=fields, headers=proxy.headers, timeout=120)
    if answer.status_code != 200:
        return answer, {}
    if not fields.get("stream"):
        return answer, answer.json()
    events = [json.loads(line[6:]) for line in answer.text.splitlines() if line.startswith("data: {")]
    return answer, events[-1]["response"]


def session(proxy, provider, model, **fields):
    """Return the answers of a session that reads a file a turn, and sends each result behind the provider's history."""
    provider.reset()
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
def test_the_session_goes_on_past_the_window(model, overflows, stream, keeping):
    proxy, provider = keeping
    group = "unknown-streamed" if stream and overflows else model
    answers = session(proxy, provider, group, stream=stream)
    assert [a.status_code for a in answers] == [200] * (TURNS + 1), answers[-1].text
    records = provider.requests()
    assert [r["status"] for r in records].count(400) <= overflows
    outputs = [r["payload"]["input"][0]["output"] for r in records[1:]]
    assert set(outputs) == {text_of(turn) for turn in range(TURNS)}, "no fresh result is cut"
    asked = [r["payload"].get("truncation") for r in records]
    assert asked[:14] == [None] * 14, "nothing is asked for while the history fits"
    first = asked.index("auto")
    assert set(asked[first:]) == {"auto"}, "a history that was too long once stays too long"
    if overflows:
        assert [r["status"] for r in records].index(400) == first - 1, "the refusal is what shows the limit"


def test_a_caller_that_asks_for_truncation_is_not_helped_twice(keeping):
    proxy, provider = keeping
    answers = session(proxy, provider, "asked", truncation="auto")
    assert [a.status_code for a in answers] == [200] * (TURNS + 1), answers[-1].text
    records = provider.requests()
    assert len(records) == TURNS + 1, "nothing is refused, and nothing asked twice"
    assert all(r["payload"]["input"][0]["output"] == text_of(turn) for turn, r in enumerate(records[1:]))


def test_a_deployment_that_may_not_truncate_answers_with_the_error_after_one_refusal_a_request(keeping):
    proxy, provider = keeping
    answers = session(proxy, provider, "strict")
    assert answers[-1].status_code == 400
    assert "maximum context length" in answers[-1].text
    assert "provider" in answers[-1].json()["error"]["message"]
    records = provider.requests()
    assert [r["status"] for r in records] == [200] * (len(records) - 1) + [400]
    assert all("truncation" not in r["payload"] for r in records)


def test_a_fresh_result_that_exceeds_the_window_by_itself_is_cut_and_the_request_answered(keeping):
    proxy, provider = keeping
    provider.reset()
    fields = {"model": "unknown", "tools": [read_tool("openai-responses")], "user": "huge"}
    _, response = ask(proxy, {**fields, "input": "Read the log."})
    call = response["output"][0]["call_id"]
    huge = {"type": "function_call_output", "call_id": call, "output": source_text(random.Random(9), 200_000)}
    answer, _ = ask(proxy, {**fields, "input": [huge], "previous_response_id": response["id"]})
    assert answer.status_code == 200, answer.text
