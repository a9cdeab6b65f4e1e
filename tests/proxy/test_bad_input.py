"""Odd and broken requests are forwarded or repaired; none becomes a 500 of ours."""

from __future__ import annotations

import pytest
from routes import CHAT

from ctx_hooks.testing import LOOPBACK


def post(proxy, body):
    return LOOPBACK.post(proxy.url + CHAT.path, json=body, headers=proxy.headers, timeout=300)


PIXEL = "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAQAAAC1HAwCAAAAC0lEQVR42mNkYAAAAAYAAjCB0C8AAAAASUVORK5CYII="


@pytest.mark.parametrize(
    "messages",
    [
        [{"role": "user", "content": "hi"}],
        [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": PIXEL}}]}],
        [{"role": "system", "content": "only a system text"}],
    ],
    ids=["small", "image-only", "system-only"],
)
def test_what_needs_no_help_is_answered_as_it_came(messages, proxy, provider):
    assert post(proxy, {"model": "fitted", "messages": messages}).status_code == 200
    (only,) = provider.requests()
    assert only["payload"]["messages"] == messages


@pytest.mark.parametrize(
    "messages",
    ["not a list", [], None, ["a string"], [{"role": "oracle", "content": "?"}], [{"content": "no role"}]],
    ids=["text", "empty", "null", "no mappings", "unknown role", "no role"],
)
def test_what_is_no_conversation_gets_the_same_answer_as_without_the_plugin(messages, proxy, plain_proxy):
    body = {"model": "fitted", "messages": messages}
    assert post(proxy, body).status_code == post(plain_proxy, body).status_code


@pytest.mark.parametrize("max_tokens", ["many", -5, 10**9, 1.5], ids=str)
def test_a_nonsensical_output_is_the_providers_to_judge(max_tokens, proxy, plain_proxy):
    body = {"model": "fitted", "messages": [{"role": "user", "content": "hi"}], "max_tokens": max_tokens}
    assert post(proxy, body).status_code == post(plain_proxy, body).status_code
