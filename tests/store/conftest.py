"""A real Redis behind a relay that delays it, and LiteLLM's connection to it."""

import pytest
import pytest_asyncio
from redis_relay import RedisRelay


@pytest_asyncio.fixture
async def relay(redis_server):
    async with RedisRelay(redis_server.port) as relay:
        yield relay


@pytest.fixture
def cache(relay, redis_server):
    from litellm.caching.redis_cache import RedisCache

    cache = RedisCache(host="127.0.0.1", port=redis_server.port)  # it asks on this thread, which the relay needs
    cache.redis_kwargs["port"] = relay.port
    return cache
