"""Each call of the retrieval tool is told of once, by where its text came from, and without what was asked or returned."""

import json
import re

import pytest

from ctx_hooks.addons.retrieval.archive.archive import Archive
from ctx_hooks.addons.retrieval.tool import NOT_AVAILABLE
from ctx_hooks.policy.settings import Policy
from ctx_hooks.request.request import Request
from ctx_hooks.request.target import Target
from ctx_hooks.serving.request_flow import RequestFlow
from ctx_hooks.store.shared_store import SharedStore
from ctx_hooks.telemetry.event_file import to_json
from ctx_hooks.telemetry.listeners import on
from ctx_hooks.testing import agent_session
from ctx_hooks.tokens.budget import Window

TO = Target("openai/x", "d", Window(12_000, "policy"), Policy(retrieval=True), "request")
HANDLE = re.compile(r"ctx_retrieve\(([a-z2-7]{12})\)")


@pytest.fixture
def told():
    found = []
    end = on("retrieval", found.append)
    yield found
    end()


async def offered():
    """Return what answers the calls of a request from which something was cut, and the handle of that."""
    runner = RequestFlow()
    payload = {**agent_session("openai-chat", turns=40), "litellm_call_id": "call"}
    decision = await runner.deciding.decide(Request("openai-chat", payload), TO)
    retrieval = (await runner.addons.named(TO.policy))["retrieval"]
    return retrieval.archiving, HANDLE.findall(json.dumps(decision.changes["messages"]))[0]


async def test_event_says_where_a_text_came_from(told):
    archiving, handle = await offered()
    pages = [await archiving.answer("request", json.dumps({"handle": handle, "query": "unheard"}))]
    archiving.archive = Archive(SharedStore(), b"")  # which has lost it
    pages.append(await archiving.answer("request", json.dumps({"handle": handle, "query": "unheard"})))
    assert pages[0] != pages[1] == NOT_AVAILABLE
    assert [(event.source, event.returned_chars) for event in told] == [("archive", len(pages[0])), ("none", 0)]
    assert {(event.call.request_id, event.call.call_id, event.call.deployment) for event in told} == {
        ("request", "call", "d")
    }
    lines = " ".join(map(to_json, told))
    assert handle not in lines
    assert "unheard" not in lines


@pytest.mark.parametrize("arguments", ['{"handle": "bbbbbbbbbbbb"}', "{", ""], ids=["foreign", "broken", "none"])
async def test_unavailable_text_comes_from_nowhere(told, arguments):
    archiving, _ = await offered()
    assert await archiving.answer("request", arguments) == NOT_AVAILABLE
    assert [(event.source, event.returned_chars, event.call.call_id) for event in told] == [("none", 0, "call")]


async def test_forgotten_request_is_told_by_its_id(told):
    archiving, handle = await offered()
    archiving.forget("request")
    assert await archiving.answer("request", json.dumps({"handle": handle})) == NOT_AVAILABLE
    assert [(event.source, event.call.request_id, event.call.deployment) for event in told] == [("none", "request", "")]
