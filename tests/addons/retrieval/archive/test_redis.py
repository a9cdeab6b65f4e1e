"""All workers share one Redis: whatever happens to it, requests go on, and what is read is whole."""

import secrets

import pytest
from archived import by_handle, settled, store_text, stored
from redis_process import RedisProcess
from waits import until

from ctx_hooks.addons.retrieval.archive import redis as redis_store
from ctx_hooks.addons.retrieval.archive import writer
from ctx_hooks.addons.retrieval.archive.archive import Archives
from ctx_hooks.addons.retrieval.archive.redis import Redis, key_of
from ctx_hooks.policy.addon_settings import ArchiveSettings
from ctx_hooks.store import sealing, shared_store
from ctx_hooks.store.sealing import tenant_name
from ctx_hooks.store.shared_store import SharedStore

SETTINGS = ArchiveSettings(backend="redis")
MANY_BYTES = 10**9
DAY_SECONDS = 24 * 3600


@pytest.fixture
def archives(redis_cache, request):
    request.getfixturevalue("patient")
    return Archives(SharedStore(lambda: redis_cache), b"")


@pytest.fixture
def tenant(archives):
    return archives.tenant("key", secrets.token_hex(8))


@pytest.fixture
async def client(redis_server):
    from redis.asyncio import Redis as Client

    async with Client(port=redis_server.port) as client:
        yield client


async def expired(client, redis_cache, tenant, handle):
    """Store a text whose time is over."""
    await Redis(SharedStore(lambda: redis_cache)).write(tenant_name(tenant), {handle: b"x"}, 0.0, MANY_BYTES)
    await client.pexpire(f"{key_of(tenant_name(tenant))}:{handle}", 0)  # a retention is at least a second there


async def keys_of(client, tenant):
    return {key async for key in client.scan_iter(match=f"*{key_of(tenant_name(tenant))}*")}


async def used_bytes(client, tenant):
    return sum([len(await client.get(key)) for key in await keys_of(client, tenant) if await client.type(key) == b"string"])


async def test_every_key_expires(archives, tenant, client):
    await stored(archives, SETTINGS, tenant, texts := by_handle(tenant))
    keys = await keys_of(client, tenant)
    assert len(keys) == len(texts) + 3
    for key in keys:
        assert 6 * DAY_SECONDS < await client.ttl(key) <= 7 * DAY_SECONDS


async def test_a_longer_retention_of_another_policy_is_not_cut_short(archives, tenant, client):
    for days in (30, 1):
        settings = ArchiveSettings(backend="redis", retention_days=days)
        assert await store_text(archives, settings, tenant, f"{days:012}".replace("0", "b").replace("1", "c"), "a text")
    index = key_of(tenant_name(tenant))
    for key in (index, index + ":sizes"):
        assert await client.ttl(key) > 29 * DAY_SECONDS


async def test_an_expired_text_is_not_available_and_leaves_the_index_with_the_next_one(
    archives, redis_cache, tenant, client
):
    name = tenant_name(tenant)
    await expired(client, redis_cache, tenant, "b" * 12)
    assert await archives.get(SETTINGS, tenant, "b" * 12) is None
    assert name not in {stored.name for stored in await redis_store.tenants(client)}
    assert await store_text(archives, SETTINGS, tenant, "c" * 12, "a text")
    assert await client.zrange(key_of(name), 0, -1) == [b"c" * 12]
    assert await client.hget(key_of(name) + ":sizes", "b" * 12) is None


async def test_a_tenant_has_its_bound_and_another_its_own(archives, tenant, client, monkeypatch):
    """16 MB into 8 MB: the newest are there."""
    monkeypatch.setattr(sealing, "ZLIB_LEVEL", 0)
    settings = ArchiveSettings(backend="redis", max_bytes=8_000_000)
    other = archives.tenant("key", "another")
    archives.put(settings, other, theirs := by_handle(other))
    texts = by_handle(tenant, [f"{n:03} " + "x" * 200_000 for n in range(80)])
    for handle, text in texts.items():
        assert await store_text(archives, settings, tenant, handle, text)
        assert await used_bytes(client, tenant) <= 8_000_000
    kept = [handle for handle in texts if await archives.get(settings, tenant, handle) is not None]
    assert kept == list(texts)[-len(kept) :]
    assert len(kept) == 39
    assert {handle: await archives.get(settings, other, handle) for handle in theirs} == theirs


@pytest.mark.parametrize("wrong", ["set", "rpush", "hset", "zadd", "sadd"])
@pytest.mark.parametrize("key", ["", ":sizes", ":" + "b" * 12], ids=["index", "sizes", "text"])
async def test_a_key_of_a_wrong_type_costs_no_request_its_answer_and_is_replaced(
    archives, tenant, client, key, wrong, texts_told
):
    name = key_of(tenant_name(tenant)) + key
    values = {"set": ["x"], "rpush": ["x"], "hset": ["total", "x"], "zadd": [{"x": 1}], "sadd": ["x"]}
    await getattr(client, wrong)(name, *values[wrong])
    assert await archives.get(SETTINGS, tenant, "b" * 12) is None
    assert await store_text(archives, SETTINGS, tenant, "b" * 12, "a text")
    assert await archives.get(SETTINGS, tenant, "b" * 12) == "a text"
    assert texts_told["failed"] == 0


