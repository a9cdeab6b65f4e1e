"""A model writes what stands for removed exchanges, once for all workers; whatever it does, every request is answered."""

import itertools
import json
import random
import re

import pytest
from configurations import WINDOW, deployment
from routes import CHAT, MESSAGES, RESPONSES, logged

from ctx_hooks.testing.conversations import source_text

MARK = "notes every risk"
"""Stands in the summary that is written, and in no conversation."""
ABOVE_SOFT_MARK, COMPACTED = 34, 40
"""Turns of the conversation: at the one its requests are near the budget, at the other above it."""
BAD = {"hangs": "failed", "fails": "failed", "refuses": "rejected"}
MODELS = ("answers", *BAD)
PRICES = {"input_cost_per_token": 1e-6, "output_cost_per_token": 4e-6}
KEY = {"team_id": "t1", "user_id": "u1", "org_id": "o1"}
FORBIDDEN = {
    "limited": {"rpm_limit": 1},
    "spent": {"max_budget": 1.0, "spend": 2.0},
    "restricted": {"models": ["by-answers"]},
}
CALLERS = {"payer": {**KEY, "key_alias": "ann"}, **FORBIDDEN}
SECONDS = {"hangs": 0.5}
POLICIES = {
    "models": {f"by-{name}*": {"summary": {"model": name, "timeout_seconds": SECONDS.get(name, 60.0)}} for name in MODELS}
}


def summarised(url):
    for model in MODELS:
        yield deployment(url, model, f"openai/{model}", max_input_tokens=200_000, **PRICES)
        yield deployment(url, f"by-{model}", "openai/served", max_input_tokens=WINDOW, **PRICES)
    yield deployment(url, "by-answers-claude", "anthropic/claude-served", max_input_tokens=WINDOW)
    yield deployment(url, "alone", "openai/served", max_input_tokens=WINDOW, **PRICES)


@pytest.fixture(scope="module")
def workers(started, redis_server):
    """Two proxies that share what they know through Redis."""
    redis = {"redis_host": "127.0.0.1", "redis_port": redis_server.port}
    with started("summarised", **redis) as one, started("summarised", **redis) as two:
        yield one, two


@pytest.fixture
def proxy(workers):
    return workers[0]


SEEDS = itertools.count(1)


@pytest.fixture
def talk():
    """Many short turns that no other test has had: a compaction of them removes exchanges."""
    seed = next(SEEDS)
    rng = random.Random(seed)
    messages = [{"role": "user", "content": f"Review project {seed} with me, part by part."}]
    for n in range(80):
        messages.append({"role": "assistant", "content": f"Here is part {n}.\n{source_text(rng, 120)}"})
        messages.append({"role": "user", "content": f"And what is in the part behind part {n}?"})
    return messages


def answered(proxy, talk, turns, group, *, key="one", route=CHAT):
    """Return the answer to so many turns of a talk."""
    limit, field = ("max_output_tokens", "input") if route is RESPONSES else ("max_tokens", "messages")
    payload = {"model": group, field: talk[: 1 + 2 * turns], limit: 100}
    answer = route.post(proxy, payload, headers={"Authorization": f"Bearer sk-{key}"})
    assert answer.status_code == 200, answer.text
    return answer


def sent(provider):
    """Return what the provider read of each request that is none for a summary."""
    return [json.dumps(r["payload"]) for r in provider.requests() if r["model"] not in MODELS]


def asked_for(provider, talk):
    """Return the number of requests for summaries of this talk: one of another test may come behind its end."""
    line = json.dumps(talk[3]["content"].splitlines()[1])[1:-1]
    return sum(r["model"] == "answers" and line in r["payload"]["messages"][-1]["content"] for r in provider.requests())


def outcome_of(proxy, answer):
    """Return how the summary ended that an answered request began."""
    found = re.compile(f"summary (.*) of {answer.headers['x-litellm-call-id']}\n")
    proxy.wait_until(lambda: found.search(proxy.log()), "a summary to be over")
    (only,) = found.findall(proxy.log())
    return only


@pytest.mark.parametrize(("route", "group"), [
    (CHAT, "by-answers"), (MESSAGES, "by-answers-claude"), (RESPONSES, "by-answers"),
], ids=["chat", "messages", "responses"])  # fmt: skip
def test_next_compaction_has_the_summary(route, group, proxy, provider, talk):
    assert outcome_of(proxy, answered(proxy, talk, ABOVE_SOFT_MARK, group, route=route)) == "accepted"
    answered(proxy, talk, COMPACTED, group, route=route)
    assert [MARK in request for request in sent(provider)] == [False, True]
    assert asked_for(provider, talk) == 1


def test_two_workers_send_same_bytes_and_ask_for_one_summary(workers, provider, talk):
    for turns in (8, 16, ABOVE_SOFT_MARK, COMPACTED, 56, 72):
        for proxy in workers if turns % 16 else reversed(workers):
            answer = answered(proxy, talk, turns, "by-answers")
            if turns == ABOVE_SOFT_MARK and not asked_for(provider, talk):
                assert outcome_of(proxy, answer) == "accepted"
        one, two = sent(provider)[-2:]
        assert one == two, turns
        assert (MARK in one) == (turns >= COMPACTED)
        assert turns != COMPACTED or asked_for(provider, talk) == 1


@pytest.mark.parametrize("model", BAD)
def test_bad_summary_leaves_the_deterministic_form(model, proxy, provider, talk):
    assert outcome_of(proxy, answered(proxy, talk, ABOVE_SOFT_MARK, f"by-{model}")) == BAD[model]
    for group in ("alone", f"by-{model}"):
        answered(proxy, talk, COMPACTED, group)
    *_, expected, found = sent(provider)
    assert found == expected


def test_caller_pays_for_the_summary(proxy, talk):
    alone = logged(proxy, answered(proxy, talk, ABOVE_SOFT_MARK, "alone", key="payer"))
    answer = answered(proxy, talk, ABOVE_SOFT_MARK, "by-answers", key="payer")
    assert outcome_of(proxy, answer) == "accepted"
    request, log = logged(proxy, answer), re.compile(r'answered \S+ (.*"ctx_hooks:summary".*"t1".*)\n')
    proxy.wait_until(lambda: log.search(proxy.log()), "the log of the summary")
    summary = json.loads(log.search(proxy.log())[1])
    account = {**KEY, "alias": "ann", "hash": request["hash"]}
    assert {name: summary[name] for name in account} == account
    assert summary["request_tags"] == ["ctx_hooks:summary"]
    tokens = (summary["prompt_tokens"], summary["completion_tokens"])
    assert summary["response_cost"] == pytest.approx(sum(map(float.__mul__, map(float, tokens), PRICES.values())))
    assert {**request, "metadata": alone["metadata"]} == alone


@pytest.mark.parametrize("key", FORBIDDEN)
def test_forbidden_summary_fails_no_request(key, proxy, provider, talk):
    """Over the key's rate, over its budget, or by a model that it may not call."""
    outcome = outcome_of(proxy, answered(proxy, talk, ABOVE_SOFT_MARK, "by-answers", key=key))
    assert (outcome, asked_for(provider, talk)) == ("failed", 0)
