"""How a request ends that is not simply answered by its own model: the client leaves, or another group takes over."""

from __future__ import annotations

import http.client
import json

import httpx
import pytest
from configurations import GENERAL, PLUGIN, served
from routes import CHAT, MESSAGES, RESPONSES

from ctx_hooks.testing import ProviderSettings

ROUTES = pytest.mark.parametrize("route", [CHAT, MESSAGES, RESPONSES], ids=["chat", "messages", "responses"])


@pytest.fixture(scope="module")
def ending():
    fallbacks = [{"first": ["second"]}, {"second": ["third"]}]
    with served(
        ProviderSettings(windows={"tiny": 60, "narrow": 6_000, "wide": 12_000}),
        ("left", "openai/tiny", {}),
        ("left-claude", "anthropic/tiny", {}),
        ("first", "openai/tiny", {"ctx_hooks": {"rescue_attempts": 1}}),
        ("second", "openai/narrow", {"max_input_tokens": 6_000}),
        ("third", "openai/wide", {"max_input_tokens": 12_000}),
        litellm_settings={"callbacks": [PLUGIN], "context_window_fallbacks": fallbacks},
        general_settings={**GENERAL, "cancel_on_disconnect": True},
    ) as pair:
        yield pair


@ROUTES
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_client_that_leaves_ends_the_retries(route, stream, ending):
    """The provider sees the call end with the client, and no other attempt comes before what the proxy is asked next."""
    proxy, provider = ending
    provider.reset(holds=True)
    group = "left-claude" if route is MESSAGES else "left"
    payload = {"model": group, "max_tokens": 100, "stream": stream}
    talk = [{"role": ("user", "assistant")[n % 2], "content": f"{n} " + "word " * 400} for n in range(21)]
    payload["input" if route is RESPONSES else "messages"] = talk
    address = httpx.URL(proxy.url)
    client = http.client.HTTPConnection(address.host, address.port)
    try:
        client.request("POST", route.path, json.dumps(payload), {**proxy.headers, "Content-Type": "application/json"})
        provider.wait_until(lambda records: len(records) == 1)
        client.close()
        provider.wait_until(lambda records: records[0]["left"])
    finally:
        provider.configure(holds=False)
    assert CHAT.post(proxy, {"model": "third", "messages": [{"role": "user", "content": "hi"}]}).status_code == 200
    assert [r["model"] for r in provider.requests()] == ["tiny", "wide"]


@pytest.mark.parametrize("route", [CHAT, RESPONSES], ids=["chat", "responses"])
def test_a_fallback_to_another_group_is_fitted_to_the_window_of_that_group(route, ending):
    proxy, provider = ending
    provider.reset()
    answer = route.ask(proxy, group="first")
    assert answer.status_code == 200, answer.text
    records = provider.requests()
    assert {r["model"] for r in records[:-1]} == {"tiny"}, "the request's own model comes first"
    assert records[-1]["model"] == "narrow"
    assert 3_000 < records[-1]["input_tokens"] <= 6_000, "fitted to its window, and no smaller than it has to be"
