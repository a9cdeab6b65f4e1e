"""A session that grows past the window, request by request: it overflows once at most, and keeps its prompt cache."""

import json

import pytest
from configurations import BELIEVED, STATES_STREAMED_USAGE, WINDOW, deployment
from routes import CHAT, GEMINI, MESSAGES, RESPONSES

from ctx_hooks.testing import agent_session
from ctx_hooks.testing.rules import violations

TURNS, FIRST = 16, 5
"""The last turn, and the first that is sent."""
RESULT_CHARS = 900
"""About 330 tokens: the results of a session are nearly twice the window."""
OUTPUT_TOKENS = 200
WINDOWS = {"known": WINDOW, "unknown": BELIEVED}
MODES = {"whole": False, "streamed": True}
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
    ("gemini-to-openai", "unknown", "streamed"),
    *((way, "unknown", "streamed") for way in list(WAYS)[-3:]),
]
FIELDS = {"gemini": "contents", "openai-responses": "input"}
EXCHANGE = {"openai-responses": 3}
OUTPUTS = {"openai-responses": "max_output_tokens"}


def groups(url):
    for way, window, mode in CASES:
        yield deployment(url, f"session-{way}-{window}-{mode}", WAYS[way][1], max_input_tokens=WINDOWS[window])


def run(route, session, proxy, provider):
    """Send the session turn by turn, and return what the provider got."""
    field, exchange = FIELDS.get(route.fmt, "messages"), EXCHANGE.get(route.fmt, 2)
    head = len(session[field]) - TURNS * exchange - 1
    limit = {OUTPUTS.get(route.fmt, "max_tokens"): OUTPUT_TOKENS}
    if route.fmt == "gemini":
        limit = {"generationConfig": {"maxOutputTokens": OUTPUT_TOKENS, "temperature": 0.5}}
    for turn in range(FIRST, TURNS + 1):
        logged = proxy.log().count("answered ")
        answer = route.post(proxy, {**session, **limit, field: session[field][: head + turn * exchange]})
        assert answer.status_code == 200, answer.text
        assert "Answer" in answer.text
        if route is GEMINI:  # LiteLLM logs its answers under another id; what the next turn needs is learned then
            proxy.wait_until(lambda logged=logged: proxy.log().count("answered ") > logged, "the proxy to log an answer")
        else:
            proxy.wait_for_log(f"answered {answer.headers['x-litellm-call-id']}")
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
    session = agent_session(
        route.fmt, model=f"session-{way}-{window}-{mode}", turns=TURNS, result_chars=RESULT_CHARS, thinking=route is GEMINI
    )
    records = run(route, {**session, "stream": MODES[mode]}, proxy, provider)
    refused = [r for r in records if r["status"] != 200]
    answered = [r for r in records if r["status"] == 200]
    assert len(refused) == (window == "unknown"), [r["error"] for r in refused]
    native = "gemini" if model.startswith("gemini") else route.fmt
    assert {r["format"] for r in records} == {"openai-chat" if way == "gemini-to-openai" else native}
    assert max(r["input_tokens"] for r in answered) > 0.7 * WINDOW, "the window is used"
    assert sum(r["cached_tokens"] for r in answered) / sum(r["input_tokens"] for r in answered) > 0.6
    assert "careful reviewer" in json.dumps(answered[-1]["payload"])
