"""What a request loses is archived, and its model can read it until the request is answered; an event tells of each call."""

import asyncio
import json
import re
from dataclasses import replace

import pytest
from archived import settled
from engine_requests import session, to
from waits import until

from ctx_hooks.addons.retrieval.archive.archive import Archive
from ctx_hooks.addons.retrieval.rounds import answers_of
from ctx_hooks.addons.retrieval.tool import NO_ROOM, NOT_AVAILABLE
from ctx_hooks.attempts.request import Request
from ctx_hooks.flow.request_flow import RequestFlow
from ctx_hooks.litellm_compat.call import with_request_id
from ctx_hooks.policy.settings import Policy
from ctx_hooks.runtime import content_cache
from ctx_hooks.store.shared_store import SharedStore
from ctx_hooks.telemetry.event_file import to_json
from ctx_hooks.telemetry.listeners import on
from ctx_hooks.testing import agent_session

REQUEST = session(turns=30)
TO = replace(to(12_000, retrieval=True), request_id="one")
HANDLE = re.compile(r"ctx_retrieve\(([a-z2-7]{12})\)")


@pytest.fixture(autouse=True)
def _nothing_remembered():
    content_cache.clear_all()


@pytest.fixture
def flow():
    return RequestFlow()


async def retrieval(flow):
    return (await flow.addons.named(Policy(retrieval=True)))["retrieval"]


async def sent_handles(flow, where=TO):
    """Decide about the request; return the handles that stand in what is sent."""
    return HANDLE.findall(json.dumps((await flow.deciding.decide(REQUEST, where)).changes))


async def asked(flow, *arguments):
    """Return the results of calls to the request's tool."""
    addon = await retrieval(flow)
    return await answers_of(addon.archive, addon.offers.of("one"), arguments)


async def test_sent_handles_are_archived_though_the_caller_left(flow):
    archive = (await retrieval(flow)).archive
    leaving = asyncio.get_running_loop().create_task(flow.deciding.decide(REQUEST, TO))
    await until(lambda: archive.writing)
    leaving.cancel()
    await asyncio.wait({leaving})
    await settled(archive)
    handles = await sent_handles(flow)
    assert handles
    assert NOT_AVAILABLE not in await asked(flow, *(json.dumps({"handle": handle}) for handle in handles))


@pytest.mark.parametrize(("calls", "has_room"), [(4, True), (2_000, False)])
async def test_calls_of_a_turn_share_the_room(flow, calls, has_room):
    handle, *_ = await sent_handles(flow)
    pages = await asked(flow, *[json.dumps({"handle": handle})] * calls)
    assert len(pages) == calls
    assert set(pages) != {NO_ROOM} if has_room else set(pages) == {NO_ROOM}
    assert not has_room or sum(map(len, pages)) <= 12_000


async def test_failed_request_is_forgotten(flow):
    fields = with_request_id(agent_session("openai-chat", turns=40))
    request = Request("openai-chat", fields)
    request_id = request.call.request_id
    await flow.deciding.decide(request, replace(TO, request_id=request_id))
    offers = (await retrieval(flow)).offers
    assert offers.of(request_id)
    await flow.failed(request_id, None)
    flow.after_failure(fields, ConnectionError("the model is gone"))
    assert offers.of(request_id) is None


async def test_request_fitted_before_the_choice_stays_offered(flow):
    """With `enable_pre_call_checks` a request is decided about twice; the second time it has the tool."""
    fields = agent_session("openai-chat", turns=40)
    fitted = {**fields, **(await flow.deciding.decide(Request("openai-chat", fields), TO)).changes}
    offers = (await retrieval(flow)).offers
    for tools, is_offered in ((fitted["tools"], True), (fields["tools"], False)):
        again = (await flow.deciding.decide(Request("openai-chat", {**fitted, "tools": tools}), TO)).changes
        assert ("tools" in again, bool(offers.of("one"))) == (False, is_offered)


async def test_observed_request_is_not_archived(flow):
    observing = replace(to(12_000, retrieval=True, mode="observe"), request_id="one")
    assert await sent_handles(flow, observing) == []
    addon = await retrieval(flow)
    assert (addon.offers.of("one"), addon.archive.writing) == (None, set())


async def test_event_says_where_a_text_came_from(flow):
    found = []
    end = on("retrieval", found.append)
    handle, *_ = await sent_handles(flow)
    arguments = json.dumps({"handle": handle, "query": "unheard"})
    pages = await asked(flow, arguments, '{"handle": "bbbbbbbbbbbb"}', "{", "")
    (await retrieval(flow)).archive = Archive(SharedStore(), b"")  # which has lost it
    pages += await asked(flow, arguments)
    end()
    assert [page == NOT_AVAILABLE for page in pages] == [False, *[True] * 4]
    sources = [("archive", len(pages[0])), *[("none", 0)] * 4]
    assert [(event.source, event.returned_chars) for event in found] == sources
    assert {(event.call.request_id, event.call.deployment) for event in found} == {("one", TO.deployment)}
    lines = " ".join(map(to_json, found))
    assert handle not in lines
    assert "unheard" not in lines
