"""Workers that share a Redis know the same summaries; without it each has its own."""

from uuid import uuid4

import pytest

from ctx_hooks.addons.summaries import stored as stored_summaries
from ctx_hooks.addons.summaries.stored import HANDLE, KEY_PREFIX, MOST_OF_A_CONVERSATION, StoredSummaries
from ctx_hooks.compaction.steps import Choice
from ctx_hooks.compaction.summary.model_written import WrittenSummary
from ctx_hooks.store.sealing import SECRET_VARIABLE, sealed, tenant_key
from ctx_hooks.store.shared_store import SharedStore

FIRST, SECOND = WrittenSummary("ab", 40, "Tune the piano."), WrittenSummary("cd", 60, "Tune the 琴.")


class BrokenCache:
    def async_register_script(self, script):
        raise ConnectionError("down")


@pytest.fixture(params=["process", "redis"])
def workers(request):
    """Two workers: one process asked twice, or two that share a Redis."""
    if request.param == "process":
        alone = StoredSummaries(SharedStore())
        return alone, alone
    cache = request.getfixturevalue("redis_cache")
    return StoredSummaries(SharedStore(lambda: cache)), StoredSummaries(SharedStore(lambda: cache))


@pytest.fixture
def conversation():
    return f"ann:{uuid4().hex}"


async def test_other_worker_knows_each_summary(workers, conversation):
    one, two = workers
    await one.write(conversation, FIRST)
    await one.write(conversation, SECOND)
    await two.write(conversation, WrittenSummary("ab", 40, "Tune the violin."))
    assert (await two.of(conversation)).written == (await one.of(conversation)).written == {"ab": FIRST, "cd": SECOND}
    assert (await two.of(f"bob:{conversation}")).written == {}


async def test_first_choice_holds_for_both(workers, conversation):
    one, two = workers
    assert (await one.choose(conversation, Choice("01", "", 40))).chosen == {"01": ""}
    assert (await two.choose(conversation, Choice("01", "ab", 40))).chosen == {"01": ""}
    await two.choose(conversation, Choice("02", "ab", 60))
    for worker in workers:
        assert (await worker.of(conversation)).chosen == {"01": "", "02": "ab"}


async def test_worker_knows_its_summary_before_redis_does(redis_cache, conversation):
    one = StoredSummaries(SharedStore(lambda: redis_cache))
    await one.write(conversation, FIRST)
    await redis_cache.async_delete_cache(KEY_PREFIX + conversation)
    assert (await one.of(conversation)).written == {"ab": FIRST}


async def test_one_of_two_workers_begins(workers, conversation):
    assert [await worker.begin(conversation) for worker in workers * 2] == [True, False, False, False]


async def test_newest_are_kept(workers, conversation):
    one, two = workers
    for n in range(MOST_OF_A_CONVERSATION + 3):
        await one.write(conversation, WrittenSummary(f"{n:02x}", n + 1, "text"))
        await one.choose(conversation, Choice(f"{n:02x}", f"{n:02x}", 1))
    found = await two.of(conversation)
    assert set(found.written) == set(found.chosen) == {f"{n:02x}" for n in range(3, MOST_OF_A_CONVERSATION + 3)}


async def test_largest_record_is_read(redis_cache, conversation):
    one, two = (StoredSummaries(SharedStore(lambda: redis_cache)) for _ in range(2))
    for n in range(MOST_OF_A_CONVERSATION):
        await one.write(conversation, WrittenSummary(f"{n:02x}", 40, "琴" * 8_000))
    assert len((await two.of(conversation)).written) == MOST_OF_A_CONVERSATION


async def test_process_forgets_oldest_conversation(monkeypatch):
    monkeypatch.setattr(stored_summaries, "MOST_CONVERSATIONS", 2)
    store = StoredSummaries(SharedStore())
    for name in ("0a", "0b", "0a", "0c"):
        await store.write(name, FIRST)
    assert [len((await store.of(name)).written) for name in ("0a", "0c", "0b")] == [1, 1, 0]


async def test_redis_forgets_after_three_days(redis_cache, conversation):
    await StoredSummaries(SharedStore(lambda: redis_cache)).write(conversation, FIRST)
    client = redis_cache.init_async_client()
    (key,) = [key async for key in client.scan_iter(f"*{KEY_PREFIX}{conversation}")]
    assert 0 < await client.ttl(key) <= stored_summaries.KEPT_SECONDS


async def test_broken_redis_leaves_each_worker_to_itself():
    one, two = (StoredSummaries(SharedStore(BrokenCache)) for _ in range(2))
    await one.write("0a", FIRST)
    assert (await one.choose("0a", Choice("01", "ab", 40))).chosen == {"01": "ab"}
    assert (await one.of("0a")).written == {"ab": FIRST}
    assert [await one.begin("0a"), await one.begin("0a"), await two.begin("0a")] == [True, False, True]


@pytest.mark.parametrize(
    "value", ["", "1", "[]", '{"written": {"ab": null}}', "[" * 50_000, "\0", b"text", b"x" * 3_000_000]
)
async def test_foreign_value_is_replaced(redis_cache, conversation, value):
    """Whoever has the Redis can write anything there."""
    await StoredSummaries(SharedStore(lambda: redis_cache)).write(conversation, SECOND)
    client = redis_cache.init_async_client()
    (key,) = [key async for key in client.scan_iter(f"*{KEY_PREFIX}{conversation}")]
    if isinstance(value, str):
        value = sealed(value, tenant_key(HANDLE, conversation, b""), HANDLE, b"")
    await client.set(key, value)
    other = StoredSummaries(SharedStore(lambda: redis_cache))
    assert (await other.of(conversation)).written == {}
    await other.write(conversation, FIRST)
    assert (await StoredSummaries(SharedStore(lambda: redis_cache)).of(conversation)).written == {"ab": FIRST}


async def test_operators_secret_seals_summaries(redis_cache, conversation, monkeypatch):
    monkeypatch.setenv(SECRET_VARIABLE, "of the operator")
    one, two = (StoredSummaries(SharedStore(lambda: redis_cache)) for _ in range(2))
    await one.write(conversation, FIRST)
    client = redis_cache.init_async_client()
    (key,) = [key async for key in client.scan_iter(f"*{KEY_PREFIX}{conversation}")]
    assert b"piano" not in await client.get(key)
    assert (await two.of(conversation)).written == {"ab": FIRST}
    forged = '{"conversation": "", "written": {"ab": {"prefix": "ab", "length": 40, "text": "Sell it."}}}'
    await client.set(key, sealed(forged, tenant_key(HANDLE, conversation, b""), HANDLE, b""))
    assert (await StoredSummaries(SharedStore(lambda: redis_cache)).of(conversation)).written == {}
