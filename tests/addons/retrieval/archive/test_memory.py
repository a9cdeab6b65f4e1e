"""One process keeps no more than its bound, the newest, and each no longer than its time."""

import secrets

from ctx_hooks.addons.retrieval.archive.disk import PAGE_BYTES, Disk, Memory

DAY_SECONDS = 24 * 3600.0
SOON_SECONDS = 1e-6
"""Not over while it is written, and over before anything else is done."""


def pages(store):
    return store.place.file.execute("PRAGMA page_count").fetchone()[0]


async def test_memory_stays_within_its_bound_and_holds_the_newest():
    """20 MB into 8 MB, of large texts and of small ones."""
    max_bytes, store = 8_000_000, Disk(Memory())
    for n in range(100):
        batch = {f"{n:06}{part:06}": secrets.token_bytes(size) for part, size in enumerate([190_000] + [100] * 100)}
        await store.write("tenant", batch, DAY_SECONDS, max_bytes)
        assert pages(store) * PAGE_BYTES <= max_bytes
    assert list(await store.read("tenant", [f"{n:06}{100:06}" for n in (0, 99)])) == [f"{99:06}{100:06}"]
    assert pages(store) * PAGE_BYTES > 0.8 * max_bytes


async def test_a_text_that_is_written_again_counts_once_and_stays_for_its_new_time():
    store = Disk(Memory())
    await store.write("tenant", {"record": b"x" * 100_000}, SOON_SECONDS, 10**9)
    assert await store.read("tenant", ["record"]) == {}
    for n in range(50):
        await store.write("tenant", {"record": b"%d" % n * 10_000}, DAY_SECONDS, 10**9)
    assert await store.read("tenant", ["record"]) == {"record": b"%d" % n * 10_000}
    assert pages(store) * PAGE_BYTES < 300_000
