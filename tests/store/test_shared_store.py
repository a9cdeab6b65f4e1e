"""A slow Redis costs a request one wait and no connection; absent and unavailable differ."""

import asyncio
import time
from itertools import count

import pytest
from waits import until

from ctx_hooks.litellm_compat.deployments import with_own_connections
from ctx_hooks.runtime.warnings import forget_warnings
from ctx_hooks.store import shared_store
from ctx_hooks.store.shared_store import DEAD_SECONDS, HURRY_SECONDS, MOST_RUNNING, SharedStore, UnavailableError

NAMES = (f"key {n}" for n in count())
SLOW = 2 * HURRY_SECONDS
"""The delay of a Redis for which nobody waits: whatever the machine does, no answer is there in time."""


@pytest.fixture
def key():
    return next(NAMES)


@pytest.fixture
def store(cache):
    return SharedStore(lambda: cache)


async def write(store, key):
    assert await store.run("redis.call('SET', KEYS[1], 'there') return 1", key)


async def read(store, key):
    return await store.run("return redis.call('GET', KEYS[1])", key)


async def briefly(store, key):
    """Read as a request does; return the value, or `unavailable`."""
    try:
        return await store.briefly(lambda: read(store, key))
    except UnavailableError:
        return "unavailable"


class TestASlowRedis:
    async def test_is_unavailable_and_no_value_is_absent(self, store, relay, key):
        await write(store, key)
        assert await read(store, key) == b"there"
        relay.delay_seconds = SLOW
        assert await briefly(store, key) == "unavailable"
        assert await read(store, key) == b"there", "who can wait reads it"

    async def test_keeps_its_connections_whoever_gives_up(self, store, relay, key):
        await read(store, key)
        opened = relay.connections
        relay.delay_seconds = SLOW
        for _ in range(3):
            assert await briefly(store, key) == "unavailable"
            await until(lambda: not store.tasks)
            cancelled = asyncio.create_task(read(store, key))
            await until(lambda: store.tasks)
            cancelled.cancel()
            await until(lambda: not store.tasks)
        assert relay.connections == opened, "a connection that was dropped would have been opened again"

    async def test_leaves_the_connections_of_litellm_to_litellm(self, cache, relay, key):
        store = SharedStore(lambda: with_own_connections(cache))
        await cache.async_set_cache(key, "theirs")
        await read(store, key)
        opened, asked = relay.connections, relay.commands
        relay.is_open.clear()
        ours = asyncio.create_task(read(store, key))
        await until(lambda: relay.commands > asked)
        theirs = asyncio.create_task(cache.async_get_cache(key))
        await until(lambda: relay.commands > asked + 1)
        assert relay.connections == opened, "LiteLLM's command had to open a connection, behind the plugin's"
        relay.is_open.set()
        await asyncio.gather(ours, theirs)

    async def test_makes_one_request_wait_and_no_other(self, store, relay, key, monkeypatch):
        """The wait is longer than any busy machine takes for those that do not wait."""
        monkeypatch.setattr(shared_store, "SLOW_SECONDS", DEAD_SECONDS)
        await read(store, key)
        relay.is_open.clear()
        monkeypatch.setattr(shared_store, "HURRY_SECONDS", 1.0)
        start = time.monotonic()
        assert await briefly(store, key) == "unavailable"
        assert time.monotonic() - start >= 1.0
        monkeypatch.setattr(shared_store, "HURRY_SECONDS", 3_600.0)
        assert {await asyncio.wait_for(briefly(store, key), DEAD_SECONDS) for _ in range(100)} == {"unavailable"}

    async def test_is_waited_for_again_once_it_is_fast(self, store, relay, key, monkeypatch):
        await write(store, key)
        relay.is_open.clear()
        assert await briefly(store, key) == "unavailable"
        relay.is_open.set()
        monkeypatch.setattr(shared_store, "HURRY_SECONDS", DEAD_SECONDS)
        monkeypatch.setattr(shared_store, "SLOW_SECONDS", DEAD_SECONDS)
        await until(lambda: not store.tasks)
        assert await briefly(store, key) == b"there"

    async def test_has_few_commands_of_requests_at_once(self, store, relay, key):
        await read(store, key)
        relay.is_open.clear()
        started = count()

        async def work():
            next(started)
            return await read(store, key)

        for _ in range(100):
            with pytest.raises(UnavailableError):
                await store.briefly(work)
        assert next(started) <= MOST_RUNNING + 1


class BrokenCache:
    def async_register_script(self, script):
        raise ConnectionError("down")


async def test_failing_redis_is_unavailable_and_warned_of_once(caplog):
    forget_warnings()
    for _ in range(2):
        store = SharedStore(BrokenCache)
        assert [await briefly(store, "key") for _ in range(10)] == ["unavailable"] * 10
    assert caplog.text.count("Redis") == 1


async def test_without_a_redis_no_script_runs():
    with pytest.raises(UnavailableError):
        await SharedStore().run("return 1", "key")
