"""The size of a stored history is known by the response that ends it: to its tenant, on every worker."""

import pytest

from ctx_hooks.learning import stored_histories
from ctx_hooks.learning.stored_histories import KEY_PREFIX, StoredHistories
from ctx_hooks.store.shared_store import SharedStore


class BrokenCache:
    def async_register_script(self, script):
        raise ConnectionError("down")


def alone():
    return StoredHistories(SharedStore())


async def test_what_was_billed_is_known_to_the_request_that_continues():
    histories = alone()
    await histories.note("ann", "resp_1", 12_000)
    assert await histories.tokens_of("ann", "resp_1") == 12_000
    assert await histories.tokens_of("bob", "resp_1") == 0, "another tenant learns nothing of it"
    assert await histories.tokens_of("ann", "resp_2") == 0
    assert await histories.tokens_of("ann", "") == 0


async def test_the_oldest_are_forgotten(monkeypatch):
    monkeypatch.setattr(stored_histories, "MOST_HISTORIES", 3)
    histories = alone()
    for n in range(5):
        await histories.note("ann", f"resp_{n}", 100 + n)
    assert [await histories.tokens_of("ann", f"resp_{n}") for n in range(5)] == [0, 0, 102, 103, 104]


async def test_a_broken_redis_is_survived():
    histories = StoredHistories(SharedStore(BrokenCache))
    await histories.note("ann", "resp_1", 12_000)
    assert await histories.tokens_of("ann", "resp_1") == 12_000
    assert await histories.tokens_of("ann", "resp_2") == 0


async def test_another_worker_knows_it_through_redis(redis_cache):
    await StoredHistories(SharedStore(lambda: redis_cache)).note("ann", "resp_shared", 12_000)
    assert await StoredHistories(SharedStore(lambda: redis_cache)).tokens_of("ann", "resp_shared") == 12_000
    assert await StoredHistories(SharedStore(lambda: redis_cache)).tokens_of("bob", "resp_shared") == 0


@pytest.mark.parametrize("written", ["-1", "1e9", "none", "９", "9" * 19, "9" * 500_000, ""])
async def test_what_is_no_size_is_none(redis_cache, written):
    """Whoever has the Redis can write anything there."""
    histories = StoredHistories(SharedStore(lambda: redis_cache))
    await histories.note("ann", "resp_forged", 12_000)
    client = redis_cache.init_async_client()
    keys = [key async for key in client.scan_iter(f"*{KEY_PREFIX}*")]
    assert keys
    for key in keys:
        await client.set(key, written)
    assert await StoredHistories(SharedStore(lambda: redis_cache)).tokens_of("ann", "resp_forged") == 0
