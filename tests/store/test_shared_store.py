"""A slow Redis costs a request one wait and no connection; absent and unavailable differ; no write is lost."""

from __future__ import annotations

import asyncio
import logging
import time
from itertools import count

import pytest

from ctx_hooks.store import shared_store
from ctx_hooks.store.shared_store import DEAD_SECONDS, HURRY_SECONDS, MOST_RUNNING_SLOW, SharedStore, UnavailableError

NAMES = (f"key {n}" for n in count())
SLOW = 2 * HURRY_SECONDS
"""The delay of a Redis for which nobody waits: whatever the machine does, no answer is there in time."""


@pytest.fixture
def key():
    return next(NAMES)


@pytest.fixture(params=["memory", "redis"])
def stores(request):
    """Two workers: one process asked twice, or two that share a Redis."""
    if request.param == "memory":
        store = SharedStore()
        return store, store
    cache = request.getfixturevalue("cache")
    return SharedStore(lambda: cache), SharedStore(lambda: cache)


@pytest.fixture
def store(cache):
    return SharedStore(lambda: cache)


async def briefly(store, key):
    """Read as a request does; return the value, or `unavailable`."""
    try:
        return await store.briefly(lambda: store.get(key))
    except UnavailableError:
        return "unavailable"


async def until(condition):
    """Wait for what happens by itself."""
    end = time.monotonic() + DEAD_SECONDS
    while not condition():
        assert time.monotonic() < end
        await asyncio.sleep(0.01)


class TestValues:
    async def test_what_one_worker_writes_the_other_reads(self, stores, key):
        one, other = stores
        assert await other.get(key) is None
        assert await one.swap(key, None, b"\xff text", kept_seconds=60)
        assert await other.get(key) == b"\xff text"

    async def test_only_who_knows_the_present_value_replaces_it(self, stores, key):
        one, other = stores
        assert await one.swap(key, None, b"one", kept_seconds=60)
        assert not await other.swap(key, None, b"other", kept_seconds=60)
        assert not await other.swap(key, b"older", b"other", kept_seconds=60)
        assert await one.get(key) == b"one"
        assert await other.swap(key, b"one", b"other", kept_seconds=60)
        assert await one.get(key) == b"other"

    async def test_of_many_updates_at_once_none_is_lost(self, stores, key, monkeypatch):
        monkeypatch.setattr(shared_store, "MOST_TRIES", 1_000)
        changes = [
            store.update(key, lambda known, n=n: (known or b"") + bytes([n]), kept_seconds=60)
            for n, store in enumerate(stores * 10)
        ]
        await asyncio.gather(*changes)
        assert sorted(await stores[0].get(key)) == list(range(20))

    async def test_a_value_expires(self, stores, key):
        one, other = stores
        assert await one.swap(key, None, b"short", kept_seconds=1)
        end = time.monotonic() + DEAD_SECONDS
        while await other.get(key) is not None:
            assert time.monotonic() < end
            await asyncio.sleep(0.01)
        assert await other.swap(key, None, b"next", kept_seconds=60)

    async def test_memory_is_bounded_and_the_oldest_value_goes_first(self, monkeypatch):
        monkeypatch.setattr(shared_store, "MOST_MEMORY_BYTES", 10_000)
        store = SharedStore()
        for n in range(20):
            assert await store.swap(f"{n}", None, b"x" * 1_000, kept_seconds=60)
            assert await store.swap(f"{n}", b"x" * 1_000, b"y" * 1_000, kept_seconds=60)
        kept = [n for n in range(20) if await store.get(f"{n}") is not None]
        assert kept == list(range(13, 20))

    @pytest.mark.parametrize("plant", ["list", "huge"])
    async def test_what_others_have_put_there_is_absent_and_replaced(self, store, cache, key, plant):
        client = cache.init_async_client()
        await (client.rpush(key, "a") if plant == "list" else client.set(key, "x" * 5_000))
        assert await store.get(key, most_bytes=1_000) is None
        assert await store.swap(key, None, b"ours", kept_seconds=60, most_bytes=1_000)
        assert await store.get(key) == b"ours"


