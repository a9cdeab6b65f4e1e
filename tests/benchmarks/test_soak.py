"""The pure parts of the soak: what counts as a right answer, the figures, and the arithmetic of the capacity tables."""

import sys
from pathlib import Path

import orjson
import pytest

sys.path.append(str(Path(__file__).parents[2] / "benchmarks" / "soak"))

import capacity
import driver
import figures
import workload

from ctx_hooks.testing import streams
from ctx_hooks.testing.behaviour import Reply
from ctx_hooks.testing.rules import violations

ASSUMED = capacity.Assumptions(
    active_fraction=0.5, requests_a_minute=6.0, share_of_size=(("small", 1.0),), used_fraction=0.5
)
PLAIN = capacity.Measured({"small": 0.02}, {"small": 0.04}, 5e8, 1e6, 1e7, 0.002, 1e4)


def sent(step):
    """Return a step's body as the provider reads it, with what stands in the path of a Gemini request."""
    return {"model": "m", "stream": step.streams} | orjson.loads(step.body)


@pytest.mark.parametrize("number", range(8))
def test_every_step_of_a_session_keeps_the_rules_and_holds_its_nonce_last(number):
    session = workload.Session(number * 30 + number, 30, "wide", "4 KB")
    for _ in range(60):
        step = session.step()
        assert list(violations(step.fmt, sent(step))) == []
        assert workload.provider_answer(step.fmt, sent(step)) == (step.nonce, False)


@pytest.mark.parametrize("streams_", [False, True])
@pytest.mark.parametrize("fmt", workload.FORMATS)
async def test_only_the_answer_to_the_own_nonce_is_right(fmt, streams_):
    payload, reply = {"model": "m", "stream_options": {"include_usage": True}}, Reply(workload.answer_to("ab" * 8))
    whole = streams.whole(fmt, payload, reply, 100, 40)
    body = orjson.dumps(whole).decode()
    if streams_:
        pieces = (
            streams.response_stream(whole) if fmt == "openai-responses" else streams.stream(fmt, payload, reply, 100, 40)
        )
        body = "".join([piece async for piece in pieces])
    assert driver.judged(fmt, "ab" * 8, 200, body, streams=streams_) == ("right", 100, 40)
    assert driver.judged(fmt, "cd" * 8, 200, body, streams=streams_)[0] == "wrong"
    assert driver.judged(fmt, "ab" * 8, 200, body[: len(body) // 2], streams=streams_)[0] == "wrong"


def test_a_request_that_holds_two_sessions_is_seen():
    one, other = (orjson.loads(workload.Session(n, 30, "wide", "4 KB").step().body) for n in (0, 120))
    mixed = {**one, "messages": [*one["messages"], *other["messages"]]}
    assert [workload.provider_answer("openai-chat", payload)[1] for payload in (one, mixed)] == [False, True]


def outcome(plane, at, seconds, *, tries=1, end="right"):
    asked = ("openai-chat", "wide", "4 KB", str(at), False)
    return driver.Outcome(plane, at, seconds, *asked, by_session=False, end=end, tries=tries, fails=False)


def test_added_time_is_the_median_of_the_pairs_and_no_retried_answer_counts():
    pairs = [(at, 1.0 + at, 0.1 * at) for at in range(9)]
    outcomes = [outcome("without", at, seconds) for at, seconds, _ in pairs]
    outcomes += [outcome("with", at, seconds + added) for at, seconds, added in pairs]
    outcomes += [outcome("with", 99, 1e6, tries=2), outcome("without", 98, 1e6, end="error")]
    found = figures.times(outcomes, lambda _: True)
    assert found["answers"] == 9
    assert found["added"] == pytest.approx(0.4 / 5.0)


def test_growth_is_that_of_each_process_and_restarts_use_no_negative_time():
    def sample(at, pid, used, size):
        worker = {"pid": pid, "processor_seconds": used, "resident_bytes": size, "descriptors": 20}
        workers = {plane: {f"{plane}0": worker} for plane in figures.PLANES}
        work = {"commands": at, "scripts": at, "processor_seconds": at / 1e3}
        return {"at": at, "workers": workers, "redis": dict.fromkeys(figures.PLANES, work)}

    rows = ((0, 1, 10.0, 1e8), (10, 1, 11.0, 2e8), (20, 2, 0.5, 1e8), (30, 2, 1.5, 1e8), (40, 2, 2.5, 1e8))
    samples = [sample(*row) for row in rows]
    found = figures.resources(samples, [outcome("with", 5, 1.0)] * 4, (0, 40))["with"]
    assert (found["processor_ms"], found["redis_commands"], found["resident_mb_an_hour"]) == (750.0, 10.0, 0.0)


def test_capacity_grows_with_developers_and_with_what_a_request_costs():
    by_session = capacity.needed(10_000, PLAIN, ASSUMED, by_session=True)
    assert (by_session.requests_a_second, by_session.pods) == (500.0, 5)  # 500 a second x 0.02 s / 0.5 / 4 workers
    assert by_session.redis_servers == 2  # 500 x 0.002 s / 0.5
    assert by_session.worker_bytes == 5e8 + 1e7  # the bound of the caches
    by_turns = capacity.needed(10_000, PLAIN, ASSUMED, by_session=False)
    assert by_turns.pods == 10  # nearly every request is the first of its session for its worker
    assert capacity.needed(1, PLAIN, ASSUMED, by_session=True).pods == 2
