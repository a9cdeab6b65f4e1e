"""Summaries cost no request its decision, hold up no other request, and keep no request for ever."""

import logging
import threading
from dataclasses import replace

import pytest
from litellm.proxy._types import UserAPIKeyAuth

from ctx_hooks.addons.summaries import addon
from ctx_hooks.addons.summaries.addon import is_due
from ctx_hooks.addons.summaries.stored import StoredSummaries
from ctx_hooks.attempts.attempt import Attempt, Limits
from ctx_hooks.attempts.request import Request
from ctx_hooks.attempts.target import Target
from ctx_hooks.compaction.steps import Choice
from ctx_hooks.flow.decision import Compressed
from ctx_hooks.flow.request_flow import RequestFlow
from ctx_hooks.litellm_compat.call import DeploymentName
from ctx_hooks.policy.settings import Policy
from ctx_hooks.testing import agent_session
from ctx_hooks.tokens.budget import Window

TO = Target(
    "openai/gpt-4o", "deployment", Window(8_000, "model_info"), Policy(summary={"model": "small"}, block_below_tokens=0),
    "request", "ann",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _router(proxy_router):
    """The one of a proxy with the model that writes."""
    proxy_router({"model_name": "small", "litellm_params": {"model": "openai/small", "api_key": "k"}})


def request_of(turns=40):
    auth = UserAPIKeyAuth(api_key="sk-one")
    return Request("openai-chat", {**agent_session("openai-chat", turns=turns), "metadata": {"user_api_key_auth": auth}})


def asking(runner):
    return [deployment for _, deployment in runner.running.of("request").held]


async def test_fault_costs_no_decision(caplog, monkeypatch):
    async def fail(*_):
        raise OverflowError("int too large to convert to float")

    runner = RequestFlow()
    monkeypatch.setattr(StoredSummaries, "of", fail)
    assert isinstance(await runner.deciding.decide(request_of(), TO), Compressed)
    (record,) = [r for r in caplog.records if r.levelno == logging.WARNING]
    assert record.getMessage() == "ctx_hooks failed and decides without the add-on summaries"


async def test_key_is_made_beside_the_event_loop(monkeypatch):
    threads = []

    def noted(*_):
        threads.append(threading.current_thread())
        return "0a"

    monkeypatch.setattr(addon, "conversation_key", noted)
    await RequestFlow().deciding.decide(request_of(), TO)
    assert threads
    assert threading.main_thread() not in threads


async def test_request_is_kept_until_its_attempt_ends():
    runner = RequestFlow()
    for deployment in ("deployment", "shadow:model"):
        own_id = deployment.partition(":")[0]
        await runner.deciding.decide(request_of(), replace(TO, deployment=deployment, deployment_id=own_id))
    await runner.failed("request", None, "", DeploymentName("shadow", "model"))
    assert asking(runner) == ["deployment"]


@pytest.mark.parametrize(("choice", "billed", "due"), [
    (None, 7_900, False), (None, 8_100, True), (Choice("01", "", 9, free_tokens=2_100), 9_000, False),
    (Choice("01", "", 9, free_tokens=1_900), 5_000, True), (Choice("01", "ab", 9), 9_900, False),
])  # fmt: skip
def test_summary_begins_if_the_next_compaction_is_near(choice, billed, due):
    attempt = Attempt(TO, Limits(TO.window), "openai-chat", 8_000)
    assert is_due(replace(attempt, choice=choice), 10_000, billed) == due
