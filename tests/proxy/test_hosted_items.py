"""Responses conversations with items of every type are answered through the proxy, whatever the window."""

import pytest
from configurations import deployment
from responses_items import KINDS, session

from ctx_hooks.testing import LOOPBACK

WINDOW = 12_000
MODES = ["whole", "streamed"]


def groups(url):
    yield deployment(url, "hosted-known", "openai/hosted", max_input_tokens=WINDOW)
    for mode in MODES:
        yield deployment(url, f"hosted-{mode}", f"openai/hosted-{mode}")


@pytest.fixture(autouse=True)
def _window(provider):
    names = ("hosted", *(f"hosted-{mode}" for mode in MODES))
    provider.reset(windows=dict.fromkeys(names, WINDOW))


def ask(proxy, group, items, *, stream=False):
    fields = {"model": group, "input": items, "stream": stream, "max_output_tokens": 500}
    return LOOPBACK.post(f"{proxy.url}/v1/responses", json=fields, headers=proxy.headers, timeout=300)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("is_known", [True, False], ids=["known", "unknown"])
def test_twelve_calls_of_every_kind_are_answered(is_known, mode, proxy, provider):
    for kind in KINDS:
        answer = ask(proxy, "hosted-known" if is_known else f"hosted-{mode}", session(kind), stream=mode == "streamed")
        assert answer.status_code == 200, (kind, answer.text)
        assert "Answer" in answer.text
    refused = [r["status"] for r in provider.requests()].count(400)
    assert refused <= (not is_known)
