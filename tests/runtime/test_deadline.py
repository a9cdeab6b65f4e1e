"""A compression that takes too long is replaced by the last resort in time, and holds up no other request."""

import asyncio
import threading
import time
from collections import defaultdict
from contextlib import contextmanager
from dataclasses import replace
from functools import partial

import pytest
from strategies import FIELDS, every_format
from waits import until

from ctx_hooks.attempts.request import Request
from ctx_hooks.attempts.target import Target
from ctx_hooks.compaction import last_resort, pipeline
from ctx_hooks.compaction.steps import Step
from ctx_hooks.flow.decision import TOOK_TOO_LONG, Compressed
from ctx_hooks.flow.request_flow import RequestFlow
from ctx_hooks.policy.settings import Policy
from ctx_hooks.runtime import content_cache, deadline
from ctx_hooks.runtime.deadline import CompressionTimeoutError, Deadline
from ctx_hooks.runtime.worker import MOST_ABANDONED, MOST_OF_A_TENANT, PLACES, Workers, pool
from ctx_hooks.telemetry.listeners import on
from ctx_hooks.testing import agent_session, violations
from ctx_hooks.tokens.budget import Window

ANN = "ann"
TIMEOUT_SECONDS = 0.5
MARGIN_SECONDS = 10
"""What a machine that is busy with other things may take for the last resort: far less than for ever."""
WINDOW_TOKENS = 12_000
SLOW_SEED = 13
"""Of the session that the slow step never returns for: its first message stays in every compaction."""


def request(fmt, question="What did you find?"):
    seed = SLOW_SEED if "SLOW" in question else 0
    return Request(fmt, agent_session(fmt, turns=40, question=question, seed=seed))


def target(call_id="call", **policy):
    return Target("openai/model", "deployment", Window(WINDOW_TOKENS, "policy"), Policy(**policy), call_id)


@pytest.fixture
def in_haste(monkeypatch):
    """A compression has half a second; the fixture is a function that gives it as long as usual again."""
    monkeypatch.setattr(deadline, "COMPRESSION_SECONDS", TIMEOUT_SECONDS)
    return lambda: monkeypatch.setattr(deadline, "COMPRESSION_SECONDS", 60.0)


@pytest.fixture
def slow_step(monkeypatch):
    """A step that never returns for a request that says so, unless it is stopped in its own way."""
    released = threading.Event()
    content_cache.clear_all()  # a step that was abandoned by an earlier test may have ended since

    def install(*, cooperates):
        def apply(conversation, budget):
            if any(f"project {SLOW_SEED} " in m.text for m in conversation.messages):
                while not released.wait(0.001):
                    if cooperates:
                        budget.counter.deadline.check()
            return conversation

        first, *others = pipeline.STEPS
        monkeypatch.setattr(pipeline, "STEPS", (first, Step("slow", "never returns", apply), *others))

    yield install
    released.set()


def sent(decision, fmt):
    return decision.changes[FIELDS[fmt]]


@every_format
@pytest.mark.usefixtures("in_haste")
@pytest.mark.parametrize("cooperates", [True, False])
async def test_a_step_that_never_returns_costs_the_timeout_and_the_oldest_turns(fmt, cooperates, slow_step):
    slow_step(cooperates=cooperates)
    began = time.monotonic()
    flow, asked, to = RequestFlow(), request(fmt, "SLOW question"), target()
    decision = await flow.deciding.decide(asked, to)
    assert decision.reason == TOOK_TOO_LONG
    assert TIMEOUT_SECONDS <= time.monotonic() - began < TIMEOUT_SECONDS + MARGIN_SECONDS
    assert isinstance(decision, Compressed)
    assert [step.name for step in decision.steps] == [last_resort.NAME]
    assert decision.figures.tokens_after <= decision.figures.budget_tokens
    fields = {**request(fmt, "SLOW question").fields}
    fields[FIELDS[fmt]] = sent(decision, fmt)
    assert not violations(fmt, fields)
    assert "SLOW question" in str(sent(decision, fmt)[-1])
    assert decision.figures.budget_tokens < decision.figures.tokens_before


async def test_a_request_that_is_too_large_goes_to_the_last_resort_at_once(monkeypatch):
    monkeypatch.setattr("ctx_hooks.attempts.request.MOST_REQUEST_BYTES", 50_000)
    flow, heard, asked, to = RequestFlow(), [], request("openai-chat"), target()
    decision = await flow.deciding.decide(asked, to)
    assert [step.name for step in decision.steps] == [last_resort.NAME]
    end = on("decision", heard.append)
    state = flow.running.of("call")
    flow.recorder.decided(state, asked, to, decision, state.attempts.last())
    end()
    assert [event.trigger for event in heard] == ["timeout"]


async def test_requests_that_are_too_long_hold_up_no_other(monkeypatch):
    monkeypatch.setattr("ctx_hooks.attempts.request.MOST_MESSAGES", 50)
    held, flow = threading.Event(), RequestFlow()
    running = asyncio.create_task(pool.run("ann", held.wait, Deadline(), gives_way=True))
    long = asyncio.create_task(flow.deciding.decide(request("openai-chat"), target("long")))
    short = Request("openai-chat", agent_session("openai-chat", turns=20))
    assert isinstance(await flow.deciding.decide(short, target("short")), Compressed)
    assert not long.done()
    held.set()
    assert await running
    assert [step.name for step in (await long).steps] == [last_resort.NAME]


