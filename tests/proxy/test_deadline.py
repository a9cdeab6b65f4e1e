"""A request that cannot be compressed in time is answered all the same, without its oldest turns."""

from __future__ import annotations

import pytest
from configurations import WINDOW, configuration, deployment
from proxies import Proxy
from routes import CHAT, GEMINI, MESSAGES, RESPONSES
from strategies import items_of

from ctx_hooks.conversation.placeholders import MARK
from ctx_hooks.testing import agent_session
from ctx_hooks.testing.rules import violations

ROUTES = pytest.mark.parametrize(
    "route", [CHAT, MESSAGES, RESPONSES, GEMINI], ids=["chat", "messages", "responses", "gemini"]
)


@pytest.fixture(scope="module")
def hasty_proxy(provider):
    url = provider.url
    models = (
        deployment(url, "openai-chat", "openai/served", max_input_tokens=WINDOW),
        deployment(url, "anthropic", "anthropic/served", max_input_tokens=WINDOW),
        deployment(url, "openai-responses", "openai/served", max_input_tokens=WINDOW),
        deployment(url, "gemini", "gemini/served", max_input_tokens=WINDOW),
    )
    settings = {"defaults": {"compression_timeout_seconds": 0.001}}
    with Proxy(configuration(url, *models, callback_settings={"ctx_hooks": settings})) as running:
        yield running


@ROUTES
def test_no_time_costs_the_oldest_turns_and_no_answer(hasty_proxy, provider, route):
    question = f"What is new on {route.path}?"
    payload = agent_session(route.fmt, turns=300, model=route.fmt, question=question)
    response = route.post(hasty_proxy, payload)
    assert response.status_code == 200, response.text
    (sent,) = provider.requests()
    assert violations(sent["format"], sent["payload"]) == []
    items = items_of(sent["payload"])
    assert question in str(items[-1])
    assert MARK in str(items[:2])
    assert len(items) < len(items_of(payload))
    assert "took too long to compress" in hasty_proxy.log()
