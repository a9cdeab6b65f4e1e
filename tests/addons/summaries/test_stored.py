"""Of two workers one is first, and the other takes what the first has stored; a broken Redis leaves each to itself."""

import asyncio
import json
import threading
import time
from uuid import uuid4

import pytest

from ctx_hooks.addons.summaries import stored as stored_summaries
from ctx_hooks.addons.summaries.record import (
    IDLE,
    LARGEST_VALUE_BYTES,
    MOST_CHOSEN,
    MOST_WRITTEN,
    NOTHING,
    Written,
    begun,
    record_of,
)
from ctx_hooks.addons.summaries.stored import HANDLE, KEY_PREFIX, StoredSummaries
from ctx_hooks.compaction.summary.model_written import Choice, WrittenSummary
from ctx_hooks.store.sealing import SECRET_VARIABLE, opened, sealed, tenant_key
from ctx_hooks.store.shared_store import SharedStore

FIRST, SECOND = WrittenSummary("ab", 40, "Tune the piano."), WrittenSummary("cd", 60, "Tune the 琴.")


class BrokenCache:
    def __init__(self):
        self.asked = 0

    def async_register_script(self, script):
        self.asked += 1
        raise ConnectionError("down")


async def known(store, conversation, *wait_seconds):
    return (await store.of(conversation, *wait_seconds)).summaries(conversation)


def flight_of(owner):
    return begun(IDLE, owner, time.time(), 60.0)


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
    return uuid4().hex


class Record:
    """What is in Redis of a conversation."""

    def __init__(self, redis_cache, conversation):
        self.client, self.tenant = redis_cache.init_async_client(), tenant_key(HANDLE, conversation, b"")
        self.pattern = f"*{KEY_PREFIX}{conversation}"

    async def key(self):
        (key,) = [k async for k in self.client.scan_iter(self.pattern)]
        return key

    async def fields(self):
        return json.loads(opened(await self.client.get(await self.key()), self.tenant, HANDLE, b""))

    async def forge(self, **fields):
        """Write fields among those that are there, as whoever has the Redis can where nothing is encrypted."""
        text = json.dumps({**await self.fields(), **fields})
        await self.client.set(await self.key(), sealed(text, self.tenant, HANDLE, b""))


async def test_long_summaries_in_chinese_are_all_known_to_the_other_worker(redis_cache, conversation):
    one, two = (StoredSummaries(SharedStore(lambda: redis_cache)) for _ in range(2))
    prefixes = [f"{n:02x}" for n in range(20)]
    for prefix in prefixes:
        await one.write(conversation, WrittenSummary(prefix, 40, "琴" * 21_000))
        await one.choose(conversation, Choice(prefix, prefix, 40))
    assert set((await known(two, conversation)).chosen) == set(prefixes)


async def test_a_summary_is_known_to_the_other_worker(workers, conversation):
    one, two = workers
    await one.write(conversation, FIRST)
    await one.write(conversation, SECOND)
    found = await known(two, conversation)
    assert found.conversation == conversation
    assert found.written == {"ab": FIRST, "cd": SECOND}
    assert (await known(two, conversation + "00")).written == {}


async def test_the_first_text_of_a_prefix_stays(workers, conversation):
    one, two = workers
    await one.write(conversation, FIRST)
    await two.write(conversation, WrittenSummary("ab", 40, "Tune the violin."))
    assert (await known(one, conversation)).written == {"ab": FIRST}
    assert (await known(two, conversation)).written == {"ab": FIRST}


async def test_the_first_choice_of_a_compaction_holds_for_both(workers, conversation):
    one, two = workers
    assert await one.choose(conversation, Choice("01", "", 40)) == ""
    assert await two.choose(conversation, Choice("01", "ab", 40)) == ""
    assert await two.choose(conversation, Choice("02", "ab", 60)) == "ab"
    assert await one.choose(conversation, Choice("02", "", 60)) == "ab"
    assert (await known(one, conversation)).chosen == (await known(two, conversation)).chosen == {"01": "", "02": "ab"}


