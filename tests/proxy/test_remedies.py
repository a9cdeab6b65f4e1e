"""Each kind of refusal gets the remedy that fits it, and what was learned holds for the next request."""

from __future__ import annotations

import pytest
from configurations import WINDOW, deployment
from routes import CHAT, MESSAGES, RESPONSES

ROUTES = pytest.mark.parametrize("route", [CHAT, MESSAGES, RESPONSES], ids=["chat", "messages", "responses"])
OUTPUT_FIELDS = {"openai-chat": "max_tokens", "anthropic": "max_tokens", "openai-responses": "max_output_tokens"}
KINDS = {CHAT: "openai", MESSAGES: "anthropic", RESPONSES: "openai"}
COUNTING = {"counts_output": True, "wording": "openai_requested"}


def groups(url):
    for route, kind in KINDS.items():
        yield deployment(url, f"sum-{route.fmt}", f"{kind}/roomy")
        yield deployment(url, f"mute-{route.fmt}", f"{kind}/served")
    yield deployment(url, "capped", "openai/roomy")


@ROUTES
def test_an_output_that_does_not_fit_beside_the_input_is_lowered_and_the_conversation_stays_whole(route, proxy, provider):
    field, group = OUTPUT_FIELDS[route.fmt], f"sum-{route.fmt}"
    provider.configure(**COUNTING)
    answer = route.ask(proxy, group=group, **{field: 10_000})
    assert answer.status_code == 200, answer.text
    refused, accepted = provider.requests()
    assert (refused["status"], accepted["status"]) == (400, 200)
    assert 256 <= accepted["max_tokens"] < 10_000
    assert accepted["input_tokens"] == refused["input_tokens"], "nothing was cut"
    assert f"{field}={accepted['max_tokens']}" in answer.headers["x-ctx-hooks"]
    provider.reset()
    assert route.ask(proxy, group=group, seed=1, **{field: 10_000}).status_code == 200
    assert [r["status"] for r in provider.requests()] == [200], "the next request is lowered before it is sent"


def test_an_output_above_the_models_own_cap_is_lowered_to_it(proxy, provider):
    provider.configure(**COUNTING, max_output_tokens=4_096)
    payload = {"model": "capped", "messages": [{"role": "user", "content": "hi"}], "max_tokens": 20_000}
    for expected in ([400, 200], [200]):
        answer = CHAT.post(proxy, payload)
        assert answer.status_code == 200, answer.text
        assert [r["status"] for r in provider.requests()] == expected
        assert provider.requests()[-1]["max_tokens"] == 4_096
        provider.reset()


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
