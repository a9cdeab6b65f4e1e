"""What a caller has pinned stays whole on every route, and the provider, which does not know the flag, does not see it."""

from __future__ import annotations

import json

import pytest
from routes import NAMES, ROUTES, SIZE

from ctx_hooks.testing import agent_session

FIELDS = {"openai-chat": "messages", "anthropic": "messages", "openai-responses": "input", "gemini": "contents"}
PLACE = 3
"""Of a message early in the session, which no compaction to this window would leave whole."""
FLAG = {"context": {"pin": True}}


def session(route, group, *, pinned):
    payload = agent_session(route.fmt, model=group, **SIZE)
    items = list(payload[FIELDS[route.fmt]])
    place = next(i for i, item in enumerate(items) if i >= PLACE and len(json.dumps(item)) > 1_000)
    text = longest_text(items[place])
    if pinned:
        items[place] = {**items[place], **FLAG}
    return {**payload, FIELDS[route.fmt]: items}, text


def longest_text(value):
    """The longest text of a JSON value."""
    if isinstance(value, str):
        return value
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return max((longest_text(v) for v in inner), key=len, default="")


def is_sent_whole(text, provider):
    """Whether every line of a text has reached the provider, whatever it is wrapped in there."""
    sent = json.dumps(provider.requests()[-1]["payload"])
    return all(line in sent for line in text.splitlines())


@pytest.mark.parametrize("route", ROUTES, ids=NAMES)
def test_a_pinned_message_stays_whole_and_its_flag_is_not_sent(route, proxy, provider):
    payload, text = session(route, route.fitted, pinned=False)
    assert route.post(proxy, payload).status_code == 200
    assert not is_sent_whole(text, provider)
    payload, text = session(route, route.fitted, pinned=True)
    answer = route.post(proxy, payload)
    assert answer.status_code == 200, answer.text
    assert is_sent_whole(text, provider)
