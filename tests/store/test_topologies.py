"""A Redis Cluster serves the store by LiteLLM's own connections as a single Redis does."""

import asyncio
import contextlib

import pytest
import redis
from litellm.caching.redis_cluster_cache import RedisClusterCache
from redis_process import RedisProcess

from ctx_hooks.litellm_compat.deployments import with_own_connections
from ctx_hooks.store.shared_store import SharedStore
from ctx_hooks.testing import free_port

SLOTS = ((0, 8_191), (8_192, 16_383))
KEYS = [f"ctx_hooks:test:{n}" for n in range(12)]
MOST_BYTES, KEPT_SECONDS = 1_000, 600


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


def workers(kind, **options):
    """Return the stores of two workers; LiteLLM's `cache_params` have these options."""
    caches = [with_own_connections(kind(**options)) for _ in range(2)]
    return [SharedStore(lambda cache=cache: cache) for cache in caches]


async def add_one(store, key):
    async def one_more(known):
        return str(int(known or b"0") + 1).encode()

    return await store.change(key, one_more, MOST_BYTES, KEPT_SECONDS)


async def test_no_change_is_lost_in_a_cluster(cluster):
    stores = workers(RedisClusterCache, startup_nodes=[{"host": "127.0.0.1", "port": node.port} for node in cluster])
    for key in KEYS:  # redis-py's first commands to a cluster disturb each other
        await add_one(stores[0], key)
    await asyncio.gather(*(add_one(store, key) for store in stores for key in KEYS))
    assert [await stores[0].read(key, MOST_BYTES) for key in KEYS] == [b"3"] * len(KEYS)
    assert all(client(node).dbsize() for node in cluster), "both nodes hold some"