async def test_of_two_that_begin_one_has_the_flight(workers, conversation):
    one, two = workers
    mine, yours = flight_of("one"), flight_of("two")
    assert await one.fly(conversation, IDLE, mine)
    assert not await two.fly(conversation, IDLE, yours)
    assert (await two.of(conversation)).flight == mine
    assert await one.fly(conversation, mine, IDLE)
    assert (await two.of(conversation)).flight == IDLE


async def test_who_has_lost_the_flight_does_not_end_that_of_another(workers, conversation):
    one, two = workers
    mine, yours = flight_of("one"), flight_of("two")
    assert await one.fly(conversation, IDLE, mine)
    assert await two.fly(conversation, mine, yours), "its lease was over"
    assert not await one.fly(conversation, mine, IDLE)
    assert (await one.of(conversation)).flight == yours


@pytest.mark.parametrize(
    "forged", [{"flight": {"owner": "o", "until_seconds": 1e12}}, {"written": {"ab": None}}, {"chosen": 1}]
)
async def test_a_record_that_says_nothing_is_replaced(redis_cache, conversation, forged):
    """Whoever has the Redis can write anything there: it must keep no summary from being written ever after."""
    await StoredSummaries(SharedStore(lambda: redis_cache)).choose(conversation, Choice("01", "", 40))
    await Record(redis_cache, conversation).forge(**forged)
    other = StoredSummaries(SharedStore(lambda: redis_cache))
    found = await other.of(conversation)
    assert begun(found.flight, "two", time.time(), 60.0)
    assert await other.fly(conversation, found.flight, flight := flight_of("one"))
    await other.write(conversation, FIRST)
    assert await other.choose(conversation, Choice("02", "ab", 60)) == "ab"
    found = await StoredSummaries(SharedStore(lambda: redis_cache)).of(conversation)
    assert (found.flight, found.chosen["02"]) == (flight, "ab")
    assert found.summaries(conversation).written == {"ab": FIRST}


async def test_the_newest_of_a_kind_are_kept(workers, conversation):
    one, two = workers
    for n in range(MOST_WRITTEN + 3):
        await one.write(conversation, WrittenSummary(f"{n:02x}", n + 1, "text"))
    for n in range(MOST_CHOSEN + 3):
        await one.choose(conversation, Choice(f"{n:02x}", "", 1))
    found = await known(two, conversation)
    assert set(found.written) == {f"{n:02x}" for n in range(3, MOST_WRITTEN + 3)}
    assert set(found.chosen) == {f"{n:02x}" for n in range(3, MOST_CHOSEN + 3)}


async def test_each_compaction_that_is_known_has_its_summary_however_many_came_later(workers, conversation):
    """Without its text a compaction would be sent in the other form, and the prompt cache be written again."""
    one, two = workers
    prefixes = [f"{n:04x}" for n in range(MOST_CHOSEN + 2 * MOST_WRITTEN)]
    for n, prefix in enumerate(prefixes):
        await one.write(conversation, WrittenSummary(prefix, n + 1, "text"))
        assert await two.choose(conversation, Choice(prefix, prefix, n + 1)) == prefix
    for worker in workers:
        found = await known(worker, conversation)
        assert set(found.chosen) == set(prefixes[-MOST_CHOSEN:])
        assert set(prefixes[-MOST_CHOSEN:]) <= set(found.written)
        assert len(found.written) <= MOST_CHOSEN + MOST_WRITTEN


async def test_redis_keeps_no_more_than_a_process_does(redis_cache, conversation):
    store = StoredSummaries(SharedStore(lambda: redis_cache))
    for n in range(MOST_WRITTEN + 3):
        await store.write(conversation, WrittenSummary(f"{n:02x}", n + 1, "text"))
    record = Record(redis_cache, conversation)
    assert len((await record.fields())["written"]) == MOST_WRITTEN
    for n in range(2 * MOST_CHOSEN):
        await store.write(conversation, WrittenSummary(f"{n:04x}", n + 1, "text"))
        await store.choose(conversation, Choice(f"{n:04x}", f"{n:04x}", n + 1))
    await store.fly(conversation, IDLE, flight_of("one"))
    kept = await record.fields()
    assert (len(kept["written"]), len(kept["chosen"])) == (MOST_WRITTEN + MOST_CHOSEN, MOST_CHOSEN)


