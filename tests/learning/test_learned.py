"""What is learned of a deployment outlives a process and reaches other workers, through a real Redis."""

import asyncio
import time
from types import SimpleNamespace

import pytest

from ctx_hooks.cli import main
from ctx_hooks.learning import learned as learned_module
from ctx_hooks.learning import stored_histories
from ctx_hooks.learning.learned import KEY_PREFIX, LARGEST_BYTES, NO_REFUSAL, Learned, observations
from ctx_hooks.learning.stats import ANYONE, DeploymentStats, Observation
from ctx_hooks.learning.stored_histories import StoredHistories
from ctx_hooks.store import shared_store
from ctx_hooks.store.shared_store import HURRY_SECONDS, SharedStore


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
    return {(kind, tenant): Observation(tuple(map(float, values)), time.time() - ago)}


class BrokenCache:
    def async_register_script(self, script):
        raise ConnectionError("down")


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


async def test_a_tenant_that_goes_on_asking_keeps_what_it_was_told_among_three_hundred(redis_cache, worker):
    asked = worker()
    told = seen("limit", "busy", 8_000, ago=3_600)
    await asked.learn("crowded", told | seen("accepted_input", ANYONE, 90_000, ago=3_600))
    for n in range(300):
        kinds = ("limit", "refused", "ratios", "own_limit", "output_limit")
        shown = [seen(kind, f"tenant {n}", *((1.1, 1.1) if kind == "ratios" else (9_000,)), ago=310 - n) for kind in kinds]
        await asked.learn("crowded", {k: o for found in shown for k, o in found.items()})
        await asked.learn("crowded", seen("ratios", "busy", 1.2, 1.2, ago=309.5 - n))
    client = redis_cache.init_async_client()
    assert await client.strlen(KEY_PREFIX + "crowded") < LARGEST_BYTES / 2
    for found in (await asked.of("crowded"), await worker().of("crowded")):
        assert found.observations.items() >= told.items()
        assert found.seen_by("busy", time.time()).factor("some/model") == 1.2
        assert found.observations["accepted_input", ANYONE].values[0] == 90_000


async def test_of_what_was_accepted_the_larger_stays_until_it_is_old(redis_cache, worker, monkeypatch):
    one, other = worker(), worker()
    await one.learn("accepting", seen("accepted_input", ANYONE, 90_000, ago=60))
    await other.learn("accepting", seen("accepted_input", ANYONE, 20_000))
    assert (await worker().of("accepting")).observations["accepted_input", ANYONE].values[0] == 90_000
    await one.learn("aged", seen("accepted_input", ANYONE, 90_000, ago=23 * 3600))
    later = time.time() + 2 * 3600
    monkeypatch.setattr(time, "time", lambda: later)
    await other.learn("aged", seen("accepted_input", ANYONE, 20_000))
    found = await redis_cache.init_async_client().get(KEY_PREFIX + "aged")
    assert b"[20000.0]" in found


async def test_a_worker_whose_clock_is_minutes_behind_erases_nothing(worker, monkeypatch):
    shown, now = seen("limit", "ann", 8_000), time.time
    await worker().learn("clocks", shown)
    with monkeypatch.context() as behind:
        behind.setattr(time, "time", lambda: now() - 300)
        await worker().learn("clocks", (later := seen("limit", "bob", 9_000)))
    assert await worker().of("clocks") == DeploymentStats(shown | later)


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


async def test_a_broken_redis_costs_no_request(caplog):
    learned = Learned(SharedStore(BrokenCache))
    shown = seen("limit", "ann", 9_000)
    await learned.learn("deployment", shown)
    assert await learned.of("deployment") == DeploymentStats(shown)
    assert "Redis" in caplog.text


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


async def test_a_refusal_that_one_worker_has_learned_of_is_known_to_the_next_request_of_another(worker):
    """Only a request that is too small for a refusal goes by figures that are ten seconds old."""
    one, other = worker(), worker()
    assert await other.of("refusing") == DeploymentStats()
    limit = seen("limit", "ann", 8_000)
    await one.learn("refusing", limit)
    assert await other.of("refusing") == DeploymentStats()
    assert await other.of("refusing", may_be_refused=True) == DeploymentStats(limit)
    refused = seen("refused", "ann", 9_000)
    await one.learn("refusing", refused)
    assert await other.of("refusing", may_be_refused=True) == DeploymentStats(limit | refused)


async def test_while_nothing_is_refused_no_figure_is_sent_again(redis_cache, worker):
    one, other = worker(), worker()
    known = {("ratios", f"tenant {n}"): Observation((1.1,) * 12, time.time()) for n in range(60)}
    await one.learn("busy reader", known)
    await other.of("busy reader")
    client = redis_cache.init_async_client()

    async def sent_bytes():
        return (await client.info("stats"))["total_net_output_bytes"]

    before = await sent_bytes()
    for _ in range(20):
        await other.of("busy reader", may_be_refused=True)
    assert await sent_bytes() - before < 20_000, "one answer with all figures is some 6 KB, one of `info` 2 KB"


async def test_what_many_answers_show_is_gathered_and_what_a_refusal_shows_is_not(redis_cache, monkeypatch):
    """A request in flight waits for no write, and Redis has a few commands to do for all of them."""
    monkeypatch.setattr(learned_module, "WRITE_SECONDS", 60.0)
    client, store = redis_cache.init_async_client(), SharedStore(lambda: redis_cache)
    one = Learned(store)
    await client.config_resetstat()
    for n in range(100):
        await one.learn("gathering", seen("low_bill", f"tenant {n % 10}", 100 + n) | seen("accepted_input", ANYONE, 900))
    assert "cmdstat_evalsha" not in await client.info("commandstats")
    await one.learn("gathering", seen("limit", "ann", 8_000))
    calls = {name: found["calls"] for name, found in (await client.info("commandstats")).items()}
    assert (calls["cmdstat_evalsha"], calls["cmdstat_set"]) == (2, 1), "it reads, and writes"
    value = await client.get(KEY_PREFIX + "gathering")
    assert len(observations(value, time.time()).observations) == 12, "ten tenants' answers, input and limit"
    for task in store.tasks:
        task.cancel()


