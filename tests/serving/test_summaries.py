"""Summaries cost no request its decision, hold up no other request, and keep no request for ever."""

import logging
import threading
from dataclasses import replace

import pytest
from litellm import Router
from litellm.proxy import proxy_server
from litellm.proxy._types import UserAPIKeyAuth

from ctx_hooks.decision import Compressed
from ctx_hooks.learning.attempts import DeploymentName
from ctx_hooks.learning.learned import Learned
from ctx_hooks.learning.stored_summaries import StoredSummaries
from ctx_hooks.policy.settings import Policy
from ctx_hooks.request.request import Request
from ctx_hooks.request.target import Target
from ctx_hooks.serving import summary_requests
from ctx_hooks.serving.attempt_runner import AttemptRunner
from ctx_hooks.serving.running import Running
from ctx_hooks.serving.summaries import SummaryFlights
from ctx_hooks.serving.summary_requests import asking_of
from ctx_hooks.store.shared_store import SharedStore
from ctx_hooks.testing import agent_session
from ctx_hooks.tokens.window import Window

TO = Target(
    "openai/gpt-4o", "deployment", Window(8_000, "model_info"), Policy(summary={"model": "small"}, warn_below_tokens=0),
    "request", "ann",
)  # fmt: skip


@pytest.fixture(autouse=True)
def proxy_router(monkeypatch):
    deployment = {"model_name": "small", "litellm_params": {"model": "openai/small", "api_key": "k"}}
    monkeypatch.setattr(proxy_server, "llm_router", Router(model_list=[deployment]))


def request_of(turns=40):
    auth = UserAPIKeyAuth(api_key="sk-one")
    return Request("openai-chat", {**agent_session("openai-chat", turns=turns), "metadata": {"user_api_key_auth": auth}})


async def here(work):
    return work()


async def test_a_fault_of_the_summaries_costs_no_decision_and_is_logged_once(caplog, monkeypatch):
    async def fail(*_):
        raise OverflowError("int too large to convert to float")

    runner = AttemptRunner()
    monkeypatch.setattr(StoredSummaries, "of", fail)
    assert isinstance(await runner.decide(request_of(), TO), Compressed)
    (record,) = [r for r in caplog.records if r.levelno == logging.WARNING]
    assert record.getMessage() == "ctx_hooks failed and decides without a summary"


async def test_what_is_kept_for_an_answer_is_forgotten_when_the_attempt_fails():
    runner = AttemptRunner()
    await runner.decide(request_of(), TO)
    assert runner.running.of("request").asking
    await runner.failed("request", None)
    assert not runner.running.of("request").asking


async def test_the_size_of_a_request_is_no_less_than_its_text():
    request = request_of()
    found = await asking_of(request, TO, here)
    assert len(str(request.items)) / 2 < found.size_bytes < 10 * len(str(request.items))


async def test_the_key_of_a_long_request_is_made_beside_the_event_loop(monkeypatch):
    threads = []

    def noted(*_):
        threads.append(threading.current_thread())
        return "0a"

    monkeypatch.setattr(summary_requests, "conversation_key", noted)
    await AttemptRunner().decide(request_of(), TO)
    assert threads
    assert threading.main_thread() not in threads


async def test_without_a_policy_for_summaries_nothing_is_awaited_or_kept():
    async def never(_):
        raise AssertionError("no work is due")

    async def decide(known):
        return known

    flights = SummaryFlights(SharedStore(), Learned(SharedStore()), Running())
    to = replace(TO, policy=Policy())
    assert await flights.decided(request_of(), to, "known", decide, never) == "known"


async def test_a_request_that_goes_to_two_deployments_is_kept_for_the_answer_of_each():
    runner = AttemptRunner()
    for deployment in ("deployment", "shadow:model"):
        await runner.decide(request_of(), replace(TO, deployment=deployment))
    await runner.failed("request", None, "", DeploymentName("shadow", "model"))
    assert list(runner.running.of("request").asking) == ["deployment"]
