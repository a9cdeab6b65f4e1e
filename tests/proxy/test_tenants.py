"""Whatever one tenant sends, and whatever the provider answers it, another tenant's request is sent as it came."""

from __future__ import annotations

import concurrent.futures
import json

import pytest
from configurations import GENERAL, configuration, deployment, importable
from proxies import Proxy
from routes import CHAT, MESSAGES, RESPONSES

from ctx_hooks.testing import LOOPBACK, FakeProvider, ProviderSettings, agent_session

WINDOW = 32_000
FIELDS = {"openai-chat": "messages", "anthropic": "messages", "openai-responses": "input"}
AUTH = """
from litellm.proxy._types import UserAPIKeyAuth

async def user_api_key_auth(request, api_key):
    return UserAPIKeyAuth(api_key=api_key, team_id=api_key.removeprefix("sk-team-"))
"""


@pytest.fixture(scope="module")
def provider():
    with FakeProvider(ProviderSettings(window_tokens=WINDOW)) as running:
        yield running


@pytest.fixture(scope="module")
def proxy(provider, tmp_path_factory):
    models = (
        deployment(provider.url, "openai-chat", "openai/chat", max_input_tokens=WINDOW),
        deployment(provider.url, "openai-responses", "openai/responses", max_input_tokens=WINDOW),
        deployment(provider.url, "anthropic", "anthropic/messages", max_input_tokens=WINDOW),
        deployment(provider.url, "many/*", "openai/*", max_input_tokens=WINDOW),
    )
    config = configuration(
        provider.url, *models, general_settings={**GENERAL, "custom_auth": "tenant_auth.user_api_key_auth"}
    )
    with Proxy(config, importable(tmp_path_factory.mktemp("auth"), "tenant_auth", AUTH)) as running:
        yield running


@pytest.fixture(autouse=True)
def _as_it_was(provider):
    yield
    provider.reset(windows={}, window_tokens=WINDOW, wording="openai", max_output_tokens=None, silent_truncation=False)


def post(proxy, route, team, payload, **headers):
    headers["Authorization"] = f"Bearer sk-team-{team}"
    return LOOPBACK.post(proxy.url + route.path, json=payload, headers=headers, timeout=120)


def session(route, turns=10, model=None, **fields):
    return {**agent_session(route.fmt, model=model or route.fmt, turns=turns, result_chars=1_000), **fields}


def victim_gets_all(proxy, provider, route, model=None):
    """Send another team's request of some 12,000 tokens, and see it arrive as it came."""
    provider.reset(windows={}, window_tokens=WINDOW, wording="openai", max_output_tokens=None, silent_truncation=False)
    payload = session(route, turns=38, model=model)
    payload["max_output_tokens" if route is RESPONSES else "max_tokens"] = 2_000
    answer = post(proxy, route, "victim", payload)
    assert answer.status_code == 200, answer.text
    (only,) = provider.requests()
    assert only["input_tokens"] > 11_000
    assert only["max_tokens"] == 2_000
    field = FIELDS[route.fmt]
    assert json.dumps(only["payload"][field]) == json.dumps(payload[field])


ATTACKS = {
    "a window of one token": {"window_tokens": 1},
    "a window of 500 tokens": {"window_tokens": 500},
    "no figures": {"window_tokens": 1, "wording": "bedrock"},
    "a limit a minute": {"window_tokens": 1, "wording": "rate_limited"},
    "a cap of the output": {"max_output_tokens": 256},
    "silent truncation": {"window_tokens": 1_000, "silent_truncation": True},
}


@pytest.mark.parametrize("route", [CHAT, MESSAGES, RESPONSES], ids=["chat", "messages", "responses"])
@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_what_the_provider_tells_one_tenant_is_not_believed_of_another(attack, route, proxy, provider):
    provider.reset(**attack)
    for turns in (8, 12):
        post(proxy, route, "attacker", session(route, turns=turns))
    victim_gets_all(proxy, provider, route)


def test_a_refusal_of_what_only_the_provider_can_count_teaches_nothing(proxy, provider):
    provider.reset(window_tokens=1, wording="bedrock")
    tools = [{"type": "mcp", "server_label": "docs", "server_url": "https://mcp.example.com"}]
    for _ in range(2):
        post(proxy, RESPONSES, "victim", session(RESPONSES, tools=tools))
    victim_gets_all(proxy, provider, RESPONSES)


def test_requests_with_one_call_id_are_not_taken_for_one_another(proxy, provider):
    """A client's static trace id: one request's bill compared with another's size would look like a truncation."""
    payloads = [session(CHAT, turns=turns, user=str(turns)) for turns in (1, 30, 2, 35, 1, 40)]
    with concurrent.futures.ThreadPoolExecutor() as threads:
        answers = list(threads.map(lambda p: post(proxy, CHAT, "victim", p, **{"x-litellm-call-id": "same"}), payloads))
    assert [a.status_code for a in answers] == [200] * len(payloads)
    assert "refuses nothing that is too long" not in proxy.log()
    victim_gets_all(proxy, provider, CHAT)


def test_a_long_line_of_dashes_teach_nothing(proxy, provider):
    for _ in range(2):
        payload = {"model": "openai-chat", "messages": [{"role": "user", "content": "-" * 300_000}]}
        assert post(proxy, CHAT, "victim", payload).status_code in (200, 400)
    victim_gets_all(proxy, provider, CHAT)


def test_models_behind_a_wildcard_have_a_limit_each(proxy, provider):
    provider.reset(windows={"small": 4_000, "large": WINDOW})
    assert post(proxy, CHAT, "victim", session(CHAT, turns=30, model="many/small")).status_code == 200
    assert [r["status"] for r in provider.requests()] == [400, 200]
    victim_gets_all(proxy, provider, CHAT, model="many/large")


@pytest.mark.parametrize("route", [CHAT, MESSAGES, RESPONSES], ids=["chat", "messages", "responses"])
def test_an_id_that_a_caller_sends_for_our_own_is_not_believed(route, proxy, provider):
    """Of two requests that name the same id each is rescued on its own, and what it was refused is its own."""
    provider.reset(windows={"chat": 2_000, "messages": 2_000, "responses": 2_000})
    metadata = {"ctx_hooks_request": "mine"}
    payloads = [
        {**agent_session(route.fmt, model=route.fmt, seed=seed, result_chars=1_000), "litellm_metadata": metadata}
        for seed in range(4)
    ]
    if route is CHAT:
        payloads = [{**p, "metadata": metadata} for p in payloads]
    with concurrent.futures.ThreadPoolExecutor() as threads:
        answers = list(threads.map(lambda p: post(proxy, route, "forger", p), payloads))
    assert [a.status_code for a in answers] == [200] * len(payloads), [a.text for a in answers]
