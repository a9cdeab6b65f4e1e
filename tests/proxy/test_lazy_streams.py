"""A streamed answer that LiteLLM opens only when it is read teaches what any other teaches."""

from __future__ import annotations

import pytest
from configurations import PLUGIN, configuration, deployment, importable
from proxies import Proxy
from routes import CHAT, MESSAGES, RESPONSES

from ctx_hooks.testing import FakeProvider, ProviderSettings, agent_session

WINDOW = 12_000
TURNS = 25
HEAD = {"openai-chat": 2, "anthropic": 1, "openai-responses": 1}
EXCHANGE = {"openai-chat": 2, "anthropic": 2, "openai-responses": 3}
GROUPS = {CHAT: "chat", MESSAGES: "messages", RESPONSES: "responses"}
FIRST = {CHAT: 1, MESSAGES: 13, RESPONSES: 13}
"""The turn at which a session comes to the proxy: one from its start, the others shortly before they outgrow the window."""
BILLED = """
from litellm.integrations.custom_logger import CustomLogger

class Billed(CustomLogger):
    async def async_log_success_event(self, kwargs, response_obj, start_time, end_time):
        usage = response_obj["usage"]
        tokens = usage.get("prompt_tokens") or usage.get("input_tokens")
        print(f"billed {tokens} for {kwargs['litellm_call_id']}", flush=True)

handler = Billed()
"""
"""A second callback: LiteLLM tells them in their order, so the plugin has learned by then."""


@pytest.fixture(scope="module")
def google(tmp_path_factory):
    environment = importable(tmp_path_factory.mktemp("billed"), "billed", BILLED)
    with FakeProvider(ProviderSettings(window_tokens=WINDOW, wording="gemini", tokens_factor=1.2)) as provider:
        models = (deployment(provider.url, group, "gemini/served") for group in GROUPS.values())
        config = configuration(provider.url, *models, litellm_settings={"callbacks": [PLUGIN, "billed.handler"]})
        with Proxy(config, environment) as proxy:
            yield proxy, provider


@pytest.mark.parametrize("route", GROUPS, ids=GROUPS.values())
def test_a_session_that_outgrows_the_window_overflows_once_and_every_turn_is_answered(route, google):
    proxy, provider = google
    provider.reset()
    fmt = route.fmt
    session = agent_session(fmt, model=GROUPS[route], turns=TURNS, result_chars=2_000)
    field = "input" if route is RESPONSES else "messages"
    for turn in range(FIRST[route], TURNS + 1):
        sent = session[field][: HEAD[fmt] + turn * EXCHANGE[fmt]]
        answer = route.post(proxy, {**session, field: sent, "stream": True})
        assert answer.status_code == 200, answer.text
        assert "Answer" in answer.text
        billed = provider.requests()[-1]["input_tokens"]
        proxy.wait_for_log(f"billed {billed} for {answer.headers['x-litellm-call-id']}")
    statuses = [r["status"] for r in provider.requests()]
    assert statuses.count(200) == TURNS + 1 - FIRST[route]
    assert statuses.count(400) == 1
