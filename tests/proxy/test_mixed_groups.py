"""A group of deployments with different windows: by policy the Router chooses among those that hold the request whole."""

from __future__ import annotations

from collections import Counter

import litellm
import pytest
from configurations import deployment
from routes import CHAT, MESSAGES, MESSAGES_TO_OPENAI, RESPONSES, SIZE

from ctx_hooks.testing import agent_session

REQUESTS = 8
"""By chance a shuffle goes to one of two deployments so often in 1 of 256 runs, which then finds no fault."""
MANY = 60
"""So many requests go to one of them by themselves never."""
PICTURE = {"type": "image_url", "image_url": {"url": "https://example.com/a.png"}}
GROUPS = {
    "mixed": ("openai", ("served", 3_000), ("wide", 1_000_000)),
    "mixed-claude": ("anthropic", ("served", 3_000), ("wide", 1_000_000)),
    "mixed-small": ("openai", ("served", 3_000), ("less", 2_500)),
    "mixed-unknown": ("openai", ("served", 200_000), ("wide", 1_000_000)),
    "mixed-any": ("openai", ("served", 3_000), ("wide", 1_000_000)),
    "mixed-off": ("openai", ("served", 3_000), ("wide", 1_000_000)),
    "pictures": ("openai", ("served", 3_000), ("wide", 1_000_000)),
}
OWN_POLICIES = {"mixed-any": {"deployment_choice": "any", "warn_below_tokens": 0}, "mixed-off": {"enabled": False}}
SEES = {("pictures", "served"): {"supports_vision": True}, ("pictures", "wide"): {"supports_vision": False}}
WHOLE = {
    "chat": (CHAT, "mixed"),
    "messages": (MESSAGES, "mixed-claude"),
    "messages-to-openai": (MESSAGES_TO_OPENAI, "mixed"),
    "responses": (RESPONSES, "mixed"),
}


def groups(url):
    for group, (prefix, *sides) in GROUPS.items():
        for model, window in sides:
            policy = OWN_POLICIES.get(group, {"deployment_choice": "holds_request", "warn_below_tokens": 0})
            yield deployment(
                url, group, f"{prefix}/{model}", max_input_tokens=window, ctx_hooks=policy, **SEES.get((group, model), {})
            )


def asked_until_both_answer(proxy, provider, group, **fields):
    """Return how each deployment answered, once both were asked, and the smallest request that the wide one got."""
    for seed in range(MANY):
        if len({r["model"] for r in provider.requests()}) > 1:
            break
        CHAT.ask(proxy, group=group, seed=seed, **fields)
    sizes = [r["input_tokens"] for r in provider.requests() if r["model"] == "wide"]
    return set(chosen(provider)), min(sizes)


def chosen(provider):
    """Return how often each deployment was called with which status, and forget the requests."""
    found = Counter((r["model"], r["status"]) for r in provider.requests())
    provider.reset()
    return found


@pytest.mark.parametrize(("route", "group"), WHOLE.values(), ids=WHOLE)
def test_every_request_goes_whole_to_the_deployment_that_holds_it(route, group, proxy, provider):
    for seed in range(REQUESTS):
        answer = route.ask(proxy, group=group, seed=seed)
        assert answer.status_code == 200, answer.text
        assert answer.headers["x-ctx-hooks"].startswith("fits")
    sent = provider.requests()
    assert min(r["input_tokens"] for r in sent) > 7_000
    assert chosen(provider) == {("wide", 200): REQUESTS}


@pytest.mark.skipif(
    not hasattr(litellm.Router, "_deployment_declares_no_vision"),
    reason="before 1.109 the Router sends requests with images to text-only deployments, too",
)
def test_a_request_with_an_image_goes_to_the_deployment_that_takes_it_though_another_holds_the_request_whole(
    proxy, provider
):
    for seed in range(REQUESTS):
        session = agent_session("openai-chat", model="pictures", seed=seed, **SIZE)
        session["messages"].append({"role": "user", "content": [PICTURE]})
        assert CHAT.post(proxy, session).status_code == 200
    assert chosen(provider) == {("served", 200): REQUESTS}


def test_a_request_that_every_deployment_holds_goes_to_all_of_them(proxy, provider):
    small, _ = asked_until_both_answer(proxy, provider, "mixed", messages=[{"role": "user", "content": "hi"}])
    assert small == {("served", 200), ("wide", 200)}


def test_a_request_that_no_deployment_holds_is_compressed_for_the_largest(proxy, provider):
    for seed in range(REQUESTS):
        answer = CHAT.ask(proxy, group="mixed-small", seed=seed)
        assert answer.status_code == 200, answer.text
        assert answer.headers["x-ctx-hooks"].startswith("compressed")
    assert chosen(provider) == {("served", 200): REQUESTS}


def test_what_one_deployment_refuses_goes_whole_to_the_one_that_holds_more(proxy, provider):
    for seed in range(REQUESTS):
        assert CHAT.ask(proxy, group="mixed-unknown", seed=seed).status_code == 200
    whole = [r["input_tokens"] for r in provider.requests() if r["model"] == "wide"]
    assert min(whole) > 7_000
    assert chosen(provider) == {("served", 400): 1, ("wide", 200): REQUESTS}


def test_by_default_the_router_chooses_from_all_and_the_request_is_fitted_to_its_choice(proxy, provider):
    calls, least_whole = asked_until_both_answer(proxy, provider, "mixed-any")
    assert calls == {("served", 200), ("wide", 200)}
    assert least_whole > 7_000


def test_where_the_plugin_is_off_the_choice_is_the_routers(proxy, provider):
    calls, _ = asked_until_both_answer(proxy, provider, "mixed-off")
    assert calls == {("served", 400), ("wide", 200)}
