"""A group of deployments with different windows: by policy the Router chooses among those that hold the request whole."""

from __future__ import annotations

from collections import Counter

import pytest
from configurations import deployment
from routes import CHAT, MESSAGES, MESSAGES_TO_OPENAI, RESPONSES

REQUESTS = 8
"""By chance a shuffle goes to one of two deployments so often in 1 of 256 runs, which then finds no fault."""
MANY = 60
"""So many requests go to one of them by themselves never."""
GROUPS = {
    "mixed": ("openai", ("served", 3_000), ("wide", 1_000_000)),
    "mixed-claude": ("anthropic", ("served", 3_000), ("wide", 1_000_000)),
    "mixed-unknown": ("openai", ("served", 200_000), ("wide", 1_000_000)),
    "mixed-any": ("openai", ("served", 3_000), ("wide", 1_000_000)),
}
WHOLE = {
    "chat": (CHAT, "mixed"),
    "messages": (MESSAGES, "mixed-claude"),
    "messages-to-openai": (MESSAGES_TO_OPENAI, "mixed"),
    "responses": (RESPONSES, "mixed"),
}


def groups(url):
    for group, (prefix, *sides) in GROUPS.items():
        for model, window in sides:
            choice = "any" if group == "mixed-any" else "holds_request"
            policy = {"deployment_choice": choice, "warn_below_tokens": 0}
            yield deployment(url, group, f"{prefix}/{model}", max_input_tokens=window, ctx_hooks=policy)


def asked_until_both_answer(proxy, provider, group):
    """Return how each deployment answered, once both were asked, and the smallest request that the wide one got."""
    for seed in range(MANY):
        if len({r["model"] for r in provider.requests()}) > 1:
            break
        CHAT.ask(proxy, group=group, seed=seed)
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