async def test_what_is_gathered_is_written_where_the_loop_ends(redis_cache, worker):
    store = SharedStore(lambda: redis_cache)
    shown = seen("ratios", "ann", 1.15)
    await Learned(store).learn("ending", shown)
    await asyncio.sleep(0)  # the task has begun
    for task in (tasks := list(store.tasks)):
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    assert await worker().of("ending") == DeploymentStats(shown)


async def test_refusals_are_written_at_once_and_leave_no_timer(redis_cache, worker):
    store = SharedStore(lambda: redis_cache)
    one = Learned(store)
    for n in range(5):
        await one.learn("refusing often", seen("limit", "ann", 8_000 + n, ago=-n))
    assert not store.tasks
    assert (await worker().of("refusing often")).observations[("limit", "ann")].values == (8_004.0,)


ROW = NO_REFUSAL + '[["limit","ann",%s,%s]]'
FOREIGN = {
    "text": lambda client, key: client.set(key, "nonsense"),
    "no text": lambda client, key: client.set(key, b"\xff" * 100),
    "huge text": lambda client, key: client.set(key, ROW % (time.time(), f"[9000{',9000' * 1_000_000}]")),
    "list": lambda client, key: client.rpush(key, "a", "b"),
    "hash": lambda client, key: client.hset(key, "limit:ann", f"{time.time()}|{time.time()}|[9000]"),
    "another kind": lambda client, key: client.set(key, ROW.replace("limit", "colour") % (time.time(), "[9000]")),
    "no figures": lambda client, key: client.set(key, ROW % (time.time(), "[]")),
    "one token": lambda client, key: client.set(key, ROW % (time.time(), "[1]")),
    "not a number": lambda client, key: client.set(key, ROW % (time.time(), "[NaN]")),
    "of the future": lambda client, key: client.set(key, ROW % (time.time() + 1e6, "[9000]")),
    "deep": lambda client, key: client.set(key, ROW % (time.time(), "[" * 200_000)),
}


@pytest.mark.parametrize("plant", FOREIGN.values(), ids=FOREIGN)
async def test_whatever_stands_under_our_keys_is_survived_and_replaced(plant, redis_cache, worker):
    client = redis_cache.init_async_client()
    await client.delete(KEY_PREFIX + "planted")
    await plant(client, KEY_PREFIX + "planted")
    assert await worker().of("planted") == DeploymentStats()
    shown = seen("own_limit", "ann", 9_000)
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


async def test_what_was_billed_is_known_to_the_request_that_continues():
    histories = StoredHistories(SharedStore())
    await histories.note("ann", "resp_1", 12_000)
    assert await histories.tokens_of("ann", "resp_1") == 12_000
    assert await histories.tokens_of("bob", "resp_1") == 0, "another tenant learns nothing of it"
    assert await histories.tokens_of("ann", "resp_2") == 0
    assert await histories.tokens_of("ann", "") == 0


async def test_the_oldest_are_forgotten(monkeypatch):
    monkeypatch.setattr(stored_histories, "MOST_HISTORIES", 3)
    histories = StoredHistories(SharedStore())
    for n in range(5):
        await histories.note("ann", f"resp_{n}", 100 + n)
    assert [await histories.tokens_of("ann", f"resp_{n}") for n in range(5)] == [0, 0, 102, 103, 104]


async def test_a_broken_redis_is_survived():
    histories = StoredHistories(SharedStore(BrokenCache))
    await histories.note("ann", "resp_1", 12_000)
    assert await histories.tokens_of("ann", "resp_1") == 12_000
    assert await histories.tokens_of("ann", "resp_2") == 0


async def test_another_worker_knows_it_through_redis(redis_cache):
    one, other = (StoredHistories(SharedStore(lambda: redis_cache)) for _ in range(2))
    await one.note("ann", "resp_shared", 12_000)
    assert [await other.tokens_of(tenant, "resp_shared") for tenant in ("ann", "bob")] == [12_000, 0]


@pytest.mark.parametrize("written", ["-1", "1e9", "none", "９", "9" * 19, "9" * 500_000, ""])
async def test_what_is_no_size_is_none(redis_cache, written):
    """Whoever has the Redis can write anything there."""
    histories = StoredHistories(SharedStore(lambda: redis_cache))
    await histories.note("ann", "resp_forged", 12_000)
    client = redis_cache.init_async_client()
    keys = [key async for key in client.scan_iter(f"*{stored_histories.KEY_PREFIX}*")]
    assert keys
    for key in keys:
        await client.set(key, written)
    assert await StoredHistories(SharedStore(lambda: redis_cache)).tokens_of("ann", "resp_forged") == 0


async def test_wanted_reasoning_reaches_other_workers_and_tenants(worker):
    """Of the tenant that was refused, its own word is enough; another's needs a second."""
    for n, tenant in enumerate(("ann", "bob")):
        attempt = SimpleNamespace(to=SimpleNamespace(deployment="wanting", tenant=tenant))
        await worker().from_missing_reasoning(attempt)
        found = await worker().of("wanting", may_be_refused=True)
        assert found.seen_by(tenant, time.time()).wants_reasoning()
        assert found.seen_by("eve", time.time()).wants_reasoning() is (n == 1)
