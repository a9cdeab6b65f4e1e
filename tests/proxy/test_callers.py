"""What a caller sends never steers what is the operator's or the plugin's own, and never costs him his answer."""

from __future__ import annotations

import pytest
from configurations import BELIEVED, WINDOW, deployment
from routes import CHAT, GEMINI, MESSAGES, MESSAGES_TO_OPENAI, RESPONSES, logged

FOUR = (CHAT, MESSAGES, RESPONSES, GEMINI)
ROUTES = pytest.mark.parametrize("route", FOUR, ids=["chat", "messages", "responses", "gemini"])
STREAMED = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
OFF = {"enabled": False}
LOCKED = {"authorization": "Bearer sk-locked"}
CALLERS = {"locked": {"team_metadata": {"ctx_hooks": {"locked": ["enabled"]}}}}
POLICIES = {
    "models": {"open": OFF},
    "teams": {"vip": OFF},
    "keys": {"vip": OFF},
    "sessions": {"off:*": OFF},
    "tags": {"off": OFF},
}


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


@pytest.mark.parametrize("route", [*FOUR, MESSAGES_TO_OPENAI], ids=["chat", "messages", "responses", "gemini", "translated"])
@STREAMED
def test_loggers_are_told_what_was_sent_of_a_request(route, stream, proxy):
    """LiteLLM logs the request as it came; the figures of each attempt stand in the metadata that every logger gets."""
    own = {"owner": "me", "ctx_hooks": {"tokens_after": "forged"}}
    fields = {"metadata" if route in (CHAT, GEMINI) else "litellm_metadata": {"spend_logs_metadata": own}}
    group = "known-openai-chat" if route is MESSAGES_TO_OPENAI else f"known-{route.fmt}"
    answer = route.ask(proxy, group=group, stream=stream, **fields)
    assert answer.status_code == 200, answer.text
    told = logged(proxy, answer)["metadata"]
    assert told["owner"] == "me"
    figures = told["ctx_hooks"]
    assert (figures["decision"], figures["attempt"], figures["policy"]) == ("compressed", 0, "defaults")
    header = answer.headers["x-ctx-hooks"]
    assert f"before={figures['tokens_before']}; after={figures['tokens_after']}" in header
    assert all(isinstance(v, (int, float, str)) for v in figures.values())
