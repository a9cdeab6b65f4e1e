"""What is remembered of texts stays within its limit and gives back what was put in."""

from __future__ import annotations

import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

import ctx_hooks
from ctx_hooks.runtime import content_cache
from ctx_hooks.runtime.content_cache import ENTRY_BYTES, ContentCache, digest
from ctx_hooks.testing import agent_session

SMALL_ENTRY_BYTES = ENTRY_BYTES + sys.getsizeof("a")


def test_an_entry_is_computed_once():
    cache: ContentCache[int] = ContentCache(share=0.01)
    computed = []
    for _ in range(3):
        assert cache.get("k", lambda: computed.append(1) or 7) == 7
    assert computed == [1]


def test_the_least_recently_used_entries_go_first():
    cache: ContentCache[int] = ContentCache(share=0.01)
    cache.limit(2 * SMALL_ENTRY_BYTES)
    cache.get("a", lambda: 1)
    cache.get("b", lambda: 2)
    cache.get("a", lambda: 0)
    cache.get("c", lambda: 3)
    assert cache.get("a", lambda: -1) == 1
    assert cache.get("b", lambda: -2) == -2
    assert cache.size_bytes <= 2 * SMALL_ENTRY_BYTES


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


def memory_of(value, seen):
    """Return the memory of a value and all that it refers to, each object once."""
    if id(value) in seen or isinstance(value, type) or callable(value):
        return 0
    seen.add(id(value))
    parts = value if isinstance(value, (list, tuple)) else ()
    if isinstance(value, dict):
        parts = (*value, *value.values())
    fields = getattr(value, "__dataclass_fields__", {})
    return sys.getsizeof(value) + sum(memory_of(v, seen) for v in (*parts, *(getattr(value, f) for f in fields)))


DIALOGUE = [{"role": "assistant" if n % 2 else "user", "content": f"turn {n}: {'x' * (n % 90)}"} for n in range(601)]
SESSION = agent_session("openai-chat", turns=40, result_chars=3_000)["messages"]
HOSTILE = {
    "short turns": DIALOGUE,
    "an agent": [*SESSION, *DIALOGUE],
    "line breaks": [*SESSION[:3], {**SESSION[3], "content": "\n" * 200_000}, *SESSION[4:]],
    "names": [*SESSION[:3], {**SESSION[3], "content": "\n".join(f"a_{n}" for n in range(40_000))}, *SESSION[4:]],
    "emoji": [{**m, "content": f"{n} " + "🎻🏔️" * 20} for n, m in enumerate(DIALOGUE)],
    "calls": agent_session("openai-chat", turns=500, result_chars=50)["messages"],
}


@pytest.mark.parametrize("shape", HOSTILE)
def test_no_cache_holds_more_than_it_says(shape):
    content_cache.clear_all()
    for budget in (2_000, 9_000):
        ctx_hooks.compress(HOSTILE[shape], format="openai-chat", budget_tokens=budget, target_tokens="auto")
    for cache in content_cache._caches:  # noqa: SLF001
        seen = set()
        held = sum(memory_of(k, seen) + memory_of(v, seen) for k, v in cache._entries.items())  # noqa: SLF001
        assert held <= 1.2 * cache.size_bytes


def test_a_key_counts_as_well():
    cache: ContentCache[int] = ContentCache(share=0.01)
    cache.get(("x" * 10_000, b"y" * 5_000), lambda: 1)
    assert cache.size_bytes > 15_000
