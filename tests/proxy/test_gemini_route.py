"""Google's own routes: a session that outgrows the window, to Google's models and, translated, to others."""

from __future__ import annotations

import json

import pytest
from configurations import BELIEVED, served
from routes import GEMINI

from ctx_hooks.testing import ProviderSettings, agent_session, violations

WINDOW = 60_000
TURNS = 25
RESULT_CHARS = 12_000
"""About 3,500 tokens: 25 results are one and a half windows."""
OUTPUT_TOKENS = 4_000
PROVIDERS = {"natively": "gemini/served", "translated": "openai/served"}
WINDOWS = {"known": WINDOW, "unknown": BELIEVED}
MODES = {"whole": False, "streamed": True}
WAYS = [(way, window, mode) for way in PROVIDERS for window in WINDOWS for mode in MODES]


@pytest.fixture(scope="module")
def google():
    groups = [
        ("-".join(case), PROVIDERS[case[0]], {"max_input_tokens": WINDOWS[case[1]], "id": "-".join(case)}) for case in WAYS
    ]
    small = ("small", "gemini/small", {"max_input_tokens": 1_000})
    with served(ProviderSettings(window_tokens=WINDOW, wording="gemini", tokens_factor=1.1), *groups, small) as pair:
        yield pair


def sent(contents, turns):
    """Return the contents of the request that follows so many rounds of tools."""
    return contents[: 1 + 2 * turns]


@pytest.mark.parametrize(("way", "window", "mode"), WAYS, ids=["-".join(case) for case in WAYS])
def test_a_session_of_25_tool_calls_is_answered_throughout(way, window, mode, google):
    """At most one request overflows, none where the window is known, and what is sent breaks no rule of its provider."""
    proxy, provider = google
    provider.reset()
    session = agent_session("gemini", model=f"{way}-{window}-{mode}", turns=TURNS, result_chars=RESULT_CHARS, thinking=True)
    session["generationConfig"] = {"maxOutputTokens": OUTPUT_TOKENS, "temperature": 0.5}
    for turns in range(TURNS + 1):
        answer = GEMINI.post(proxy, {**session, "contents": sent(session["contents"], turns), "stream": MODES[mode]})
        assert answer.status_code == 200, answer.text
        assert "Answer" in answer.text
    records = provider.requests()
    refused = [r for r in records if r["status"] != 200]
    answered = [r for r in records if r["status"] == 200]
    assert len(answered) == TURNS + 1
    assert len(refused) <= (1 if window == "unknown" else 0), [r["error"] for r in refused]
    assert {r["format"] for r in records} == {"gemini" if way == "natively" else "openai-chat"}
    assert all(violations(r["format"], r["payload"]) == [] for r in records)
    assert max(r["input_tokens"] for r in answered) > 0.7 * WINDOW, "the window is used"
    assert {r["max_tokens"] for r in records} == {OUTPUT_TOKENS}
    assert sum(r["cached_tokens"] for r in answered) / sum(r["input_tokens"] for r in answered) > 0.7
    assert "careful reviewer" in json.dumps(answered[-1]["payload"])


def test_a_request_that_nothing_cures_ends_in_googles_form(google):
    proxy, provider = google
    provider.reset(windows={"small": 1_000})
    question = {"role": "user", "parts": [{"text": "Why is the sky blue? " * 400}]}
    answer = GEMINI.post(proxy, {"model": "small", "contents": [question]})
    error = answer.json()["error"]
    assert answer.status_code == error["code"] == 400
    assert error["status"] == "INVALID_ARGUMENT"
    (only,) = provider.requests()
    counts = f"({only['input_tokens']}) exceeds the maximum number of tokens allowed (1000)."
    assert error["message"].startswith(f"The input token count {counts}")
