"""A running request has one state, nobody else's, until it has ended and its caller has the headers, or it is the oldest."""

import weakref
from types import SimpleNamespace

import pytest
from engine_requests import attempted

from ctx_hooks.flow import running as module
from ctx_hooks.flow.running import Attempts, Running
from ctx_hooks.litellm_compat.call import DeploymentName
from ctx_hooks.overflow.recognise import Overflow


def at(deployment, sent):
    return attempted(8_000, sent, deployment=deployment)


MAIN, SHADOW = at("m:openai/gpt", 30_000), at("s:openai/gpt", 3_000)


@pytest.fixture
def running():
    return Running(asks_for_headers=lambda: True)


class Held(SimpleNamespace):
    """What holds a request, and can be referred to weakly."""

    def __init__(self, size_bytes):
        super().__init__(size_bytes=size_bytes)


@pytest.mark.parametrize("headers_first", [True, False], ids=["streamed", "whole"])
def test_state_closes_after_end_and_headers(running, headers_first):
    state = running.open("one")
    steps = [lambda: running.headers_of_answer("one"), lambda: running.end("one")]
    first, last = steps if headers_first else reversed(steps)
    first()
    assert running.of("one") is state
    last()
    assert running.of("one") is not state


def test_state_outside_proxy_waits_for_no_headers():
    running = Running()
    state = running.open("one")
    running.end("one")
    assert running.of("one") is not state


def test_running_attempt_keeps_the_state(running):
    state = running.open("one")
    state.headers_sent = True
    state.attempts.sent(MAIN)
    state.attempts.sent(SHADOW)
    state.attempts.done(DeploymentName("m", "gpt"))
    running.end("one")
    assert running.of("one") is state
    state.attempts.failed(Overflow("input", "x"))
    running.end("one")
    assert running.of("one") is not state


def test_waiting_add_on_keeps_the_state(running):
    state = running.open("one")
    state.awaited_by |= {"an add-on"}
    running.headers_of_answer("one")
    running.end("one")
    assert running.of("one") is state
    state.awaited_by -= {"an add-on"}
    running.hold("one", state)
    assert running.of("one") is not state


def test_longest_quiet_requests_are_forgotten_first(running, monkeypatch):
    """A retry is no new request, and keeps its request remembered."""
    monkeypatch.setattr(module, "RUNNING_REQUESTS", 3)
    for request_id in ("first", "second", "third", "first", "fourth"):
        running.open(request_id).headers["id"] = request_id
    known = [r for r in ("first", "second", "third", "fourth") if running.of(r).headers]
    assert known == ["first", "third", "fourth"]


@pytest.mark.parametrize("bound", [("MOST_HELD", 2), ("MOST_HELD_BYTES", 100)], ids=["number", "bytes"])
def test_oldest_requests_are_released_first(running, monkeypatch, bound):
    monkeypatch.setattr(module, *bound)
    for request_id in ("a", "b", "c", "b"):
        state = running.open(request_id)
        state.headers["id"] = request_id
        state.held |= {"one": Held(40), "two": Held(40)}
        running.hold(request_id, state)
    assert [bool(running.of(r).held) for r in "abc"] == [False, True, True]
    assert all(running.of(r).headers for r in "abc")
    state = running.open("d")
    state.held["one"] = Held(101)
    running.hold("d", state)
    assert (not state.held) == (bound[0] == "MOST_HELD_BYTES")


def test_closed_request_is_released(running):
    """Of what is held for several deployments only one answers."""
    kept = Held(60)
    state = running.open("one")
    state.held |= {"first deployment": kept, "second deployment": kept}
    running.hold("one", state)
    state.held.pop("second deployment")
    running.hold("one", state)
    running.end("one")
    running.headers_of_answer("one")
    found = weakref.ref(kept)
    del state, kept
    assert found() is None


def test_released_request_counts_no_more(running, monkeypatch):
    monkeypatch.setattr(module, "MOST_HELD_BYTES", 100)
    one, two = running.open("one"), running.open("two")
    for state, request_id in ((one, "one"), (two, "two")):
        state.held["one"] = Held(60)
        running.hold(request_id, state)
        if state is one:
            state.held.clear()
            running.hold("one", one)
    assert (bool(one.held), bool(two.held)) == (False, True)


@pytest.fixture
def both():
    attempts = Attempts()
    attempts.sent(MAIN)
    attempts.sent(SHADOW)
    return attempts


def test_answer_finds_attempt_by_its_deployment(both):
    assert both.done(DeploymentName("m", "gpt")).sent_tokens == 30_000
    assert both.done(DeploymentName("m", "gpt")) is None
    assert both.last() is None, "an answer of no known attempt leaves nothing to learn from"


def test_failure_of_one_attempt_leaves_the_other(both):
    failed = both.failed(Overflow("input", "x"), "too long", DeploymentName("m", "gpt"))
    assert both.failed(None, "again", DeploymentName("m", "gpt")) is None, "it fails once"
    assert (failed.overflow.kind, failed.refusal) == ("input", "too long")
    assert failed.to.deployment == "m:openai/gpt"
    assert both.last(MAIN.to).failed
    assert not both.last(SHADOW.to).failed
    assert both.are_running
    assert both.done(DeploymentName("s", "gpt")).sent_tokens == 3_000
    assert not both.are_running


def test_attempts_differ_in_whole_id_and_model():
    """One id may begin another, and several models may have one id."""
    attempts = Attempts()
    attempts.sent(at("prod:openai/gpt", 30_000))
    attempts.sent(at("prod:openai/small", 2_000))
    attempts.sent(attempted(8_000, 3_000, deployment_id="prod:eu", deployment="prod:eu:openai/gpt"))
    assert attempts.at(DeploymentName("prod", "gpt")).sent_tokens == 30_000
