"""A model writes what stands for removed exchanges, once for all workers; whatever it does, every request is answered."""

import json
import random

import pytest
from configurations import GENERAL, PATIENT, PLUGIN, configuration, deployment, importable
from proxies import Proxy
from summariser import MARK, summariser

from ctx_hooks.testing import LOOPBACK, FakeProvider, ProviderSettings
from ctx_hooks.testing.conversations import source_text

WINDOW = 3_000
ABOVE_SOFT_MARK, COMPACTED = 34, 40
"""Turns of the conversation: at the one its requests are near the budget, at the other above it."""
TIMEOUTS_SECONDS = {"hangs": 0.5}
PATIENT_SECONDS = 60.0
"""Of those that answer: a busy machine is no bad summariser."""
BAD = ("hangs", "fails", "refuses")
MODELS = ("answers", *BAD)
PRICES = {"input_cost_per_token": 1e-6, "output_cost_per_token": 4e-6}
PARTS = """
import json
import ctx_hooks
from litellm.integrations.custom_logger import CustomLogger
from litellm.proxy._types import UserAPIKeyAuth

KEYS = {
    "sk-limited": {"rpm_limit": 1},
    "sk-spent": {"max_budget": 1.0, "spend": 2.0},
    "sk-restricted": {"models": ["by-answers"]},
}

async def user_api_key_auth(request, api_key):
    return UserAPIKeyAuth(
        api_key=api_key, token=api_key, team_id="t1", user_id="u1", org_id="o1", key_alias="ann", **KEYS.get(api_key, {})
    )

class Log(CustomLogger):
    async def async_log_success_event(self, kwargs, response_obj, start_time, end_time):
        logged = kwargs["standard_logging_object"]
        named = ("model_group", "response_cost", "prompt_tokens", "completion_tokens", "request_tags")
        account = {k: logged["metadata"][f"user_api_key_{k}"] for k in ("hash", "alias", "team_id", "user_id", "org_id")}
        asked = json.dumps(kwargs["messages"]) if logged["model_group"] == "answers" else kwargs["litellm_call_id"]
        print("logged", json.dumps({"asked": asked, **{name: logged[name] for name in named}, **account}), flush=True)

def tell(event):
    print("summary", json.dumps([event.outcome, event.reason, event.call.call_id]), flush=True)

ctx_hooks.on("summary", tell)
log = Log()
"""


@pytest.fixture(scope="module")
def provider():
    settings = ProviderSettings(window_tokens=WINDOW, windows=dict.fromkeys(MODELS, 200_000), failing_models=["fails"])
    with FakeProvider(settings, summariser) as running:
        yield running


@pytest.fixture(autouse=True)
def _fresh_provider(provider):
    provider.reset(held_models=["hangs"], failing_models=["fails"])


def policy(model):
    return {"model": model, "timeout_seconds": TIMEOUTS_SECONDS.get(model, PATIENT_SECONDS)}


def started(provider, folder, redis):
    """Return a proxy whose groups have a model that writes summaries; it shares what it knows through Redis."""
    groups = {f"by-{model}": {"summary": policy(model)} for model in MODELS}
    agents = [
        deployment(provider.url, name, "openai/served", max_input_tokens=WINDOW, **PRICES)
        for name in ["plain", "alone", *groups]
    ]
    agents.append(deployment(provider.url, "claude", "anthropic/claude-served", max_input_tokens=WINDOW))
    groups["claude"] = {"summary": policy("answers")}
    writers = (deployment(provider.url, model, f"openai/{model}", max_input_tokens=200_000, **PRICES) for model in MODELS)
    config = configuration(provider.url, *agents, *writers, callback_settings={"ctx_hooks": {"models": groups}})
    config["litellm_settings"] = {"callbacks": [PLUGIN, "parts.log"]}
    config["general_settings"] = {**GENERAL, "custom_auth": "parts.user_api_key_auth"}
    config["router_settings"] = {"redis_host": "127.0.0.1", "redis_port": redis.port}
    return Proxy(config, importable(folder, "parts", PATIENT + PARTS))


@pytest.fixture(scope="module")
def proxies(provider, redis_server, tmp_path_factory):
    """Two workers on one Redis."""
    folder = tmp_path_factory.mktemp("summaries")
    with started(provider, folder, redis_server) as one, started(provider, folder, redis_server) as two:
        yield one, two


@pytest.fixture
def proxy(proxies):
    return proxies[0]


_SEEDS = iter(range(1, 1_000))


@pytest.fixture
def seed():
    """A conversation that no other test has had."""
    return next(_SEEDS)


def payload(seed, turns, model):
    """Return a conversation of many short turns: a compaction of it removes exchanges."""
    rng = random.Random(seed)
    messages = [{"role": "user", "content": f"Review project {seed} with me, part by part."}]
    for n in range(turns):
        messages.append({"role": "assistant", "content": f"Here is part {n}.\n{source_text(rng, 120)}"})
        messages.append({"role": "user", "content": f"And what is in the part behind part {n}?"})
    return {"model": model, "messages": messages}


def answered(proxy, seed, turns, model, key="sk-one", path="/v1/chat/completions", body=None):
    """Return the answer to a conversation of so many turns."""
    headers = {"Authorization": f"Bearer {key}"}
    answer = LOOPBACK.post(proxy.url + path, json=body or payload(seed, turns, model), headers=headers, timeout=300)
    assert answer.status_code == 200, answer.text
    return answer