async def test_a_value_that_is_larger_than_any_text_is_not_even_sent(archives, tenant, client):
    await client.set(f"{key_of(tenant_name(tenant))}:{'b' * 12}", b"x" * 10_000_000)
    before = (await client.info("stats"))["total_net_output_bytes"]
    assert await archives.get(SETTINGS, tenant, "b" * 12) is None
    assert (await client.info("stats"))["total_net_output_bytes"] - before < 1_000_000


async def test_a_foreign_a_guessed_and_an_expired_handle_take_the_same_commands(archives, redis_cache, tenant, client):
    await expired(client, redis_cache, tenant, "b" * 12)
    assert await store_text(archives, SETTINGS, tenant, "c" * 12, "a text")
    taken = []
    for asker, handle in ((tenant, "b" * 12), (tenant, "d" * 12), (archives.tenant("key", "another"), "c" * 12)):
        await client.config_resetstat()
        assert await archives.get(SETTINGS, asker, handle) is None
        taken.append({command: stats["calls"] for command, stats in (await client.info("commandstats")).items()})
    assert taken[0] == taken[1] == taken[2]
    assert taken[0]["cmdstat_evalsha"] == 1


@pytest.mark.usefixtures("patient")
async def test_with_a_namespace_of_litellms_every_key_has_it(redis_server, client):
    from litellm.caching.redis_cache import RedisCache

    cache = RedisCache(host="127.0.0.1", port=redis_server.port, namespace="ours")
    archives = Archives(SharedStore(lambda: cache), b"")
    tenant = archives.tenant("key", "named")
    await stored(archives, SETTINGS, tenant, texts := by_handle(tenant))
    keys = await keys_of(client, tenant)
    assert len(keys) == len(texts) + 3
    assert all(key.startswith(b"ours:") for key in keys)
    name = tenant_name(tenant)
    (kept,) = [kept for kept in await redis_store.tenants(client) if kept.name == name]
    assert kept.texts == len(texts) + 1
    assert name in [stored.name for stored in await redis_store.tenants(client)]
    assert await redis_store.read(client, name, next(iter(texts)))


class TestARedisThatFails:
    """Has a server of its own, which it may kill."""

    @pytest.fixture
    def server(self):
        with RedisProcess() as server:
            yield server

    @pytest.fixture
    def cache(self, server):
        from litellm.caching.redis_cache import RedisCache

        return RedisCache(host="127.0.0.1", port=server.port)

    @pytest.mark.usefixtures("patient")
    async def test_and_is_dead_fails_no_request_and_its_successor_is_used(self, cache, server, texts_told):
        archives = Archives(SharedStore(lambda: cache), b"")
        tenant = archives.tenant("key", "ann")
        texts = by_handle(tenant)
        assert await settled(archives, SETTINGS, tenant)
        server.kill()
        archives.put(SETTINGS, tenant, texts)
        assert not await settled(archives, SETTINGS, tenant)
        assert {await archives.get(SETTINGS, tenant, handle) for handle in texts} == {None}
        assert texts_told["failed"] == len(texts) + 1
        server.start()
        await stored(archives, SETTINGS, tenant, texts)
        other = Archives(SharedStore(lambda: cache), b"")  # the first one reads again after some seconds
        assert {handle: await other.get(SETTINGS, tenant, handle) for handle in texts} == texts

    async def test_and_hangs_delays_no_request_and_takes_no_more_memory_than_the_queue(
        self, cache, server, monkeypatch, texts_told
    ):
        """A hundred requests, each with more than a tenth of what the queue holds."""
        archives = Archives(SharedStore(lambda: cache), b"")
        monkeypatch.setattr(writer, "QUEUE_BYTES", 1_000_000)
        monkeypatch.setattr(redis_store, "WRITE_SECONDS", 600.0)
        tenant = archives.tenant("key", "ann")
        while not await settled(archives, SETTINGS, tenant):
            pass
        server.hang()
        for n in range(100):
            archives.put(SETTINGS, tenant, by_handle(tenant, [f"{n} " + "x" * 150_000]))
            assert await archives.get(SETTINGS, tenant, "c" * 12) is None
        first, last = (next(iter(by_handle(tenant, [f"{n} " + "x" * 150_000]))) for n in (0, 99))
        assert await archives.get(SETTINGS, tenant, first) is not None, "it waits to be written"
        assert await archives.get(SETTINGS, tenant, last) is None
        assert texts_told["dropped"] == 94
        server.resume()
        while not await settled(archives, SETTINGS, tenant):
            pass
        assert texts_told["failed"] == 0
        assert texts_told["stored"] >= 1 + 6 + 1


@pytest.mark.usefixtures("patient")
async def test_a_redis_that_has_failed_is_read_again_as_soon_as_the_shared_store_reads_it(redis_cache, tenant, monkeypatch):
    """All who use it have one breaker."""
    monkeypatch.setattr(shared_store, "PAUSE_SECONDS", 0.0)
    is_broken = []

    class Cache:
        def async_register_script(self, script):
            if is_broken:
                raise ConnectionError("down")
            return redis_cache.async_register_script(script)

    store = SharedStore(Cache)
    archives = Archives(store, b"")
    assert await store_text(archives, SETTINGS, tenant, "b" * 12, "a text")
    is_broken.append(True)
    assert await archives.get(SETTINGS, tenant, "b" * 12) is None
    is_broken.clear()
    await archives.get(SETTINGS, tenant, "b" * 12)  # nobody waits for it: it shows that Redis is fast again
    await until(lambda: not store.tasks)
    assert await archives.get(SETTINGS, tenant, "b" * 12) == "a text"
