"""How a request ends that is not simply answered by its own model.

The client leaves, another group takes over, the deployments have an order, or the provider truncates in silence.
"""

from __future__ import annotations

import http.client
import json

import httpx
import pytest
from configurations import WINDOW, deployment
from routes import CHAT, MESSAGES, RESPONSES

THREE = {CHAT: "openai", MESSAGES: "anthropic", RESPONSES: "openai"}
ROUTES = pytest.mark.parametrize("route", THREE, ids=["chat", "messages", "responses"])


def groups(url):
    yield deployment(url, "left", "openai/tiny")
    yield deployment(url, "left-claude", "anthropic/tiny")
    yield deployment(url, "first", "openai/tiny", ctx_hooks={"rescue_attempts": 1})
    yield deployment(url, "second", "openai/less", max_input_tokens=2_500)
    yield deployment(url, "third", "openai/wide")
    for route, prefix in THREE.items():
        yield deployment(url, f"mute-{route.fmt}", f"{prefix}/served")
        for place in ("litellm_params", "model_info"):
            for model, order in (("served", 1), ("wide", 2)):
                made = deployment(url, f"{place}-{route.fmt}", f"{prefix}/{model}")
                made[place]["order"] = order
                yield made


@ROUTES
@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_a_client_that_leaves_ends_the_retries(route, stream, proxy, provider):
    """The provider sees the call end with the client, and no other attempt comes before what the proxy is asked next."""
    provider.configure(holds=True)
    group = "left-claude" if route is MESSAGES else "left"
    payload = {"model": group, "max_tokens": 100, "stream": stream}
    talk = [{"role": ("user", "assistant")[n % 2], "content": f"{n} " + "word " * 100} for n in range(21)]
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
def test_a_fallback_to_another_group_is_fitted_to_the_window_of_that_group(route, proxy, provider):
    answer = route.ask(proxy, group="first")
    assert answer.status_code == 200, answer.text
    records = provider.requests()
    assert {r["model"] for r in records[:-1]} == {"tiny"}, "the request's own model comes first"
    assert records[-1]["model"] == "less"
    assert 1_250 < records[-1]["input_tokens"] <= 2_500, "fitted to its window, and no smaller than it has to be"


@ROUTES
@pytest.mark.parametrize("place", ["litellm_params", "model_info"])
def test_an_overflow_is_retried_on_the_order_that_refused_it(route, place, proxy, provider):
    """The Router leaves context-window errors out of its plan by order; for all other errors it goes on."""
    answer = route.ask(proxy, group=f"{place}-{route.fmt}", seed=len(place))
    assert answer.status_code == 200, answer.text
    assert [(r["model"], r["status"]) for r in provider.requests()] == [("served", 400), ("served", 200)]
    assert answer.headers["x-ctx-hooks"].startswith("retried")


@ROUTES
def test_a_provider_that_truncates_in_silence_is_told_of_and_sent_no_more_than_it_reads(route, proxy, provider):
    group = f"mute-{route.fmt}"
    talk = [{"role": ("user", "assistant")[n % 2], "content": f"{n} " + "a quiet word or two " * 110} for n in range(31)]
    field = "input" if route is RESPONSES else "messages"
    provider.configure(silent_truncation=True)
    for length in (21, 23, 27, 31):
        answer = route.post(proxy, {"model": group, "max_tokens": 100, field: talk[:length]})
        assert answer.status_code == 200
        proxy.wait_for_log(f"answered {answer.headers['x-litellm-call-id']}")
    first, *_, last = provider.requests()
    assert first["input_tokens"] > 2 * WINDOW, "small enough for the window that is believed, so it is not even counted"
    assert last["input_tokens"] <= WINDOW
    assert "refuses nothing that is too long" in proxy.log()
