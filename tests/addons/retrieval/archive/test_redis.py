"""All workers share one Redis: whatever happens to it, requests go on, and what is read is whole."""

import secrets

import pytest
from archived import by_handle, got, stored
from redis_process import RedisProcess

from ctx_hooks.addons.retrieval.archive import redis as redis_store
from ctx_hooks.addons.retrieval.archive.archive import Archive
from ctx_hooks.addons.retrieval.archive.redis import Redis, key_of
from ctx_hooks.policy.addon_settings import ArchiveSettings
from ctx_hooks.store import sealing
from ctx_hooks.store.sealing import tenant_name
from ctx_hooks.store.shared_store import SharedStore

SETTINGS = ArchiveSettings(backend="redis")
MANY_BYTES = 10**9
DAY_SECONDS = 24 * 3600


@pytest.fixture
def archive(redis_cache, request):
    request.getfixturevalue("patient")
    return Archive(SharedStore(lambda: redis_cache), b"")


@pytest.fixture
def tenant(archive):
    return archive.tenant("key", secrets.token_hex(8))


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


async def test_every_key_expires_and_longest_retention_holds(archive, tenant, client):
    for days in (30, 1):
        settings = ArchiveSettings(backend="redis", retention_days=days)
        await stored(archive, settings, tenant, {("b" if days == 1 else "c") * 12: "a text"})
    index = key_of(tenant_name(tenant))
    days_left = {key: await client.ttl(key) / DAY_SECONDS for key in await keys_of(client, tenant)}
    assert sorted(days_left) == sorted(f"{index}{end}".encode() for end in ("", ":sizes", ":" + "b" * 12, ":" + "c" * 12))
    assert all(29 < days <= 30 for key, days in days_left.items() if not key.endswith(b"b"))
    assert 0 < days_left[f"{index}:{'b' * 12}".encode()] <= 1


async def test_tenant_has_its_own_bound(archive, tenant, client, monkeypatch):
    """16 MB into 8 MB: the newest are there."""
    monkeypatch.setattr(sealing, "ZLIB_LEVEL", 0)
    settings = ArchiveSettings(backend="redis", max_bytes=8_000_000)
    other = archive.tenant("key", "another")
    await stored(archive, settings, other, theirs := by_handle(other))
    texts = by_handle(tenant, [f"{n:03} " + "x" * 200_000 for n in range(80)])
    for handle, text in texts.items():
        await stored(archive, settings, tenant, {handle: text})
        assert await used_bytes(client, tenant) <= 8_000_000
    kept = list(await got(archive, settings, tenant, texts))
    assert kept == list(texts)[-39:]
    assert await got(archive, settings, other, theirs) == theirs


@pytest.mark.parametrize("wrong", ["set", "hset", "zadd"])
@pytest.mark.parametrize("key", ["", ":sizes", ":" + "b" * 12], ids=["index", "sizes", "text"])
async def test_key_of_a_wrong_type_is_replaced(archive, tenant, client, key, wrong):
    name = key_of(tenant_name(tenant)) + key
    values = {"set": ["x"], "hset": ["total", "x"], "zadd": [{"x": 1}]}
    await getattr(client, wrong)(name, *values[wrong])
    assert await archive.get(SETTINGS, tenant, "b" * 12) is None
    await stored(archive, SETTINGS, tenant, {"b" * 12: "a text"})
    assert await archive.get(SETTINGS, tenant, "b" * 12) == "a text"


async def test_too_large_value_is_not_sent(archive, tenant, client):
    await client.set(f"{key_of(tenant_name(tenant))}:{'b' * 12}", b"x" * 10_000_000)
    before = (await client.info("stats"))["total_net_output_bytes"]
    assert await archive.get(SETTINGS, tenant, "b" * 12) is None
    assert (await client.info("stats"))["total_net_output_bytes"] - before < 1_000_000


async def test_unavailable_handles_take_the_same_commands(archive, redis_cache, tenant, client):
    name = tenant_name(tenant)
    await expired(client, redis_cache, tenant, "b" * 12)
    assert name not in {stored.name for stored in await redis_store.tenants(client)}
    await stored(archive, SETTINGS, tenant, {"c" * 12: "a text"})
    assert await client.zrange(key_of(name), 0, -1) == [b"c" * 12], "the expired text has left the index"
    assert await client.hget(key_of(name) + ":sizes", "b" * 12) is None
    taken = []
    for asker, handle in ((tenant, "b" * 12), (tenant, "d" * 12), (archive.tenant("key", "another"), "c" * 12)):
        await client.config_resetstat()
        assert await archive.get(SETTINGS, asker, handle) is None
        taken.append({command: stats["calls"] for command, stats in (await client.info("commandstats")).items()})
    assert taken[0] == taken[1] == taken[2]
    assert taken[0]["cmdstat_evalsha"] == 1


@pytest.mark.usefixtures("patient")
async def test_keys_have_the_namespace_of_litellm(redis_server, client):
    from litellm.caching.redis_cache import RedisCache

    cache = RedisCache(host="127.0.0.1", port=redis_server.port, namespace="ours")
    archive = Archive(SharedStore(lambda: cache), b"")
    tenant = archive.tenant("key", "named")
    await stored(archive, SETTINGS, tenant, texts := by_handle(tenant))
    assert [key.startswith(b"ours:") for key in await keys_of(client, tenant)] == [True] * (len(texts) + 2)
    name = tenant_name(tenant)
    assert [kept.texts for kept in await redis_store.tenants(client) if kept.name == name] == [len(texts)]
    assert await redis_store.read(client, name, next(iter(texts)))


@pytest.mark.usefixtures("patient")
async def test_dead_redis_fails_no_request():
    from litellm.caching.redis_cache import RedisCache

    with RedisProcess() as server:
        cache = RedisCache(host="127.0.0.1", port=server.port)
        archive = Archive(SharedStore(lambda: cache), b"")
        tenant = archive.tenant("key", "ann")
        texts = by_handle(tenant)
        await stored(archive, SETTINGS, tenant, {"a" * 12: "a text"})
        server.kill()
        assert await stored(archive, SETTINGS, tenant, texts) == {"failed": len(texts)}
        assert await got(archive, SETTINGS, tenant, texts) == {}
        server.start()
        while not (await stored(archive, SETTINGS, tenant, texts))["stored"]:
            pass
        other = Archive(SharedStore(lambda: cache), b"")  # the first one reads again after some seconds
        assert await got(other, SETTINGS, tenant, texts) == texts
