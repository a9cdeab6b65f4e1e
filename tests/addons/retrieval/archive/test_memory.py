"""One process keeps no more than its bound, the newest, and each no longer than its time."""

import secrets
import tracemalloc

from ctx_hooks.addons.retrieval.archive import memory
from ctx_hooks.addons.retrieval.archive.memory import Memory

DAY_SECONDS = 24 * 3600.0
SOON_SECONDS = 1e-6
"""Not over while it is written, and over before anything else is done."""


async def test_memory_stays_within_its_bound_and_holds_the_newest():
    """200 MB into 8 MB, of large texts and of small ones."""
    max_bytes, store = 8_000_000, Memory()
    tracemalloc.start()
    try:
        for n in range(1_000):
            batch = {f"{n:06}{part:06}": secrets.token_bytes(size) for part, size in enumerate([190_000] + [100] * 100)}
            await store.write("tenant", batch, DAY_SECONDS, max_bytes)
            assert store.size_bytes <= max_bytes
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held <= max_bytes + 500_000  # the last batch, and the places of the queue
    assert (await store.read("tenant", [f"{999:06}{100:06}"])).get(f"{999:06}{100:06}") is not None
    assert (await store.read("tenant", [f"{0:06}{100:06}"])).get(f"{0:06}{100:06}") is None
    assert store.size_bytes > 0.9 * max_bytes


async def test_what_has_expired_is_not_available_and_goes_with_the_next_write():
    store = Memory()
    await store.write("tenant", {"short": b"x" * 1_000}, SOON_SECONDS, 10**9)
    assert (await store.read("tenant", ["short"])).get("short") is None
    await store.write("tenant", {"long": b"x" * 1_000}, DAY_SECONDS, 10**9)
    assert (await store.read("tenant", ["short"])).get("short") is None
    assert (await store.read("tenant", ["long"])).get("long") is not None
    assert store.size_bytes == memory.ENTRY_BYTES + 1_000


async def test_a_text_that_is_written_again_counts_once_and_stays_for_its_new_time():
    store = Memory()
    for n in range(10 * memory.MOST_STALE):
        await store.write("tenant", {"record": b"%d" % n}, DAY_SECONDS, 10**9)
    assert (await store.read("tenant", ["record"])).get("record") == b"%d" % n
    assert store.size_bytes == memory.ENTRY_BYTES + len(b"%d" % n)
    assert len(store._queue) <= memory.MOST_STALE + 2  # noqa: SLF001 - what else could grow


async def test_a_text_that_is_written_again_does_not_go_when_its_old_time_is_over():
    store = Memory()
    for kept_seconds in (SOON_SECONDS, DAY_SECONDS):
        await store.write("tenant", {"record": b"x"}, kept_seconds, 10**9)
    await store.write("tenant", {"another": b"x"}, DAY_SECONDS, 10**9)
    assert (await store.read("tenant", ["record"])).get("record") == b"x"