@pytest.fixture
def no_threads():
    """Let the system refuse each new thread for a while: none has room for such a stack."""

    @contextmanager
    def refused():
        threading.stack_size(1 << 46)
        try:
            yield
        finally:
            threading.stack_size(0)

    return refused


async def test_a_request_that_waits_too_long_loses_its_oldest_turns(in_haste):
    """It waits behind its own tenant only: the same request of another tenant is compacted in full."""
    released = threading.Event()
    holding = [asyncio.create_task(pool.run("", released.wait, Deadline())) for _ in range(MOST_OF_A_TENANT)]
    flow = RequestFlow()
    waiting = asyncio.create_task(flow.deciding.decide(request("openai-chat"), target("waits")))
    queued = pool._waiting  # noqa: SLF001 - nothing else shows that the last resort waits
    await until(lambda: any(task.deadline.seconds_left is None for tasks in queued.values() for task in tasks))
    in_haste()
    calm = replace(target("other"), tenant="bob")
    other = await flow.deciding.decide(request("openai-chat"), calm)
    assert last_resort.NAME not in [step.name for step in other.steps]
    released.set()
    await asyncio.gather(*holding)
    assert [step.name for step in (await waiting).steps] == [last_resort.NAME]


class TestWorkers:
    async def test_work_that_does_not_stop_loses_its_place(self):
        workers, released, running = Workers(), threading.Event(), []

        def stuck():
            running.append(threading.current_thread())
            released.wait()

        for _ in range(MOST_OF_A_TENANT + 1):
            with pytest.raises(CompressionTimeoutError):
                await workers.run(ANN, stuck, Deadline(0.05))
        assert await workers.run(ANN, lambda: "done", Deadline(30)) == "done"
        assert all(thread.daemon for thread in running)
        released.set()

    async def test_threads_that_do_not_stop_are_bounded(self):
        workers, released = Workers(), threading.Event()
        for _ in range(MOST_ABANDONED + 3):
            with pytest.raises(CompressionTimeoutError):
                await workers.run(ANN, released.wait, Deadline(0.01))
        alive = [t for t in threading.enumerate() if t.name == "ctx_hooks"]
        assert len(alive) <= MOST_ABANDONED
        assert await workers.run(ANN, lambda: "the last resort still runs", Deadline())
        released.set()
        for thread in alive:
            thread.join()
        assert await workers.run(ANN, lambda: "and so does the rest", Deadline(30))

    async def test_tenants_take_turns_whatever_each_queues(self):
        """Nothing is timed: the order in which work begins is all that counts."""
        workers, begun, released = Workers(), [], threading.Event()

        def work(name):
            begun.append(name)
            released.wait()

        def queued(*names):
            return [asyncio.create_task(workers.run(name[0], partial(work, name), Deadline())) for name in names]

        waiting = queued("a1", "a2", "a3", "a4", "b1", "b2", "b3", "c1")
        await until(lambda: len(begun) == PLACES)
        assert set(begun) == {"a1", "a2", "b1"}  # one tenant never has all threads
        released.set()
        await asyncio.gather(*waiting)
        order = [begun.index(name) for name in ("b2", "c1", "a4")]
        assert order == sorted(order)

    async def test_work_that_gives_way_lets_others_finish(self):
        """One tenant's bodies of many messages; what begins later waits for none of them, and they wait for no more."""
        workers, begun, released, threads = Workers(), [], defaultdict(threading.Event), {}

        def start(name, *, gives_way):
            def work():
                threads[name] = threading.current_thread()
                begun.append(name)
                released[name].wait()

            return asyncio.create_task(workers.run(name[0], work, Deadline(), gives_way=gives_way))

        async def next_begun(*names):
            await until(lambda: len(begun) == len(names))
            assert begun == [*names]

        running = [start(name, gives_way=True) for name in ("a1", "a2", "d1")]
        await next_begun("a1")
        running.append(start("b1", gives_way=False))
        await next_begun("a1", "b1")
        released["a1"].set()
        await asyncio.to_thread(threads["a1"].join)
        running.append(start("c1", gives_way=False))
        await next_begun("a1", "b1", "c1")
        released["b1"].set()
        await next_begun("a1", "b1", "c1", "a2")
        for name in ("a2", "c1", "d1"):
            released[name].set()
        await asyncio.gather(*running)
        assert begun[-1] == "d1"

    async def test_work_that_nobody_waits_for_is_stopped(self):
        workers, began, stopped = Workers(), threading.Event(), threading.Event()
        deadline = Deadline(600)

        def work():
            began.set()
            try:
                while True:
                    deadline.check()
            finally:
                stopped.set()

        waiting = asyncio.create_task(workers.run(ANN, work, deadline))
        await asyncio.to_thread(began.wait)
        waiting.cancel()
        assert await asyncio.to_thread(stopped.wait, MARGIN_SECONDS)

    async def test_a_system_without_a_thread_costs_its_callers_an_error_and_the_workers_no_place(self, no_threads):
        workers = Workers()
        with no_threads():
            for _ in range(MOST_OF_A_TENANT + 1):
                with pytest.raises(RuntimeError):
                    await workers.run(ANN, lambda: "never", Deadline(30))
        assert await workers.run(ANN, lambda: "done", Deadline(30)) == "done"
