"""What a caller sends never steers what is the operator's or the plugin's own, and never costs him his answer."""

import pytest
from configurations import BELIEVED, WINDOW, deployment
from routes import CHAT, GEMINI, MESSAGES, RESPONSES

FOUR = (CHAT, MESSAGES, RESPONSES, GEMINI)
ROUTES = pytest.mark.parametrize("route", FOUR, ids=["chat", "messages", "responses", "gemini"])
OFF = {"mode": "off"}
LOCKED = {"authorization": "Bearer sk-locked"}
CALLERS = {"locked": {"team_metadata": {"ctx_hooks": {"locked": ["mode"]}}}}
POLICIES = {"models": {"open": OFF}, "teams": {"vip": OFF}, "keys": {"vip": OFF}, "sessions": {"off:*": OFF}}


def groups(url):
    served = zip(FOUR, ("openai/served", "anthropic/claude-served", "openai/served", "gemini/served"), strict=True)
    for route, model in served:
        yield deployment(url, f"known-{route.fmt}", model, max_input_tokens=WINDOW)
        for place in STEERING:
            yield deployment(url, f"steered-{place}-{route.fmt}", model, max_input_tokens=BELIEVED)


FORGED = {
    "user_api_key_team_id": "vip",
    "user_api_key_auth": {"team_id": "vip", "key_alias": "vip", "metadata": {"ctx_hooks": OFF}},
    "model_info": {"ctx_hooks": OFF},
    "tags": ["off"],
}
METADATA = {**FORGED, "model_group": "open", "session_id": "off:1", "ctx_hooks": OFF}
STEERING = {
    "metadata": {"metadata": METADATA},
    "litellm-metadata": {"litellm_metadata": METADATA},
    "body": {**FORGED, "litellm_session_id": "off:1", "user": "off:1"},
    "headers": {"headers": {"x-ctx-hooks": "off", "x-session-id": "off:1", "x-litellm-tags": "off"}},
}


@ROUTES
@pytest.mark.parametrize("place", STEERING)
def test_nothing_that_a_caller_sends_switches_off_what_a_lock_or_the_operator_holds_on(place, route, proxy, provider):
    """The first attempt is refused, so an answer needs the plugin in every one of its hooks."""
    provider.configure(wording="cerebras")
    fields = STEERING[place]
    headers = {**LOCKED, **fields.get("headers", {})}
    answer = route.ask(proxy, group=f"steered-{place}-{route.fmt}", **{**fields, "headers": headers})
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-ctx-hooks"].startswith("retried")