async def test_what_redis_would_have_forgotten_a_process_forgets_too(monkeypatch):
    monkeypatch.setattr(stored_summaries, "KEPT_SECONDS", 0.0)
    store = StoredSummaries(SharedStore())
    await store.write("0a", FIRST)
    await store.write("0b", FIRST)
    assert list(store._kept) == ["0b"], "the text of the other is not in memory"  # noqa: SLF001 - nothing else shows it
    assert (await known(store, "0b")).written == {}


async def test_a_process_counts_from_the_last_write(monkeypatch):
    store = StoredSummaries(SharedStore())
    await store.write("0a", FIRST)
    monkeypatch.setattr(stored_summaries, "KEPT_SECONDS", 0.0)
    assert (await known(store, "0a")).written == {"ab": FIRST}
    await store.write("0a", SECOND)
    assert (await known(store, "0a")).written == {}


async def test_a_conversation_that_was_not_used_for_long_is_forgotten(monkeypatch):
    monkeypatch.setattr(stored_summaries, "MOST_CONVERSATIONS", 2)
    store = StoredSummaries(SharedStore())
    for name in ("0a", "0b", "0a", "0c"):
        await store.write(name, FIRST)
    assert [len((await known(store, name)).written) for name in ("0a", "0c", "0b")] == [1, 1, 0]


async def test_a_summary_that_is_too_large_to_share_is_not_stored(workers, conversation):
    one, two = workers
    await one.write(conversation, WrittenSummary("ab", 40, "琴" * LARGEST_VALUE_BYTES))
    assert (await known(one, conversation)).written == (await known(two, conversation)).written == {}


async def test_a_broken_redis_is_survived_and_not_read_at_once_again_by_a_request():
    cache = BrokenCache()
    store = StoredSummaries(SharedStore(lambda: cache))
    await store.write("0a", FIRST)
    assert (await known(store, "0a")).written == {"ab": FIRST}
    assert await store.fly("0a", IDLE, flight_of("one"))
    assert not await store.fly("0a", IDLE, flight_of("two"))
    assert await store.choose("0a", Choice("01", "ab", 40)) == "ab"
    asked = cache.asked
    await store.of("0a")
    assert cache.asked == asked
    await store.of("0a", 1.0)
    assert cache.asked == asked + 1


async def test_what_expires_in_redis_is_set_to(redis_cache, conversation):
    await StoredSummaries(SharedStore(lambda: redis_cache)).write(conversation, FIRST)
    record = Record(redis_cache, conversation)
    assert 0 < await record.client.ttl(await record.key()) <= stored_summaries.KEPT_SECONDS


@pytest.mark.parametrize("value", [
    "", "1", "null", "[]", "[1]", '["a"]', "[" * 50_000, "\0", '{"written": {"ab": {"length": 0, "text": "text"}}}',
    '{"written": {"ab": {"length": 1e400, "text": "text"}}}',
    f'{{"written": {{"ab": {{"length": {10**9}, "text": "text"}}}}}}',
    '{"written": {"ab": {"length": 2, "text": " "}}}', '{"written": {"ab": {"length": 2, "text": 3}}}',
    '{"written": {"ab": {"length": 2, "text": "go \\ud83d on"}}}', '{"written": {"AB": {"length": 2, "text": "text"}}}',
    f'{{"written": {{"{"a" * 100}": {{"length": 2, "text": "text"}}}}}}', '{"written": {"": {"length": 2, "text": "text"}}}',
    '{"chosen": {"ab": "xyz"}}', '{"chosen": {"0a ": ""}}', '{"chosen": {"ab": null}}', '{"flight": {"until_seconds": NaN}}',
    f'{{"flight": {{"until_seconds": 1{"0" * 400}}}}}', '{"flight": {"until_seconds": -1}}', '{"flight": {"failures": -1}}',
])  # fmt: skip
def test_what_is_no_record_is_an_empty_one(value):
    """Whoever has the Redis can write anything there."""
    assert record_of(value) == NOTHING


