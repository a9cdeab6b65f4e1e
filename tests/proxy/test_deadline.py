"""A request that cannot be compressed in time is answered all the same, without its oldest turns."""

from __future__ import annotations

import pytest
from configurations import WINDOW, deployment
from routes import CHAT, GEMINI, MESSAGES, RESPONSES
from strategies import items_of

from ctx_hooks.conversation.placeholders import MARK
from ctx_hooks.testing import agent_session
from ctx_hooks.testing.rules import violations

ROUTES = pytest.mark.parametrize(
    "route", [CHAT, MESSAGES, RESPONSES, GEMINI], ids=["chat", "messages", "responses", "gemini"]
)


def groups(url):
    for route, kind in ((CHAT, "openai"), (MESSAGES, "anthropic"), (RESPONSES, "openai"), (GEMINI, "gemini")):
        hasty = {"compression_timeout_seconds": 0.001}
        yield deployment(url, f"hasty-{route.fmt}", f"{kind}/served", max_input_tokens=WINDOW, ctx_hooks=hasty)


@ROUTES
def test_no_time_costs_the_oldest_turns_and_no_answer(route, proxy, provider):
    question = f"What is new on {route.path}?"
    payload = agent_session(route.fmt, turns=25, result_chars=2_000, model=f"hasty-{route.fmt}", question=question)
    response = route.post(proxy, payload)
    assert response.status_code == 200, response.text
    (sent,) = provider.requests()
    assert violations(sent["format"], sent["payload"]) == []
    items = items_of(sent["payload"])
    assert question in str(items[-1])
    assert MARK in str(items[:2])
    assert len(items) < len(items_of(payload))
    assert "took too long to compress" in proxy.log()
