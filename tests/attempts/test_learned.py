"""What is learned of a deployment outlives a process and reaches other workers, through a real Redis."""

import asyncio
import time
from dataclasses import replace
from types import SimpleNamespace

import pytest
from engine_requests import attempted

import ctx_hooks
from ctx_hooks.attempts import learned as learned_module
from ctx_hooks.attempts.learned import KEY_PREFIX, LARGEST_BYTES, Learned, observations
from ctx_hooks.attempts.observations import ANYONE, DeploymentStats, Observation
from ctx_hooks.attempts.request import Request
from ctx_hooks.attempts.target import Target
from ctx_hooks.cli import main
from ctx_hooks.flow.request_flow import RequestFlow
from ctx_hooks.litellm_compat.logged import Answer
from ctx_hooks.overflow.recognise import Overflow
from ctx_hooks.policy.settings import Policy
from ctx_hooks.store import shared_store
from ctx_hooks.store.shared_store import HURRY_SECONDS, SharedStore
from ctx_hooks.testing import agent_session
from ctx_hooks.tokens.budget import Window
from ctx_hooks.tokens.units import ProviderTokens
from ctx_hooks.tokens.usage import Billed


class Worker(Learned):
    """One that has written what it was shown."""

    async def learn(self, deployment, shown):
        await super().learn(deployment, shown)
        await asyncio.gather(*self._store.tasks)


@pytest.fixture
def worker(redis_cache):
    """Returns a function that makes what one more worker has learned, shared through Redis."""
    return lambda: Worker(SharedStore(lambda: redis_cache))


def seen(kind, tenant, *values, ago=0.0):
    values = (*values, 0, 1) if kind == "limit" else values
    return {(kind, tenant): Observation(tuple(map(float, values)), time.time() - ago)}


async def test_a_worker_with_old_figures_erases_nothing(worker):
    """Both have read the deployment before either has learned."""
    one, other, third = (worker() for _ in range(3))
    await one.of("shared"), await other.of("shared")
    limit, ratio = seen("limit", "ann", 8_000), seen("ratios", "ann", 1.15, 1.1)
    await one.learn("shared", limit)
    await other.learn("shared", ratio | seen("limit", "ann", 50_000, ago=60))
    assert await third.of("shared") == DeploymentStats(limit | ratio)


async def test_many_workers_at_once_lose_nothing(worker):
    workers = [worker() for _ in range(60)]
    shown = [seen("limit", f"tenant {n}", 8_000 + n) for n in range(60)]
    await asyncio.gather(*(w.learn("busy", s) for w, s in zip(workers, shown, strict=True)))
    found = (await worker().of("busy")).observations
    assert found == {k: o for s in shown for k, o in s.items()}


async def test_busy_tenant_is_remembered_among_three_hundred(redis_cache, worker):
    asked = worker()
    told = seen("limit", "busy", 8_000, ago=3_600)
    await asked.learn("crowded", told | seen("accepted", ANYONE, 90_000, ago=3_600))
    for n in range(300):
        kinds = ("limit", "ratios", "other_ratios", "output_limit")
        shown = [seen(kind, f"tenant {n}", *((1.1, 1.1) if "ratios" in kind else (9_000,)), ago=310 - n) for kind in kinds]
        await asked.learn("crowded", {k: o for found in shown for k, o in found.items()})
        await asked.learn("crowded", seen("ratios", "busy", 1.2, 1.2, ago=309.5 - n))
    client = redis_cache.init_async_client()
    assert await client.strlen(KEY_PREFIX + "crowded") < LARGEST_BYTES / 2
    for found in (await asked.of("crowded"), await worker().of("crowded")):
        assert found.observations.items() >= told.items()
        assert found.seen_by("busy", time.time()).factor("some/model") == 1.2
        assert found.observations["accepted", ANYONE].values[0] == 90_000


async def test_what_others_learn_later_is_read_too(worker, monkeypatch):
    """Figures are read again once they are old, whatever was read before."""
    one, other = worker(), worker()
    assert await one.of("watched") == DeploymentStats()
    shown = seen("limit", "ann", 8_000)
    await other.learn("watched", shown)
    assert await one.of("watched") == DeploymentStats(), "they are young, and Redis is not asked at every request"
    monkeypatch.setattr(learned_module, "REFRESH_SECONDS", 0.0)
    assert await one.of("watched") == DeploymentStats(shown)
    later = shown | seen("limit", "bob", 9_000)
    await other.learn("watched", later)
    assert await one.of("watched") == DeploymentStats(later)


