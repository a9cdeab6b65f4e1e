"""A session that grows past the window, request by request: it overflows at most once and keeps its prompt cache."""

from __future__ import annotations

import random

import pytest
from configurations import served
from routes import CHAT, MESSAGES, RESPONSES

from ctx_hooks.testing import ProviderSettings, agent_session
from ctx_hooks.testing.conversations import source_text
from ctx_hooks.testing.rules import violations

WINDOW = 20_000
TURNS = 30
EXCHANGE = {"openai-chat": 2, "anthropic": 2, "openai-responses": 3}
HEAD = {"openai-chat": 2, "anthropic": 1, "openai-responses": 1}
OUTPUT = {"openai-chat": "max_tokens", "anthropic": "max_tokens", "openai-responses": "max_output_tokens"}
ROUTES = pytest.mark.parametrize("route", [CHAT, MESSAGES, RESPONSES], ids=["chat", "messages", "responses"])


@pytest.fixture(scope="module")
def growing():
    with served(
        ProviderSettings(window_tokens=WINDOW, wording="anthropic"),
        ("grown-openai-chat", "openai/chat", {}),
        ("grown-anthropic", "anthropic/messages", {}),
        ("grown-openai-responses", "openai/responses", {}),
    ) as pair:
        yield pair


@ROUTES
def test_after_its_only_overflow_a_session_is_compacted_rarely(route, growing):
    """Half of the window is system text and the client asks for half of it as output, as coding agents do."""
    proxy, provider = growing
    provider.reset()
    fmt = route.fmt
    session = agent_session(fmt, model=f"grown-{fmt}", turns=TURNS, result_chars=2_000)
    instructions = source_text(random.Random(1), 30_000)
    messages = session.pop("input" if fmt == "openai-responses" else "messages")
    if fmt == "openai-chat":
        messages[0]["content"] = instructions
    else:
        session["system" if fmt == "anthropic" else "instructions"] = instructions
    for turn in range(TURNS + 1):
        sent = messages[: HEAD[fmt] + turn * EXCHANGE[fmt]]
        payload = {**session, ("input" if fmt == "openai-responses" else "messages"): sent, OUTPUT[fmt]: 10_000}
        answer = route.post(proxy, payload)
        assert answer.status_code == 200, answer.text
    records = provider.requests()
    assert [r["status"] for r in records].count(400) == 1
    answered = [r for r in records if r["status"] == 200]
    assert all(violations(fmt, r["payload"]) == [] for r in answered)
    refused = [r["status"] for r in records].index(400)
    assert max(r["input_tokens"] for r in records[refused + 1 :]) > 0.8 * WINDOW, "the window is used"
    assert {r["max_tokens"] for r in records} == {10_000}, "this provider has shown that it does not count the output"
    cached = [r["cached_tokens"] / r["input_tokens"] for r in answered[1:]]
    compacted = [share for share in cached if share < 0.8]
    assert len(compacted) <= 5
    assert min(cached) > 0.4, "the system text stays in front of every request, byte for byte"
