"""How a request ends that is not simply answered by its own model: the client leaves, or another group takes over."""

import http.client
import json

import httpx
import pytest
from configurations import deployment
from routes import CHAT, MESSAGES, RESPONSES

ROUTES = pytest.mark.parametrize("route", [CHAT, MESSAGES, RESPONSES], ids=["chat", "messages", "responses"])


def groups(url):
    yield deployment(url, "left", "openai/tiny")
    yield deployment(url, "left-claude", "anthropic/tiny")
    yield deployment(url, "first", "openai/tiny", ctx_hooks={"rescue_attempts": 1, "fallbacks": "last"})
    yield deployment(url, "second", "openai/less", max_input_tokens=2_500)
    yield deployment(url, "third", "openai/wide")


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
