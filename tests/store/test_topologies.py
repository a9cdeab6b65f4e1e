"""A Redis Cluster, and a Redis behind a Sentinel, serve the store by LiteLLM's own connections as a single Redis does."""

import asyncio
import contextlib
import subprocess

import pytest
import redis
from litellm.caching.redis_cache import RedisCache
from litellm.caching.redis_cluster_cache import RedisClusterCache
from redis_process import RedisProcess
from waits import until

from ctx_hooks.litellm_compat.deployments import with_own_connections
from ctx_hooks.store.shared_store import SharedStore, UnavailableError
from ctx_hooks.testing import free_port

SLOTS = ((0, 8_191), (8_192, 16_383))
KEYS = [f"ctx_hooks:test:{n}" for n in range(12)]
MOST_BYTES, KEPT_SECONDS, WAIT_SECONDS = 1_000, 600, 30.0
PROMOTED_AFTER_MS = 500


def client(server):
    return redis.Redis(port=server.port)


@pytest.fixture
def cluster(tmp_path):
    """Two nodes, each with half of the slots."""
    with contextlib.ExitStack() as stack:
        nodes, buses = [], [free_port(), free_port()]
        for bus in buses:
            options = ("--cluster-enabled", "yes", "--cluster-port", str(bus), "--cluster-config-file", f"{tmp_path}/{bus}")
            nodes.append(stack.enter_context(RedisProcess(*options)))
        for node, slots in zip(nodes, SLOTS, strict=True):
            client(node).execute_command("CLUSTER ADDSLOTSRANGE", *slots)
        client(nodes[0]).execute_command("CLUSTER MEET", "127.0.0.1", nodes[1].port, buses[1])
        while any(client(node).cluster("info")["cluster_state"] != "ok" for node in nodes):
            pass
        yield nodes


@pytest.fixture
def watched(tmp_path):
    """A master with a replica, and the port of a Sentinel that watches them."""
    with RedisProcess() as master, RedisProcess("--dir", tmp_path, "--replicaof", f"127.0.0.1 {master.port}") as replica:
        port, file = free_port(), tmp_path / "sentinel.conf"
        watch = (
            f"sentinel monitor main 127.0.0.1 {master.port} 1\nsentinel down-after-milliseconds main {PROMOTED_AFTER_MS}\n"
        )
        file.write_text(f"port {port}\ndir {tmp_path}\n{watch}")
        command = ["redis-server", str(file), "--sentinel"]
        sentinel = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            assert any("+slave " in line for line in sentinel.stdout), "it knows the replica"
            yield master, replica, port
        finally:
            sentinel.terminate()
            sentinel.communicate()


def workers(kind, **options):
    """Return the stores of two workers; LiteLLM's `cache_params` have these options."""
    caches = [with_own_connections(kind(**options)) for _ in range(2)]
    return [SharedStore(lambda cache=cache: cache) for cache in caches]


async def add_one(store, key):
    async def one_more(known):
        return str(int(known or b"0") + 1).encode()

    return await store.change(key, one_more, MOST_BYTES, KEPT_SECONDS, WAIT_SECONDS)


async def test_no_change_is_lost_in_a_cluster(cluster):
    stores = workers(RedisClusterCache, startup_nodes=[{"host": "127.0.0.1", "port": node.port} for node in cluster])
    for key in KEYS:  # redis-py's first commands to a cluster disturb each other
        await add_one(stores[0], key)
    await asyncio.gather(*(add_one(store, key) for store in stores for key in KEYS))
    assert [await stores[0].read(key, MOST_BYTES) for key in KEYS] == [b"3"] * len(KEYS)
    assert all(client(node).dbsize() for node in cluster), "both nodes hold some"


async def test_what_was_stored_is_there_after_a_sentinel_has_promoted_the_replica(watched):
    master, replica, port = watched
    one, other = workers(RedisCache, sentinel_nodes=[["127.0.0.1", port]], service_name="main")
    assert await add_one(one, KEYS[0]) == b"1"
    assert client(master).wait(1, 0) == 1
    master.kill()
    sentinel = redis.Sentinel([("127.0.0.1", port)])

    def promoted():
        with contextlib.suppress(redis.sentinel.MasterNotFoundError):
            return sentinel.discover_master("main") == ("127.0.0.1", replica.port)

    # Before that, every command fails, and after five LiteLLM asks no more for a minute.
    await until(promoted)

    async def added():
        try:
            return await add_one(other, KEYS[0])
        except UnavailableError:  # by the connection to the old one
            return b""

    await until(added)
    assert int(await one.read(KEYS[0], MOST_BYTES)) == 2
