"""Other packages add steps and listen to compactions; what they break is theirs alone, as what a sink breaks."""

from typing import get_args

import pytest
from told_events import OVERFLOW

import ctx_hooks
from ctx_hooks.attempts.request import Request
from ctx_hooks.attempts.target import Target
from ctx_hooks.flow.request_flow import RequestFlow
from ctx_hooks.telemetry.listeners import Event, attach, emit, on
from ctx_hooks.testing import agent_session
from ctx_hooks.tokens.budget import Window


async def compact(mode="enforce"):
    payload = agent_session("openai-chat", turns=40)
    to = Target("openai/x", "d", Window(12_000, "policy"), ctx_hooks.Policy(mode=mode), "call")
    return await RequestFlow().deciding.decide(Request("openai-chat", payload), to)


@pytest.mark.parametrize("event", get_args(Event), ids=lambda event: event.__name__)
def test_every_event_that_a_listener_hears_is_public(event):
    assert event.__name__ in ctx_hooks.__all__
    assert getattr(ctx_hooks, event.__name__) is event


async def test_a_listener_that_fails_costs_no_request(caplog):
    end = ctx_hooks.on("before_compaction", lambda _: 1 / 0)
    decision = await compact()
    end()
    assert decision.changes
    assert "listener" in caplog.text


def test_an_event_that_is_none_is_refused():
    with pytest.raises(ValueError, match="no event"):
        ctx_hooks.on("during_compaction", print)


def test_a_failing_sink_hears_nothing_more_and_others_go_on(caplog):
    heard, tried, faults = [], [], []
    end_faults = on("fault", faults.append)

    def fail(event):
        tried.append(event)
        raise OSError("the disk is full")

    end_failing = attach("broken", {"overflow": fail, "answer": fail})
    end = attach("working", {"overflow": heard.append})
    emit(OVERFLOW)
    emit(OVERFLOW)
    end()
    end_failing()
    end_faults()
    emit(OVERFLOW)
    assert (len(tried), len(heard)) == (1, 2)
    assert [r.getMessage() for r in caplog.records] == ["the broken sink failed and is switched off"]
    assert [event.sink for event in faults] == ["broken"]
