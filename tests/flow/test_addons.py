"""An add-on takes part where a policy names it, is not loaded elsewhere, and costs no request anything if it fails."""

import asyncio
import importlib
import logging
import sys
from dataclasses import replace

import pytest
from engine_requests import session, to
from proxies import printed_by

from ctx_hooks.flow import addons
from ctx_hooks.flow.request_flow import RequestFlow
from ctx_hooks.litellm_compat.call import Call, request_id_of, with_request_id
from ctx_hooks.litellm_compat.logged import Answer
from ctx_hooks.policy.settings import Settings
from ctx_hooks.tokens.usage import billed_of

TOY = """
from dataclasses import replace
from ctx_hooks.flow.addons import Addon

class Toy(Addon):
    made = []

    def __init__(self, core):
        self.seen = []
        Toy.made.append(self)

    async def decided(self, undecided, decide):
        self.seen.append("decided")
        found = await decide(undecided._replace(to=undecided.to))
        changes = {**found.decision.changes, "sent": undecided.to.model}
        return found._replace(decision=replace(found.decision, changes=changes))

    async def shown(self, fields, answer, *, streamed):
        return self.louder(answer) if streamed else answer.upper()

    async def louder(self, stream):
        async for chunk in stream:
            yield chunk.upper()

    def ended(self, attempt, billed):
        self.seen.append(billed.input_tokens if billed else "failed")

class Broken(Toy):
    def ended(self, attempt, billed):
        raise OSError("no such thing")

    async def decided(self, undecided, decide):
        await decide(undecided)
        raise OSError("no such thing")
"""


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """An optional part in the place of retrieval; returns the ones that were made."""
    (tmp_path / "toy_addon.py").write_text(TOY)
    monkeypatch.setitem(addons.OWN, "retrieval", "toy_addon:Toy")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "toy_addon", raising=False)
    yield lambda: sys.modules["toy_addon"].Toy.made if "toy_addon" in sys.modules else []
    sys.modules.pop("toy_addon", None)


async def chunks(*texts):
    for text in texts:
        yield text


ONE, OTHER = (with_request_id({**session(turns=30).fields, "metadata": {}}) for _ in range(2))


async def decided(flow, fields=ONE, **policy):
    """Return what is sent of a request that is too long."""
    target = replace(to(12_000, block_below_tokens=0, **policy), request_id=Call(fields).request_id)
    return await flow.before_attempt(session(turns=30), target)


def whole(flow, fields, answer):
    return flow.addons.whole(flow.running.of(request_id_of(fields)), fields, answer)


def streamed(flow, fields, stream):
    return flow.addons.streamed(flow.running.of(request_id_of(fields)), fields, stream)


async def test_named_add_on_takes_part_throughout(toy):
    settings = Settings(defaults={"retrieval": True})
    flow = RequestFlow(settings)
    arranged = await flow.before_choice(session().with_fields({**session().fields, "metadata": {}}))
    sent = await decided(flow, arranged, retrieval=True)
    assert sent["sent"] == "openai/gpt-4o"
    assert await whole(flow, arranged, "answer") == "ANSWER"
    assert [c async for c in streamed(flow, arranged, chunks("a", "b"))] == ["A", "B"]
    await flow.answered(Call(arranged).request_id, Answer(billed_of({"prompt_tokens": 70, "completion_tokens": 7})))
    (made,) = toy()
    assert made.seen == ["decided", 70]


async def test_unnamed_add_on_hears_of_no_request(toy):
    flow = RequestFlow(Settings())
    assert "sent" not in await decided(flow)
    assert await whole(flow, {"messages": []}, "answer") == "answer"
    assert toy() == []
    await decided(flow, retrieval=True)
    assert "sent" not in await decided(flow, OTHER)
    assert await whole(flow, OTHER, "answer") == "answer"
    assert [c async for c in streamed(flow, OTHER, chunks("a"))] == ["a"]
    assert await flow.failed(Call(OTHER).request_id, None)
    (made,) = toy()
    assert made.seen == ["decided"]


