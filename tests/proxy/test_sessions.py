"""A session that grows past the window is answered turn by turn: it overflows once at most, and keeps its prompt cache."""

import json
import random

import pytest
from configurations import BELIEVED, STATES_STREAMED_USAGE, WINDOW, deployment
from routes import CHAT, GEMINI, MESSAGES, RESPONSES, events_of
from strategies import FIELDS

from ctx_hooks.testing import agent_session
from ctx_hooks.testing.conversations import read_tool, source_text
from ctx_hooks.testing.rules import violations

TURNS, FIRST = 16, 5
"""The last turn, and the first that is sent."""
RESULT_CHARS = 900
"""About 330 tokens: the results of a session are nearly twice the window."""
OUTPUT_TOKENS = 200
WINDOWS = {"known": WINDOW, "unknown": BELIEVED}
WAYS = {
    "chat": (CHAT, "openai/served"),
    "messages": (MESSAGES, "anthropic/served"),
    "responses": (RESPONSES, "openai/served"),
    "gemini": (GEMINI, "gemini/served"),
    "gemini-to-openai": (GEMINI, "openai/served"),
    "chat-to-gemini": (CHAT, "gemini/served"),
    "messages-to-gemini": (MESSAGES, "gemini/served"),
    "responses-to-gemini": (RESPONSES, "gemini/served"),
}
"""On the last three, LiteLLM opens a streamed answer only when it is read."""
CASES = [
    *((way, "unknown", "whole") for way in list(WAYS)[:3]),
    ("gemini", "unknown", "streamed"),
    ("gemini-to-openai", "known", "whole"),
    *((way, "unknown", "streamed") for way in list(WAYS)[-4:]),
]
STORED_TURNS, STORED_CHARS = 8, 2_000
"""Each result has about 600 tokens: the stored history is above the window from the fifth turn on."""


def groups(url):
    for way, window, mode in CASES:
        yield deployment(url, f"session-{way}-{window}-{mode}", WAYS[way][1], max_input_tokens=WINDOWS[window])
    for window, tokens in WINDOWS.items():
        yield deployment(url, f"files-{window}", f"openai/files-{window}", max_input_tokens=tokens)


def run(route, session, proxy, provider):
    """Send the session turn by turn, and return what the provider got."""
    field, exchange = FIELDS[route.fmt], 3 if route is RESPONSES else 2
    head = len(session[field]) - TURNS * exchange - 1
    limit = {"max_output_tokens" if route is RESPONSES else "max_tokens": OUTPUT_TOKENS}
    if route is GEMINI:
        limit = {"generationConfig": {"maxOutputTokens": OUTPUT_TOKENS, "temperature": 0.5}}
    learned = f"learned of {session['model']}\n"
    for n, turn in enumerate(range(FIRST, TURNS + 1), 1):
        answer = route.post(proxy, {**session, **limit, field: session[field][: head + turn * exchange]})
        assert answer.status_code == 200, answer.text
        assert "Answer" in answer.text
        proxy.wait_until(lambda n=n: proxy.log().count(learned) == n, "what the next turn needs to be learned")
    records = provider.requests()
    assert [r["status"] for r in records].count(200) == TURNS + 1 - FIRST
    assert all(violations(r["format"], r["payload"]) == [] for r in records)
    assert {r["max_tokens"] for r in records} == {OUTPUT_TOKENS}, "this provider does not count the output"
    return records


@pytest.mark.parametrize(("way", "window", "mode"), CASES, ids=["-".join(case) for case in CASES])
def test_session_overflows_once_at_most(way, window, mode, proxy, provider):
    route, model = WAYS[way]
    billed = way != "gemini-to-openai" or mode == "whole" or STATES_STREAMED_USAGE
    provider.configure(wording="gemini", tokens_factor=1.1 if billed else 1.0)
    told = {"turns": TURNS, "result_chars": RESULT_CHARS, "thinking": route is GEMINI}
    session = agent_session(route.fmt, model=f"session-{way}-{window}-{mode}", **told)
    records = run(route, {**session, "stream": mode == "streamed"}, proxy, provider)
    answered = [r for r in records if r["status"] == 200]
    assert len(records) - len(answered) == (window == "unknown"), [r["error"] for r in records]
    native = "gemini" if model.startswith("gemini") else route.fmt
    assert {r["format"] for r in records} == {"openai-chat" if way == "gemini-to-openai" else native}
    assert max(r["input_tokens"] for r in answered) > 0.7 * WINDOW, "the window is used"
    assert sum(r["cached_tokens"] for r in answered) / sum(r["input_tokens"] for r in answered) > 0.6
    assert "careful reviewer" in json.dumps(answered[-1]["payload"])


@pytest.mark.parametrize(("window", "stream"), [("unknown", True), ("known", False)])
def test_stored_history_costs_one_refusal_a_turn(window, stream, proxy, provider):
    """The session reads a file a turn, and sends each result behind the history that the provider keeps."""
    results = [source_text(random.Random(turn), STORED_CHARS) for turn in range(STORED_TURNS)]
    sent = {
        "model": f"files-{window}",
        "tools": [read_tool("openai-responses")],
        "instructions": "Review.",
        "stream": stream,
    }
    fields = {"input": "Read every file, one after another."}
    for result in (*results, None):
        answer = RESPONSES.post(proxy, {**sent, **fields})
        assert answer.status_code == 200, answer.text
        response = events_of(answer.text)[-1]["response"] if stream else answer.json()
        call = next(item["call_id"] for item in response["output"] if item["type"] == "function_call")
        output = {"type": "function_call_output", "call_id": call, "output": result}
        fields = {"input": [output], "previous_response_id": response["id"]}
    records = provider.requests()
    outputs = [r["payload"]["input"][0]["output"] for r in records[1:]]
    assert set(outputs) == set(results), "no fresh result is cut"
    said = [(r["status"], r["payload"].get("truncation")) for r in records]
    assert said[:4] == [(200, None)] * 4, "nothing is asked for while the history fits"
    assert said[5:] == [(400, None), (200, "auto")] * (len(said[5:]) // 2)