async def test_deployments_that_callers_name_are_bounded(monkeypatch):
    """Those of which nothing was heard for longest are forgotten, and those that are heard of stay."""
    monkeypatch.setattr(learned_module, "MOST_DEPLOYMENTS", 3)
    learned = Learned(SharedStore())
    shown = seen("limit", "ann", 8_000)
    for deployment in ("a", "b", "c", "a", "d"):
        await learned.learn(deployment, shown)
    kept = [name for name in "abcd" if await learned.of(name) != DeploymentStats()]
    assert kept == ["a", "c", "d"]


async def test_a_redis_that_hangs_holds_up_no_request(redis_server, redis_cache, worker, caplog, monkeypatch):
    await worker().learn("hanging", seen("limit", "ann", 8_000))
    monkeypatch.setattr(shared_store, "HURRY_SECONDS", HURRY_SECONDS)
    redis_server.hang()
    try:
        one = Learned(SharedStore(lambda: redis_cache))
        assert await one.of("hanging") == DeploymentStats()
        shown = seen("limit", "ann", 9_000)
        await one.learn("hanging", shown)
        assert await one.of("hanging") == DeploymentStats(shown)
        assert caplog.text.count("no answer within 0.25 s") == 1, "it is not LiteLLM, which waits for seconds, that gave up"
    finally:
        redis_server.resume()


async def test_observations_are_gathered_before_they_are_written(redis_cache, monkeypatch):
    """A request in flight waits for no write, and Redis has a few commands to do for all of them."""
    monkeypatch.setattr(learned_module, "WRITE_SECONDS", 60.0)
    client, store = redis_cache.init_async_client(), SharedStore(lambda: redis_cache)
    one = Learned(store)
    for n in range(100):
        await one.learn("gathering", seen("limit", f"tenant {n % 10}", 10_000 + n) | seen("accepted", ANYONE, 900))
    assert len(store.tasks) == 1
    assert not await client.exists(KEY_PREFIX + "gathering")
    for task in (tasks := list(store.tasks)):
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    value = await client.get(KEY_PREFIX + "gathering")
    assert len(observations(value, time.time()).observations) == 11, "ten tenants' limits, and the accepted input"


COUNTED = attempted(200_000, 50_000, output_tokens=8_000)


async def limit_learned(learned):
    return (await learned.of(COUNTED.to.deployment)).seen_by("ann", time.time()).limit_tokens(200_000)


@pytest.mark.parametrize(("requests", "quoted", "limit"), [("aa", False, None), ("ab", False, 12_000), ("ab", True, None)])
async def test_second_request_proves_doubted_limit(requests, quoted, limit):
    learned, overflow = Learned(SharedStore()), replace(Overflow("input", "x", 12_000, 50_000), quoted=quoted)
    for request_id in requests:
        to = replace(COUNTED.to, request_id=request_id)
        await learned.from_refusal(replace(COUNTED, to=to, overflow=overflow, failed=True))
    assert await limit_learned(learned) == limit


async def test_repeated_limit_is_reported_once():
    learned, reported = Learned(SharedStore()), []
    end = ctx_hooks.on("limit_learned", reported.append)
    to = replace(COUNTED.to, policy=Policy(mode="observe"))
    for tokens in (12_000, 12_000, 9_000):
        await learned.from_refusal(replace(COUNTED, to=to, overflow=Overflow("input", "x", tokens, 50_000), failed=True))
    end()
    assert [event.limit_tokens for event in reported] == [12_000, 9_000]


async def test_doubted_limits_are_remembered_within_a_bound(monkeypatch):
    monkeypatch.setattr(learned_module, "MOST_DEPLOYMENTS", 2)
    learned = Learned(SharedStore())
    for tenant, request_id in zip(("ann", "bob", "cat", "ann"), "abcd", strict=True):
        to = replace(COUNTED.to, tenant=tenant, request_id=request_id)
        await learned.from_refusal(replace(COUNTED, to=to, overflow=Overflow("input", "x", 12_000, 50_000), failed=True))
    assert await limit_learned(learned) is None, "the first refusal is forgotten"


