"""Cursor's agent sends Responses requests to a chat route, where the proxy and the Router write to different metadata."""

import json

import pytest
from configurations import WINDOW, deployment
from routes import Route, events_of

from ctx_hooks.testing import violations

PATH = "/cursor/chat/completions"
CURSOR = Route(PATH, "openai-responses", "cursor-whole", "cursor-known", "hopeless")
CHAT_FORM = Route(PATH, "openai-chat", "cursor-chat", "fitted", "hopeless")
OFFERS = {"retrieval": True, "rescue_attempts": 3}
over_forms = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


def groups(url):
    for name in ("cursor-whole", "cursor-streamed", "cursor-chat"):
        yield deployment(url, name, "openai/served", ctx_hooks=OFFERS)
    yield deployment(url, "cursor-known", "openai/served", max_input_tokens=WINDOW, ctx_hooks=OFFERS)
    yield deployment(url, "cursor-seeker", "openai/seeker", max_input_tokens=4_000, ctx_hooks=OFFERS)
    yield deployment(url, "cursor-off", "openai/served", ctx_hooks={"mode": "off"})


def texts(answer, *, stream):
    """Return the text of an answer in chat's form, and the models that it names."""
    events = events_of(answer.text) if stream else [answer.json()]
    parts = [choice.get("delta") or choice.get("message") or {} for event in events for choice in event["choices"]]
    return "".join(part.get("content") or "" for part in parts).strip(), {event["model"] for event in events}


@over_forms
def test_request_is_fitted_to_known_window(stream, proxy, provider):
    answer = CURSOR.ask(proxy, group="cursor-known", stream=stream)
    assert answer.status_code == 200, answer.text
    (accepted,) = provider.requests()
    assert (accepted["format"], violations(accepted["format"], accepted["payload"])) == ("openai-responses", [])
    assert answer.headers["x-ctx-hooks-decision"] == "compressed"
    assert texts(answer, stream=stream) == ("Answer to what was asked.", {"cursor-known"})


@over_forms
def test_refused_request_is_retried(stream, proxy, provider):
    group = f"cursor-{'streamed' if stream else 'whole'}"
    answer = CURSOR.ask(proxy, group=group, stream=stream)
    assert answer.status_code == 200, answer.text
    assert [record["status"] for record in provider.requests()] == [400, 200]
    assert answer.headers["x-ctx-hooks-decision"] == "retried"
    assert answer.headers["x-litellm-attempted-fallbacks"] == "0"
    assert texts(answer, stream=stream) == ("Answer to what was asked.", {group})


@over_forms
def test_provider_gets_no_key_of_plugin(stream, proxy, provider):
    """LiteLLM sends its own metadata there."""
    metadata = {"ctx_hooks": {"language": "zh"}, "purpose": "a test"}
    for group in ("cursor-known", "cursor-off"):
        provider.reset()
        CURSOR.ask(proxy, group=group, stream=stream, metadata=metadata)
        sent = provider.requests()[0]["payload"]
        assert sent["metadata"]["purpose"] == "a test"
        assert group == "cursor-off" or "ctx_hooks" not in json.dumps(sent["metadata"])


def test_chat_form_of_route_is_chat(proxy, provider):
    answer = CHAT_FORM.ask(proxy)
    assert answer.status_code == 200, answer.text
    assert [(record["format"], record["status"]) for record in provider.requests()] == [
        ("openai-chat", 400),
        ("openai-chat", 200),
    ]