class TestASlowRedis:
    async def test_is_unavailable_and_no_value_is_absent(self, store, relay, key):
        await store.swap(key, None, b"there", kept_seconds=60)
        assert await store.get(key) == b"there"
        relay.delay_seconds = SLOW
        assert await briefly(store, key) == "unavailable"
        assert await store.get(key) == b"there", "who can wait reads it"
        with pytest.raises(UnavailableError):
            await store.run("return 1", key, wait_seconds=0.0)

    async def test_keeps_its_connections_whoever_gives_up(self, store, relay, key):
        await store.get(key)
        opened = relay.connections
        relay.delay_seconds = SLOW
        for _ in range(3):
            with pytest.raises(UnavailableError):
                await store.run("return 1", key, wait_seconds=SLOW / 4)
            await until(lambda: not store.tasks)
            cancelled = asyncio.create_task(store.get(key))
            await until(lambda: store.tasks)
            cancelled.cancel()
            await until(lambda: not store.tasks)
        assert relay.connections == opened, "a connection that was dropped would have been opened again"

    async def test_makes_one_request_wait_and_no_other(self, store, relay, key, monkeypatch):
        """The wait is longer than any busy machine takes for those that do not wait."""
        await store.get(key)
        relay.is_open.clear()
        monkeypatch.setattr(shared_store, "HURRY_SECONDS", 1.0)
        start = time.monotonic()
        assert await briefly(store, key) == "unavailable"
        assert time.monotonic() - start >= 1.0
        monkeypatch.setattr(shared_store, "HURRY_SECONDS", 3_600.0)
        assert {await asyncio.wait_for(briefly(store, key), DEAD_SECONDS) for _ in range(100)} == {"unavailable"}

    async def test_is_waited_for_again_once_it_is_fast(self, store, relay, key, monkeypatch):
        await store.swap(key, None, b"there", kept_seconds=60)
        relay.is_open.clear()
        assert await briefly(store, key) == "unavailable"
        relay.is_open.set()
        monkeypatch.setattr(shared_store, "HURRY_SECONDS", DEAD_SECONDS)
        monkeypatch.setattr(shared_store, "SLOW_SECONDS", DEAD_SECONDS)
        await until(lambda: not store.tasks)
        assert await briefly(store, key) == b"there"

    async def test_has_few_commands_of_requests_at_once(self, store, relay, key):
        await store.get(key)
        relay.is_open.clear()
        started = count()

        async def work():
            next(started)
            return await store.get(key)

        for _ in range(100):
            with pytest.raises(UnavailableError):
                await store.briefly(work)
        assert next(started) <= MOST_RUNNING_SLOW + 1

    async def test_finds_for_the_next_request_what_came_too_late_for_this_one(self, store, relay, key):
        await store.swap(key, None, b"there", kept_seconds=60)
        relay.delay_seconds = SLOW
        found = []

        async def work():
            found.append(await store.get(key))

        with pytest.raises(UnavailableError):
            await store.briefly(work)
        await until(lambda: found == [b"there"])

    async def test_is_asked_once_for_what_many_requests_want(self, store, relay, key):
        await store.get(key)
        relay.delay_seconds = SLOW
        asked = count()

        async def work():
            next(asked)
            return await store.get(key)

        reads = [store.briefly(work, key="the same") for _ in range(20)]
        answers = await asyncio.gather(*reads, return_exceptions=True)
        assert all(isinstance(answer, UnavailableError) for answer in answers)
        assert next(asked) == 1

    async def test_is_warned_of_once(self, store, relay, key, caplog):
        await store.get(key)
        relay.delay_seconds = SLOW
        for _ in range(20):
            await briefly(store, key)
        relay.delay_seconds = 0.0
        await until(lambda: not store.tasks)
        await store.get(key)
        relay.delay_seconds = SLOW
        await briefly(store, key)
        assert (
            sum("Redis" in r.message for r in caplog.records if r.levelno == logging.WARNING and r.name == "ctx_hooks") == 1
        )


class BrokenCache:
    def async_register_script(self, script):
        raise ConnectionError("down")


async def test_a_redis_that_fails_is_unavailable_and_warned_of_once(caplog):
    store = SharedStore(BrokenCache)
    assert [await briefly(store, "key") for _ in range(10)] == ["unavailable"] * 10
    assert caplog.text.count("Redis") == 1


async def test_without_a_redis_no_script_runs():
    with pytest.raises(UnavailableError):
        await SharedStore().run("return 1", "key")
