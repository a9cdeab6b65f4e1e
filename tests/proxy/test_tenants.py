"""Whatever one tenant sends, and whatever the provider answers it, another tenant's request is sent as it came."""

import json

import pytest
from configurations import deployment
from fastapi import Request, Response
from fastapi.responses import JSONResponse
from routes import CHAT, MESSAGES, RESPONSES
from strategies import FIELDS

from ctx_hooks.testing import LOOPBACK, agent_session

WINDOW = 32_000
MODELS = {"openai-chat": "openai/chat", "anthropic": "anthropic/messages", "openai-responses": "openai/responses"}


def groups(url):
    for name, model in MODELS.items():
        yield deployment(url, f"tenant-{name}", model, max_input_tokens=WINDOW, id=f"id-tenant-{name}")


@pytest.fixture(autouse=True)
def _roomy(provider):
    provider.reset(windows={}, window_tokens=WINDOW)


def post(proxy, route, team, payload, **headers):
    headers["Authorization"] = f"Bearer sk-{team}"
    return LOOPBACK.post(proxy.url + route.path, json=payload, headers=headers, timeout=300)


def session(route, turns=10, model=None, **fields):
    return {**agent_session(route.fmt, model=model or f"tenant-{route.fmt}", turns=turns, result_chars=1_000), **fields}


def victim_gets_all(proxy, provider, route, model=None):
    """Send another team's request of some 12,000 tokens, and see it arrive as it came."""
    provider.reset(windows={}, window_tokens=WINDOW, wording="openai", max_output_tokens=None)
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
    "no figures": {"window_tokens": 1, "wording": "bedrock"},
    "a limit a minute": {"window_tokens": 1, "wording": "rate_limited"},
    "a cap of the output": {"max_output_tokens": 256},
}


CASES = [(attack, (CHAT, MESSAGES, RESPONSES)[n % 3]) for n, attack in enumerate(ATTACKS)]


@pytest.mark.parametrize(("attack", "route"), CASES, ids=[f"{attack}, {route.fmt}" for attack, route in CASES])
def test_refusals_of_one_tenant_cut_no_other(attack, route, proxy, provider):
    provider.configure(**ATTACKS[attack])
    for turns in (8, 12):
        post(proxy, route, "attacker", session(route, turns=turns))
    victim_gets_all(proxy, provider, route)


SAID = "This model's maximum context length is 1200 tokens. However, your messages resulted in 3000 tokens."


def elsewhere_groups(url):
    for name, model in MODELS.items():
        yield deployment(url, f"quoting-{name}", model, max_input_tokens=WINDOW, id=f"id-quoting-{name}")


@pytest.fixture
def quoted(elsewhere, pass_on):
    """The requests that a server has refused because of their service tier, which it quotes; the provider answers others."""
    refused = []

    async def answer(request: Request) -> Response:
        body = await request.json()
        if "service_tier" in body:
            refused.append(body)
            text = f"Invalid value: '{body['service_tier']}'. Supported values are: 'auto', 'default'."
            error = {"message": text, "type": "invalid_request_error", "param": "service_tier", "code": "invalid_value"}
            return JSONResponse({"error": error}, 400)
        return await pass_on(request)

    elsewhere.answer = answer
    return refused


@pytest.mark.parametrize(("route", "teams"), [
    (CHAT, ("first", "second")), (MESSAGES, ("victim", "victim")), (RESPONSES, ("first", "second")),
    (CHAT, ("victim", "victim")),
], ids=str)  # fmt: skip
def test_quoted_field_of_one_request_cuts_no_other(route, teams, proxy, provider, quoted):
    for team in teams:
        for turns in (8, 12):
            payload = session(route, turns=turns, model=f"quoting-{route.fmt}", service_tier=SAID)
            answer = post(proxy, route, team, payload)
            assert answer.status_code == 400
            assert "Invalid value" in answer.text
            assert "new conversation" not in answer.text, "it is the provider's error, and no overflow"
    assert len(quoted) == 4, "none was retried"
    victim_gets_all(proxy, provider, route, model=f"quoting-{route.fmt}")