async def test_observed_request_is_shown_to_no_add_on(toy):
    flow = RequestFlow(Settings())
    await decided(flow, retrieval=True, mode="observe")
    assert await whole(flow, ONE, "answer") == "answer"
    assert toy()


async def test_requests_at_once_load_one_add_on(toy):
    flow = RequestFlow(Settings())
    await asyncio.gather(*(decided(flow, retrieval=True) for _ in range(4)))
    assert len(toy()) == 1


async def test_add_on_of_next_deployment_joins_stream(toy):
    """The Router may go on to another deployment in mid-stream."""
    flow = RequestFlow(Settings())

    await decided(flow)

    async def stream():
        yield "first"
        await decided(flow, retrieval=True)
        for text in ("second", "third"):
            yield text

    assert [c async for c in streamed(flow, ONE, stream())] == ["first", "SECOND", "THIRD"]
    assert toy()


@pytest.mark.parametrize("made_by", ["toy_addon:Broken", "no_such_module:Toy"])
@pytest.mark.usefixtures("toy")
async def test_broken_add_on_costs_no_request(made_by, caplog, monkeypatch):
    monkeypatch.setitem(addons.OWN, "retrieval", made_by)
    flow = RequestFlow(Settings(defaults={"retrieval": True}))
    fields = {**session().fields, "metadata": {}}
    arranged = await flow.before_choice(session().with_fields(fields))
    assert arranged["messages"] == fields["messages"]
    assert Call(arranged).request_id
    plain, sent = await decided(RequestFlow(Settings())), await decided(flow, retrieval=True)
    assert sent["messages"] == plain["messages"]
    assert await flow.answered(Call(ONE).request_id, Answer(billed_of({"prompt_tokens": 70, "completion_tokens": 7})))
    warnings = [r.getMessage() for r in caplog.records if r.levelno == logging.WARNING]
    assert warnings
    assert all("retrieval" in warning for warning in warnings)


@pytest.mark.parametrize("pause_seconds", [0.0, 60.0])
@pytest.mark.usefixtures("toy")
async def test_missing_add_on_is_loaded_after_pause(pause_seconds, tmp_path, monkeypatch):
    monkeypatch.setattr(addons, "PAUSE_SECONDS", pause_seconds)
    monkeypatch.setitem(addons.OWN, "retrieval", "no_such_module:Toy")
    flow = RequestFlow(Settings(defaults={"retrieval": True}))
    await decided(flow, retrieval=True)
    (tmp_path / "no_such_module.py").write_text("from toy_addon import Toy\n")
    importlib.invalidate_caches()
    assert ("sent" in await decided(flow, retrieval=True)) == (pause_seconds == 0)
    sys.modules.pop("no_such_module", None)


def test_policy_imports_only_add_ons_it_names():
    code = """
import asyncio, sys
from ctx_hooks.hook import CtxHooks
from ctx_hooks.policy.settings import Policy
from ctx_hooks.attempts.request import Request
from ctx_hooks.attempts.target import Target
from ctx_hooks.testing import agent_session
from ctx_hooks.tokens.budget import Window
for policy in ({}, {"archive": {}}, {"retrieval": True}, {"summary": {"model": "small"}}):
    to = Target("openai/x", "d", Window(12_000, "policy"), Policy(block_below_tokens=0, **policy), "")
    flow = CtxHooks().flow
    asyncio.run(flow.before_attempt(Request("openai-chat", agent_session("openai-chat", turns=40)), to))
    loaded = [name for name in sys.modules if name.startswith("ctx_hooks.addons.")]
    print("with", *policy, *sorted({name.split(".")[2] for name in loaded}), sep=",")
    for name in loaded:
        del sys.modules[name]
"""
    lines = [line for line in printed_by(code).splitlines() if line.startswith("with")]
    assert lines == ["with", "with,archive,retrieval", "with,retrieval,retrieval", "with,summary,summaries"]
