"""What is remembered of texts stays within its limit and gives back what was put in."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from ctx_hooks import content_cache
from ctx_hooks.content_cache import ENTRY_BYTES, ContentCache, digest


def test_an_entry_is_computed_once():
    cache: ContentCache[int] = ContentCache(share=0.01)
    computed = []
    for _ in range(3):
        assert cache.get("k", lambda: computed.append(1) or 7) == 7
    assert computed == [1]


def test_the_least_recently_used_entries_go_first():
    cache: ContentCache[int] = ContentCache(share=0.01)
    cache.limit(2 * ENTRY_BYTES)
    cache.get("a", lambda: 1)
    cache.get("b", lambda: 2)
    cache.get("a", lambda: 0)
    cache.get("c", lambda: 3)
    assert cache.get("a", lambda: -1) == 1
    assert cache.get("b", lambda: -2) == -2
    assert cache.size_bytes <= 2 * ENTRY_BYTES


def test_one_limit_bounds_all_caches():
    try:
        content_cache.set_limit_bytes(0)
        cache: ContentCache[str] = ContentCache(share=0.5)
        cache.limit(0)
        assert cache.get("k", lambda: "v", len) == "v"
        assert len(cache) == 0
    finally:
        content_cache.set_limit_bytes(content_cache.DEFAULT_LIMIT_BYTES)


def test_many_threads_agree():
    cache: ContentCache[int] = ContentCache(share=0.01)
    cache.limit(50 * ENTRY_BYTES)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda n: cache.get(n % 100, lambda: n % 100), range(5_000)))
    assert found == [n % 100 for n in range(5_000)]
    assert cache.size_bytes <= 50 * ENTRY_BYTES


def test_lone_surrogates_have_a_digest():
    assert digest("\ud800") != digest("\ud801")
