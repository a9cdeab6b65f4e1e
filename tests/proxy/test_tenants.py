"""Whatever one tenant sends, and whatever the provider answers it, another tenant's request is sent as it came."""

import json

import pytest
from configurations import deployment
from fastapi import Request, Response
from fastapi.responses import JSONResponse
from routes import CHAT, MESSAGES, RESPONSES
from strategies import FIELDS

from ctx_hooks.testing import agent_session

WINDOW = 32_000
ROOMY = {"windows": {}, "window_tokens": WINDOW, "wording": "openai", "max_output_tokens": None}
MODELS = {CHAT: "openai/chat", MESSAGES: "anthropic/messages", RESPONSES: "openai/responses"}
ATTACKS = {
    "a window of one token": {"window_tokens": 1},
    "no figures": {"window_tokens": 1, "wording": "bedrock"},
    "a limit a minute": {"window_tokens": 1, "wording": "rate_limited"},
    "a cap of the output": {"max_output_tokens": 256},
}
REFUSED = [(attack, list(MODELS)[n % 3]) for n, attack in enumerate(ATTACKS)]
SAID = "This model's maximum context length is 1200 tokens. However, your messages resulted in 3000 tokens."


def groups(url):
    for route, model in MODELS.items():
        yield deployment(url, f"tenant-{route.fmt}", model, max_input_tokens=WINDOW, id=f"id-tenant-{route.fmt}")


def elsewhere_groups(url):
    for route, model in MODELS.items():
        yield deployment(url, f"quoting-{route.fmt}", model, max_input_tokens=WINDOW, id=f"id-quoting-{route.fmt}")


def post(proxy, route, team, group, turns, **fields):
    session = agent_session(route.fmt, model=f"{group}-{route.fmt}", turns=turns, result_chars=1_000)
    return route.post(proxy, session | fields, headers={"Authorization": f"Bearer sk-{team}"}), session[FIELDS[route.fmt]]


def victim_gets_all(proxy, provider, route, group):
    """Send another team's request of some 12,000 tokens, and see it arrive as it came."""
    provider.reset(**ROOMY)
    limit = {"max_output_tokens" if route is RESPONSES else "max_tokens": 2_000}
    answer, messages = post(proxy, route, "victim", group, 38, **limit)
    assert answer.status_code == 200, answer.text
    (only,) = provider.requests()
    assert only["input_tokens"] > 11_000
    assert only["max_tokens"] == 2_000
    assert json.dumps(only["payload"][FIELDS[route.fmt]]) == json.dumps(messages)


@pytest.mark.parametrize(("attack", "route"), REFUSED, ids=[f"{attack}, {route.fmt}" for attack, route in REFUSED])
def test_refusals_of_one_tenant_cut_no_other(attack, route, proxy, provider):
    provider.configure(**ROOMY | ATTACKS[attack])
    for turns in (8, 12):
        post(proxy, route, "attacker", "tenant", turns)
    victim_gets_all(proxy, provider, route, "tenant")


@pytest.mark.parametrize(("route", "teams"), [
    (CHAT, ("first", "second")), (MESSAGES, ("victim", "victim")), (RESPONSES, ("first", "second")),
    (CHAT, ("victim", "victim")),
], ids=lambda value: getattr(value, "fmt", "-".join(value) if isinstance(value, tuple) else ""))  # fmt: skip
def test_quoted_field_of_one_request_cuts_no_other(route, teams, proxy, provider, elsewhere, pass_on):
    """A server refuses a request because of its service tier, which it quotes; the provider answers others."""
    quoted = []

    async def answer(request: Request) -> Response:
        tier = (await request.json()).get("service_tier")
        if tier is None:
            return await pass_on(request)
        quoted.append(tier)
        text = f"Invalid value: '{tier}'. Supported values are: 'auto', 'default'."
        error = {"message": text, "type": "invalid_request_error", "param": "service_tier", "code": "invalid_value"}
        return JSONResponse({"error": error}, 400)

    elsewhere.answer = answer
    for team in teams:
        for turns in (8, 12):
            told, _ = post(proxy, route, team, "quoting", turns, service_tier=SAID)
            assert (told.status_code, "Invalid value" in told.text) == (400, True)
            assert "new conversation" not in told.text, "it is the provider's error, and no overflow"
    assert len(quoted) == 4, "none was retried"
    victim_gets_all(proxy, provider, route, "quoting")
