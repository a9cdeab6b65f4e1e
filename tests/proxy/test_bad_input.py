"""Odd and broken requests are forwarded or repaired; none becomes a 500 of ours."""

import pytest
from routes import CHAT

from ctx_hooks.testing import LOOPBACK


def post(proxy, body):
    return LOOPBACK.post(proxy.url + CHAT.path, json=body, headers=proxy.headers, timeout=300)


@pytest.mark.parametrize(
    "messages",
    ["not a list", [], None, ["a string"], [{"role": "oracle", "content": "?"}], [{"content": "no role"}]],
    ids=["text", "empty", "null", "no mappings", "unknown role", "no role"],
)
def test_what_is_no_conversation_gets_the_same_answer_as_without_the_plugin(messages, proxy, plain_proxy):
    body = {"model": "fitted", "messages": messages}
    assert post(proxy, body).status_code == post(plain_proxy, body).status_code