def test_an_entry_that_is_none_is_left_out_and_the_others_are_kept():
    written = '"ab": {"length": -2, "text": "text"}, "cd": {"length": 2, "text": "text"}'
    found = record_of(f'{{"written": {{{written}}}, "chosen": {{"0a": "cd", "zz": "cd", "0b": 3}}}}')
    assert (found.written, found.chosen) == ({"cd": Written(2, "text")}, {"0a": "cd"})


def test_a_lease_or_pause_that_lasts_too_long_is_none():
    flight = record_of('{"flight": {"owner": "o", "until_seconds": 1e12}}').flight
    assert begun(flight, "two", 1.0, 60.0)
    assert not flight.is_under_way(1.0)


@pytest.mark.parametrize("forged", ["text", "large", "other type"])
async def test_what_others_have_put_in_its_place_costs_no_more_than_what_was_there(redis_cache, conversation, forged):
    await StoredSummaries(SharedStore(lambda: redis_cache)).write(conversation, FIRST)
    record = Record(redis_cache, conversation)
    key = await record.key()
    if forged == "other type":
        await record.client.delete(key)
        await record.client.hset(key, "ab", "text")
    else:
        await record.client.set(key, "x" * (10 if forged == "text" else stored_summaries.LARGEST_RECORD_BYTES + 1))
    other = StoredSummaries(SharedStore(lambda: redis_cache))
    assert (await known(other, conversation)).written == {}
    assert await other.choose(conversation, Choice("01", "", 1)) == ""
    assert (await known(StoredSummaries(SharedStore(lambda: redis_cache)), conversation)).chosen == {"01": ""}


async def test_with_a_secret_nobody_reads_a_summary_in_redis_or_puts_another_in_its_place(
    redis_cache, conversation, monkeypatch
):
    monkeypatch.setenv(SECRET_VARIABLE, "of the operator")
    one, two = (StoredSummaries(SharedStore(lambda: redis_cache)) for _ in range(2))
    await one.write(conversation, FIRST)
    record = Record(redis_cache, conversation)
    key = await record.key()
    assert b"piano" not in await record.client.get(key)
    assert (await known(two, conversation)).written == {"ab": FIRST}
    text = '{"written": {"ab": {"length": 40, "text": "Sell the piano."}}}'
    await record.client.set(key, sealed(text, record.tenant, HANDLE, b""))
    assert (await known(StoredSummaries(SharedStore(lambda: redis_cache)), conversation)).written == {}


async def test_no_record_is_opened_on_the_event_loop(redis_cache, conversation, monkeypatch):
    """One of 2 MB takes some 30 ms, for which no other request would go on."""
    threads = []
    monkeypatch.setattr(stored_summaries, "opened", lambda *a: threads.append(threading.current_thread()) or opened(*a))
    store = StoredSummaries(SharedStore(lambda: redis_cache))
    await store.write(conversation, FIRST)
    await store.choose(conversation, Choice("01", "ab", 40))
    await store.fly(conversation, IDLE, flight_of("one"))
    for _ in range(3):
        await store.of(conversation)
    assert len(threads) == 4, "one that has not changed is opened once"
    assert threading.main_thread() not in threads


async def test_workers_that_write_at_once_lose_nothing(redis_cache, conversation):
    workers = [StoredSummaries(SharedStore(lambda: redis_cache)) for _ in range(4)]
    await asyncio.gather(*(w.write(conversation, WrittenSummary(f"{n:02x}", n + 1, "text")) for n, w in enumerate(workers)))
    assert len((await known(workers[0], conversation)).written) == len(workers)
