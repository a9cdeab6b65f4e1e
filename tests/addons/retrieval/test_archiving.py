"""What is cut goes to the archive and comes back; what the archive has lost is cut again from the request."""

import asyncio
import json
import re
from dataclasses import replace

import pytest
from archived import got, settled
from engine_requests import session, to
from waits import until

from ctx_hooks.addons.retrieval import archiving as archiving_module
from ctx_hooks.addons.retrieval.archiving import Archiving
from ctx_hooks.addons.retrieval.tool import NO_ROOM, NOT_AVAILABLE
from ctx_hooks.engine import engine
from ctx_hooks.learning.attempts import Known
from ctx_hooks.litellm_compat.identity import with_request_id
from ctx_hooks.policy.addon_settings import ArchiveSettings
from ctx_hooks.policy.settings import Policy
from ctx_hooks.request.request import Request
from ctx_hooks.runtime import content_cache
from ctx_hooks.runtime.deadline import Deadline, Timings
from ctx_hooks.serving import running
from ctx_hooks.serving.request_flow import RequestFlow
from ctx_hooks.serving.running import Running
from ctx_hooks.store.shared_store import SharedStore
from ctx_hooks.testing import agent_session

REQUEST = session(turns=30)
SETTINGS = ArchiveSettings(path=None)
TENANT = Archiving(SharedStore(), Running()).archive.tenant(*REQUEST.call.owner("key"))
HANDLE = re.compile(r"ctx_retrieve\(([a-z2-7]{12})\)")


@pytest.fixture(autouse=True)
def _nothing_remembered():
    content_cache.clear_all()


def told(archiving, request_id="one", **policy):
    """Have a request decided and archived; return the handles that stand in what is sent."""
    where = archiving.named(REQUEST, replace(to(12_000, retrieval=True, **policy), request_id=request_id))
    decided = engine.decide(REQUEST, where, Known(where.window), Deadline(60), Timings())
    archiving.decided(REQUEST, where, decided)
    return HANDLE.findall(json.dumps(decided.decision.changes))


async def test_sent_handles_are_archived_though_the_caller_left():
    """A later request finds the compaction in the cache, and stores nothing."""
    archiving, runner = Archiving(SharedStore(), Running()), RequestFlow()
    (await runner.addons.named(Policy(retrieval=True)))["retrieval"].archiving = archiving
    leaving = asyncio.get_running_loop().create_task(
        runner.deciding.decide(REQUEST, replace(to(12_000, retrieval=True), request_id="one"))
    )
    await until(lambda: archiving.archive.writing is not None)
    leaving.cancel()
    await asyncio.wait({leaving})
    await settled(archiving.archive)
    handles = told(archiving, "two")
    assert handles
    assert (await got(archiving.archive, SETTINGS, TENANT, handles)).keys() == set(handles)


async def test_answered_request_retrieves_nothing():
    archiving = Archiving(SharedStore(), Running())
    handle, *_ = told(archiving)
    assert archiving.offer("one")
    archiving.forget("one")
    assert not archiving.offer("one")
    for request_id in ("one", "another", ""):
        assert await archiving.answer(request_id, json.dumps({"handle": handle})) == NOT_AVAILABLE


async def test_turn_has_a_bounded_number_of_calls_answered():
    archiving = Archiving(SharedStore(), Running())
    handle, *_ = told(archiving)
    read, get = [], archiving.archive.get

    async def counted(*asked):
        read.append(asked)
        return await get(*asked)

    archiving.archive.get = counted
    pages = await archiving.answers("one", [json.dumps({"handle": handle, "query": "line"})] * 2_000)
    assert len(pages) == 2_000
    assert len(read) == archiving_module.MOST_CALLS
    assert set(pages[len(read) :]) == {NO_ROOM}


async def test_failed_request_is_forgotten():
    flow = RequestFlow()
    fields = with_request_id(agent_session("openai-chat", turns=40))
    request = Request("openai-chat", fields)
    request_id = request.call.request_id
    where = replace(to(12_000, retrieval=True), request_id=request_id)
    await flow.deciding.decide(request, where)
    archiving = (await flow.addons.named(where.policy))["retrieval"].archiving
    assert archiving.offer(request_id)
    await flow.failed(request_id, None)
    flow.after_failure(fields, ConnectionError("the model is gone"))
    assert not archiving.offer(request_id)


async def test_offers_are_bounded(monkeypatch):
    monkeypatch.setattr(running, "RUNNING_REQUESTS", 3)
    offered = Archiving(SharedStore(), Running())
    for n in range(5):
        told(offered, f"request {n}")
    assert [offered.offer(f"request {n}") is not None for n in range(5)] == [False, False, True, True, True]


@pytest.mark.parametrize("fmt", ["openai-chat", "anthropic", "openai-responses"])
async def test_request_fitted_before_the_choice_stays_offered(fmt):
    """With `enable_pre_call_checks` a request is decided about twice; the second time it has the tool."""
    runner = RequestFlow()
    where = replace(to(12_000, retrieval=True), request_id="one")
    fields = {**agent_session(fmt, turns=40), "store": False}
    first = (await runner.deciding.decide(Request(fmt, fields), where)).changes
    fitted = {**fields, **first}
    again = (await runner.deciding.decide(Request(fmt, fitted), where)).changes
    assert "ctx_retrieve" in json.dumps(first["tools"])
    assert "tools" not in again
    archiving = (await runner.addons.named(where.policy))["retrieval"].archiving
    assert archiving.offer("one")
    without = {**fitted, "tools": fields["tools"]}
    await runner.deciding.decide(Request(fmt, without), where)
    assert not archiving.offer("one")


async def test_observed_request_is_not_archived():
    observing = Archiving(SharedStore(), Running())
    assert told(observing, mode="observe") == []
    assert not observing.offer("one")
    assert observing.named(REQUEST, to(12_000)).retrievable is None
