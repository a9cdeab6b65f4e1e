"""What clients, loggers and the spend see of the usage of a compressed request, on every route, streamed and not."""

from __future__ import annotations

import json

import pytest
from configurations import GENERAL, PLUGIN, deployment, importable
from litellm_versions import STATES_STREAMED_USAGE
from proxies import Proxy
from routes import CHAT, MESSAGES, MODELS, NAMES, ROUTES, SIZE

from ctx_hooks.testing import LOOPBACK, FakeProvider, ProviderSettings, agent_session
from ctx_hooks.testing.streams import OUTPUT_TOKENS

LOGGER = """
import json
from litellm.integrations.custom_logger import CustomLogger

class Logger(CustomLogger):
    async def async_log_success_event(self, kwargs, response_obj, start_time, end_time):
        logged = kwargs["standard_logging_object"]
        told = {name: logged[name] for name in ("prompt_tokens", "total_tokens", "response_cost")}
        print("billed", kwargs["litellm_call_id"], json.dumps(told), "end", flush=True)

handler = Logger()
"""
WINDOW = 5_200
PRICES = {"input_cost_per_token": 0.001, "cache_read_input_token_cost": 0.0001, "output_cost_per_token": 0.01}
LONG_RESULTS = {"turns": 6, "result_chars": 4_200}
POLICIES = ("provider", "original", "observed")
MOST_LEFT = 0.6
MOST_APART = 0.02
"""The provider adds four tokens to each message, and thinking a line to each turn, which no local count knows."""
RECORDS = ("usage", "usageMetadata")
UNLOGGED = "gemini-to-openai"
"""LiteLLM logs it under another id and bills nothing; and streamed, it states a usage of 0 before 1.108."""
over_every_route = pytest.mark.parametrize("name", NAMES)
streamed_or_not = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


@pytest.fixture(scope="module")
def roomy():
    with FakeProvider(ProviderSettings(window_tokens=1_000_000, tokens_factor=1.2)) as running:
        yield running


def started(roomy, folder, **sections):
    """Return a proxy with a group for each route and policy, whose deployments bill what they read."""
    listed = [
        deployment(roomy.url, f"{name}-{policy}", MODELS.get(name, "openai/served"), max_input_tokens=window, **PRICES)
        for name in NAMES
        for policy, window in ((*((p, WINDOW) for p in POLICIES), ("whole", 1_000_000)))
    ]
    config = {
        "model_list": listed,
        "litellm_settings": {"callbacks": [PLUGIN, "usage_logger.handler"]},
        "general_settings": GENERAL,
        "callback_settings": {
            "ctx_hooks": {
                "models": {
                    "*-original": {"report_usage": "original"},
                    "*-whole": {"report_usage": "original"},
                    "*-observed": {"report_usage": "original", "mode": "observe"},
                }
            }
        },
        **sections,
    }
    return Proxy(config, importable(folder, "usage_logger", LOGGER))


@pytest.fixture(scope="module")
def logging_proxy(roomy, tmp_path_factory):
    with started(roomy, tmp_path_factory.mktemp("logger")) as running:
        yield running


@pytest.fixture(scope="module")
def checking(roomy, tmp_path_factory):
    checks = {"router_settings": {"enable_pre_call_checks": True}}
    with started(roomy, tmp_path_factory.mktemp("checks"), **checks) as running:
        yield running


def asked(proxy, provider, name, policy, *, stream):
    """Return the answer, and the provider's record of the request."""
    fields = {"stream_options": {"include_usage": True}} if stream and name == "chat" else {}
    answer = ROUTES[NAMES.index(name)].ask(proxy, group=f"{name}-{policy}", stream=stream, size=LONG_RESULTS, **fields)
    assert answer.status_code == 200, answer.text
    return answer, provider.requests()[-1]


def cost_of(read):
    fresh = read["input_tokens"] - read["cached_tokens"]
    prices = zip((fresh, read["cached_tokens"], OUTPUT_TOKENS), PRICES.values(), strict=True)
    return pytest.approx(sum(tokens * dollars for tokens, dollars in prices))


def logged(proxy, answer):
    call_id = answer.headers["x-litellm-call-id"]
    proxy.wait_for_log(f"billed {call_id}")
    line = proxy.log().split(f"billed {call_id} ", 1)[1].split(" end", 1)[0]
    return json.loads(line)


