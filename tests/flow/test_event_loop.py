"""Nothing that runs on the event loop grows with the conversation."""

import sys
import threading
from dataclasses import replace
from functools import partial

import pytest
from engine_requests import to
from strategies import FIELDS

from ctx_hooks.attempts.request import Request
from ctx_hooks.flow.deciding import ENGINE, off_loop
from ctx_hooks.flow.request_flow import RequestFlow
from ctx_hooks.formats.wire_format import without_flags
from ctx_hooks.litellm_compat.call import with_request_id
from ctx_hooks.overflow.recognise import Overflow
from ctx_hooks.policy.settings import Settings
from ctx_hooks.runtime.deadline import Deadline

PACKAGE = "/ctx_hooks/"
MORE_CALLS = 200
"""Of a few more rounds of the loop, while a longer conversation is read in a thread."""


def conversation(fmt, messages):
    """Return a request of a session in short messages, the newest one with a flag."""
    turns = [{"role": role, "content": f"{role} {n}"} for n in range(messages // 2) for role in ("user", "assistant")]
    turns.append({"role": "user", "content": [{"type": "text", "text": "Go on."}], "context": {"pin": True}})
    return Request(fmt, with_request_id({"model": "served", FIELDS[fmt]: turns, "store": False, "metadata": {"a": 1}}))


def blocks(number):
    """Return a request of one message in so many blocks."""
    content = [{"type": "text", "text": "a"}] * number
    fields = {"model": "served", "messages": [{"role": "user", "content": content}], "metadata": {"a": 1}}
    return Request("openai-chat", with_request_id(fields))


async def calls_on_loop(request, **policy):
    """Return how many functions of the package an attempt calls on the event loop's thread."""
    flow = RequestFlow(Settings())
    where = replace(to(10_000_000, **policy), request_id="one")
    calls = 0

    def count(frame, event, _):
        nonlocal calls
        calls += event == "call" and PACKAGE in frame.f_code.co_filename

    sys.setprofile(count)
    try:
        sent = await flow.before_attempt(request, where)
    finally:
        sys.setprofile(None)
    assert without_flags(sent[FIELDS[request.format]]) is None
    return calls


FORMATS = ("openai-chat", "anthropic", "openai-responses")


@pytest.mark.parametrize(("made", "policy"), [
    (partial(conversation, "openai-chat"), {}), *((partial(conversation, fmt), {"retrieval": True}) for fmt in FORMATS),
    (lambda messages: blocks(3 * messages), {"retrieval": True}),
])  # fmt: skip
async def test_size_adds_no_work_on_loop(made, policy):
    await calls_on_loop(made(3_000), **policy)  # what is imported, and made once
    short, long = [await calls_on_loop(made(n), **policy) for n in (3_000, 6_000)]
    assert long < short + MORE_CALLS


async def test_event_loop_never_imports_engine(monkeypatch):
    monkeypatch.delitem(sys.modules, ENGINE, raising=False)
    assert await off_loop(to(10_000), 1, threading.current_thread, Deadline()) is not threading.current_thread()


async def test_small_request_is_sent_without_its_flag():
    assert await calls_on_loop(conversation("openai-chat", 2))


async def test_refused_request_is_counted_in_thread():
    """Its size alone let it pass: it is counted once it has been refused."""
    request = Request("openai-chat", conversation("openai-chat", 900).fields)
    flow, where, walked = RequestFlow(Settings()), replace(to(10_000_000), request_id="one"), set()
    await flow.before_attempt(request, where)
    await flow.failed("one", Overflow("input", "x", 5_000))

    def note(frame, event, _):
        if event == "call" and PACKAGE in frame.f_code.co_filename:
            walked.add(frame.f_code.co_name)

    sys.setprofile(note)
    try:
        await flow.before_attempt(request, replace(where, attempt=1))
    finally:
        sys.setprofile(None)
    assert flow.running.of("one").attempts.last().to.attempt == 1
    assert not walked & {"uncounted_in", "with_counts", "seen_tokens", "_counted_text", "message_stats"}