@pytest.mark.parametrize(("answers", "limit"), [
    ([(41_499, 501), (41_298, 702)], 42_000), ([(41_499, 501), (41_499, 501)], None), ([(41_499, 501), (40_298, 702)], None),
    ([(40_976, 1_024), (40_000, 2_000)], None), ([(34_000, 8_000), (33_999, 8_001)], None),
], ids=["one total", "one length", "two totals", "caps", "as asked for"])  # fmt: skip
async def test_two_answers_cut_alike_show_the_window(answers, limit):
    learned = Learned(SharedStore())
    for sent, answer in answers:
        billed = Billed(ProviderTokens(sent), ProviderTokens(0), ProviderTokens(0), ProviderTokens(answer))
        await learned.from_answer(COUNTED, billed, cut_short=True)
    assert await limit_learned(learned) == limit


ROW = '[["limit","ann",%s,%s]]'
FOREIGN = {
    "text": lambda client, key: client.set(key, "nonsense"),
    "no text": lambda client, key: client.set(key, b"\xff" * 100),
    "huge text": lambda client, key: client.set(key, ROW % (time.time(), f"[9000{',9000' * 1_000_000}]")),
    "list": lambda client, key: client.rpush(key, "a", "b"),
    "hash": lambda client, key: client.hset(key, "limit:ann", f"{time.time()}|{time.time()}|[9000]"),
    "another kind": lambda client, key: client.set(key, ROW.replace("limit", "colour") % (time.time(), "[9000,0,1]")),
    "not a number": lambda client, key: client.set(key, ROW % (time.time(), "[NaN]")),
    "deep": lambda client, key: client.set(key, ROW % (time.time(), "[" * 200_000)),
}


@pytest.mark.parametrize("plant", FOREIGN.values(), ids=FOREIGN)
async def test_foreign_value_under_our_key_is_replaced(plant, redis_cache, worker):
    client = redis_cache.init_async_client()
    await client.delete(KEY_PREFIX + "planted")
    await plant(client, KEY_PREFIX + "planted")
    assert await worker().of("planted") == DeploymentStats()
    shown = seen("output_limit", "ann", 9_000)
    await worker().learn("planted", shown)
    assert await worker().of("planted") == DeploymentStats(shown)


def test_the_operator_lists_and_clears_what_was_learned(redis_server, worker, capsys, monkeypatch):
    monkeypatch.setenv("REDIS_HOST", "127.0.0.1")
    monkeypatch.setenv("REDIS_PORT", str(redis_server.port))

    def limits(*arguments):
        assert main(["limits", *arguments]) == 0
        return capsys.readouterr().out

    asyncio.run(worker().learn("listed:model", seen("limit", "ann", 12_345)))
    assert limits("clear", "listed:modl", "--yes").startswith("Nothing was learned")
    assert "12,345" in limits("ls", "listed:model")
    assert limits("clear", "listed:model", "--yes") == "cleared listed:model\n"
    assert limits("ls", "listed:model").startswith("Nothing was learned")


async def test_wanted_reasoning_reaches_other_workers_and_tenants(worker):
    """Of the tenant that was refused, its own word is enough; another's needs a second."""
    for n, tenant in enumerate(("ann", "bob")):
        attempt = SimpleNamespace(to=SimpleNamespace(deployment="wanting", tenant=tenant))
        await worker().from_missing_reasoning(attempt)
        found = await worker().of("wanting")
        assert found.seen_by(tenant, time.time()).wants_reasoning()
        assert found.seen_by("eve", time.time()).wants_reasoning() is (n == 1)


async def test_redis_has_figures_and_no_text(redis_cache):
    text = "quillwort"
    runner, fields = RequestFlow(shared=lambda: redis_cache), agent_session("openai-responses", turns=40)
    request = Request("openai-responses", {**fields, "input": [{"role": "user", "content": text * 50}, *fields["input"]]})
    for attempt in (0, 1):
        to = Target("gpt-4o", "deployment", Window(20_000, "model_info"), Policy(), "r", f"{text}'s digest", attempt=attempt)
        await runner.deciding.decide(request, to)
        if not attempt:
            await runner.failed("r", Overflow("input", text, 12_000, 19_000), f"{text} is too long")
    await runner.answered("r", Answer(Billed(ProviderTokens(9_000), output_tokens=ProviderTokens(50))))
    client = redis_cache.init_async_client()
    found = {key.decode(): (await client.get(key)).decode() async for key in client.scan_iter()}
    assert f"{KEY_PREFIX}deployment" in found
    assert all(key.startswith(KEY_PREFIX) for key in found)
    assert text not in "".join([*found, *found.values()]).replace(f"{text}'s digest", "")