def told(answer):
    """Return the usage records of an answer that state an input."""
    texts = [line[len("data:") :] for line in answer.text.splitlines() if line.startswith("data:")] or [answer.text]
    events = [json.loads(text) for text in texts if text.strip() != "[DONE]"]
    held = [holder for e in events for holder in (e, e.get("message"), e.get("response")) if isinstance(holder, dict)]
    records = [holder[name] for holder in held for name in RECORDS if holder.get(name)]
    return [record for record in records if input_of(record)]


def states_usage(name, *, stream):
    return not stream or name != UNLOGGED or STATES_STREAMED_USAGE


def input_of(usage):
    beside = sum(usage.get(n) or 0 for n in ("cache_read_input_tokens", "cache_creation_input_tokens"))
    if "input_tokens" in usage and "total_tokens" not in usage:
        return usage["input_tokens"] + beside
    return next((usage[n] for n in ("prompt_tokens", "input_tokens", "promptTokenCount") if n in usage), None)


def total_of(usage):
    return usage.get("total_tokens") or usage.get("totalTokenCount")


@over_every_route
@streamed_or_not
def test_the_client_sees_the_size_of_what_it_sent_and_the_spend_what_was_billed(name, stream, logging_proxy, roomy):
    """Of what the provider's cache serves, too: the same is asked twice."""
    _, original = asked(logging_proxy, roomy, name, "whole", stream=stream)
    for _ in range(2):
        answer, read = asked(logging_proxy, roomy, name, "original", stream=stream)
        billed = read["input_tokens"]
        assert billed < original["input_tokens"] * MOST_LEFT, "the request was compressed"
        records = told(answer)
        assert bool(records) is states_usage(name, stream=stream)
        for usage in records:
            assert input_of(usage) == pytest.approx(original["input_tokens"], rel=MOST_APART)
            assert total_of(usage) in (None, input_of(usage) + OUTPUT_TOKENS)
        if name != UNLOGGED:
            cost = cost_of(read)
            tokens = {"prompt_tokens": billed, "total_tokens": billed + OUTPUT_TOKENS}
            assert logged(logging_proxy, answer) == {**tokens, "response_cost": cost}
            assert stream or float(answer.headers["x-litellm-response-cost"]) == cost
    assert read["cached_tokens"] > 0


@over_every_route
def test_elsewhere_the_client_sees_what_was_billed(name, logging_proxy, roomy):
    """Where the policy is off, where it only observes, and where nothing was cut: changing from route to route."""
    n = NAMES.index(name)
    policy, stream = ("provider", "observed", "whole")[n % 3], n % 2 == 1
    answer, read = asked(logging_proxy, roomy, name, policy, stream=stream)
    found = {input_of(usage) for usage in told(answer)}
    assert found == ({read["input_tokens"]} if states_usage(name, stream=stream) else set())


def test_a_request_that_the_router_would_refuse_states_its_size_too(checking, roomy):
    _, original = asked(checking, roomy, "chat", "whole", stream=False)
    answer, read = asked(checking, roomy, "chat", "original", stream=False)
    assert input_of(*told(answer)) == pytest.approx(original["input_tokens"], rel=MOST_APART)
    assert logged(checking, answer)["prompt_tokens"] == read["input_tokens"] < original["input_tokens"] * MOST_LEFT


@pytest.mark.parametrize("policy", ["provider", "original"])
def test_count_tokens_counts_what_the_client_sends(policy, logging_proxy):
    """It reaches no hook: a request that would be compressed is counted as it is, in LiteLLM's tokens or the provider's."""
    session = agent_session("anthropic", model=f"messages-to-openai-{policy}", **SIZE)
    counted = count(logging_proxy, session)
    assert counted > WINDOW
    assert counted == count(logging_proxy, {**session, "model": "messages-to-openai-whole"})


def count(proxy, session):
    answer = LOOPBACK.post(f"{proxy.url}{MESSAGES.path}/count_tokens", json=session, headers=proxy.headers, timeout=60)
    assert answer.status_code == 200, answer.text
    return answer.json()["input_tokens"]


def test_a_stream_whose_client_asks_for_no_usage_gets_none(logging_proxy):
    answer = CHAT.ask(logging_proxy, group="chat-original", stream=True)
    assert answer.status_code == 200
    assert told(answer) == []
