"""How a request ends that is not simply answered by its own model: the client leaves, or another group takes over."""

from __future__ import annotations

import http.client
import json
import time

import httpx
import pytest
from conftest import configuration, deployment
from routes import CHAT, MESSAGES, RESPONSES

from ctx_hooks.testing import FakeProvider, ProviderSettings, ProxyProcess

DELAY_SECONDS = 0.5
ROUTES = pytest.mark.parametrize("route", [CHAT, MESSAGES, RESPONSES], ids=["chat", "messages", "responses"])


@pytest.fixture(scope="module")
def slow_provider():
    settings = ProviderSettings(windows={"tiny": 60, "narrow": 6_000, "wide": 12_000}, window_tokens=8_000)
    with FakeProvider(settings) as running:
        yield running


@pytest.fixture(scope="module")
def ending_proxy(slow_provider):
    url = slow_provider.url
    models = (
        deployment(url, "left", "openai/tiny"),
        deployment(url, "left-claude", "anthropic/tiny"),
        deployment(url, "first", "openai/tiny", ctx_hooks={"rescue_attempts": 1}),
        deployment(url, "second", "openai/narrow", max_input_tokens=6_000),
        deployment(url, "third", "openai/wide", max_input_tokens=12_000),
    )
    config = configuration(url, *models)
    config["litellm_settings"]["context_window_fallbacks"] = [{"first": ["second"]}, {"second": ["third"]}]
    config["general_settings"]["cancel_on_disconnect"] = True
    with ProxyProcess(config) as running:
        yield running


@ROUTES
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_client_that_leaves_ends_the_retries(route, stream, ending_proxy, slow_provider):
    slow_provider.reset(delay_seconds=DELAY_SECONDS)
    group = "left-claude" if route is MESSAGES else "left"
    payload = {"model": group, "max_tokens": 100, "stream": stream}
    talk = [{"role": ("user", "assistant")[n % 2], "content": f"{n} " + "word " * 400} for n in range(21)]
    payload["input" if route is RESPONSES else "messages"] = talk
    address = httpx.URL(ending_proxy.url)
    client = http.client.HTTPConnection(address.host, address.port)
    try:
        client.request("POST", route.path, json.dumps(payload), {**ending_proxy.headers, "Content-Type": "application/json"})
        while not slow_provider.requests():
            time.sleep(DELAY_SECONDS / 20)
        client.close()
        time.sleep(4 * DELAY_SECONDS)
        assert len(slow_provider.requests()) == 1
    finally:
        slow_provider.reset(delay_seconds=0.0)


@pytest.mark.parametrize("route", [CHAT, RESPONSES], ids=["chat", "responses"])
def test_a_fallback_to_another_group_is_fitted_to_the_window_of_that_group(route, ending_proxy, slow_provider):
    slow_provider.reset()
    answer = route.ask(ending_proxy, group="first")
    assert answer.status_code == 200, answer.text
    records = slow_provider.requests()
    assert {r["model"] for r in records[:-1]} == {"tiny"}, "the request's own model comes first"
    assert records[-1]["model"] == "narrow"
    assert 3_000 < records[-1]["input_tokens"] <= 6_000, "fitted to its window, and no smaller than it has to be"