def sent(provider, model="served"):
    """Return the messages of each request that the provider got for a model."""
    return [json.dumps(r["payload"]["messages"]) for r in provider.requests() if r["model"] == model]


def line_of(seed):
    """Return a line of source text that no other conversation has."""
    _, _, _, part, *_ = payload(seed, 2, "")["messages"]
    return part["content"].splitlines()[1]


def asked_for(provider, seed):
    """Return the requests for summaries of this conversation: one of an earlier test may be asked for behind its end."""
    return [messages for messages in sent(provider, "answers") if line_of(seed) in messages]


def printed(proxy, kind):
    """Return what the parts in the proxy have printed of a kind; the last line of the log may be half written."""
    lines = proxy.log().split("\n")[:-1]
    return [json.loads(line.removeprefix(f"{kind} ")) for line in lines if line.startswith(f"{kind} ")]


def summary_of(proxy, answer):
    """Return the outcome and the reason of the summary that an answered request began: that of another may end meanwhile."""

    def ended():
        return [(outcome, reason) for outcome, reason, call in printed(proxy, "summary") if call == id_of(answer)]

    proxy.wait_until(ended, "a summary to be over")
    (only,) = ended()
    return only


def id_of(answer):
    return answer.headers["x-litellm-call-id"]


@pytest.mark.parametrize(("path", "field", "model"), [
    ("/v1/chat/completions", "messages", "by-answers"), ("/v1/messages", "messages", "claude"),
    ("/v1/responses", "input", "by-answers"),
], ids=["chat", "messages", "responses"])  # fmt: skip
def test_next_compaction_has_the_summary(proxy, provider, seed, path, field, model):
    for turns in (ABOVE_SOFT_MARK, COMPACTED):
        body = {"model": model, field: payload(seed, turns, model)["messages"], "max_tokens": 100}
        body |= {} if field == "messages" else {"max_output_tokens": body.pop("max_tokens")}
        answer = answered(proxy, seed, turns, model, path=path, body=body)
        if turns == ABOVE_SOFT_MARK:
            assert summary_of(proxy, answer) == ("accepted", "")
    first, compacted = (json.dumps(r["payload"][field]) for r in provider.requests() if r["model"] != "answers")
    assert (MARK in first, MARK in compacted) == (False, True)
    assert len(asked_for(provider, seed)) == 1


def test_two_workers_send_same_bytes_and_ask_for_one_summary(proxies, provider, seed):
    for turns in (8, 16, ABOVE_SOFT_MARK, COMPACTED, 56, 72):
        for proxy in proxies if turns % 16 else reversed(proxies):
            answer = answered(proxy, seed, turns, "by-answers")
            if turns == ABOVE_SOFT_MARK and len(asked_for(provider, seed)) == 0:
                assert summary_of(proxy, answer) == ("accepted", "")
        one, two = sent(provider)[-2:]
        assert one == two, turns
        assert (MARK in one) == (turns >= COMPACTED)
        assert turns != COMPACTED or len(asked_for(provider, seed)) == 1


@pytest.mark.parametrize("model", BAD)
def test_bad_summary_leaves_the_deterministic_form(proxy, provider, seed, model):
    outcome, reason = summary_of(proxy, answered(proxy, seed, ABOVE_SOFT_MARK, f"by-{model}"))
    assert outcome == ("failed" if model in {"hangs", "fails"} else "rejected"), reason
    for group in ("plain", f"by-{model}"):
        answered(proxy, seed, COMPACTED, group)
    *_, expected, found = sent(provider)
    assert found == expected


def logged_of(proxy, model, asked):
    """Return the log of the request of a group that has this id, or of a summary this text."""

    def found():
        return [log for log in printed(proxy, "logged") if log["model_group"] == model and asked in log.pop("asked")]

    proxy.wait_until(found, f"a log of {model}")
    (only,) = found()
    return only


def test_caller_pays_for_the_summary(proxy, seed):
    name = "by-answers"
    before = logged_of(proxy, "alone", id_of(answered(proxy, seed, ABOVE_SOFT_MARK, "alone")))
    answer = answered(proxy, seed, ABOVE_SOFT_MARK, name)
    assert summary_of(proxy, answer) == ("accepted", "")
    request = logged_of(proxy, name, id_of(answer))
    summary = logged_of(proxy, "answers", json.dumps(line_of(seed))[1:-1])
    account = ("hash", "alias", "team_id", "user_id", "org_id")
    assert {k: summary[k] for k in account} == {k: request[k] for k in account}
    assert (summary["team_id"], summary["user_id"], summary["org_id"], summary["alias"]) == ("t1", "u1", "o1", "ann")
    assert summary["request_tags"] == ["ctx_hooks:summary"]
    assert summary["response_cost"] == pytest.approx(
        summary["prompt_tokens"] * PRICES["input_cost_per_token"]
        + summary["completion_tokens"] * PRICES["output_cost_per_token"]
    )
    assert {**request, "model_group": "alone"} == before


@pytest.mark.parametrize("key", ["sk-limited", "sk-spent", "sk-restricted"])
def test_forbidden_summary_fails_no_request(proxy, provider, seed, key):
    """Over the key's rate, over its budget, or by a model that it may not call."""
    outcome, reason = summary_of(proxy, answered(proxy, seed, ABOVE_SOFT_MARK, "by-answers", key=key))
    assert (outcome, asked_for(provider, seed)) == ("failed", []), reason
