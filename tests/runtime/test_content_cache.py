"""What is remembered of texts stays within its limit and gives back what was put in."""

import sys

import pytest

import ctx_hooks
from ctx_hooks.runtime import content_cache
from ctx_hooks.runtime.content_cache import ENTRY_BYTES, ContentCache, Memory
from ctx_hooks.testing import agent_session

SMALL_ENTRY_BYTES = ENTRY_BYTES + sys.getsizeof("a")


def test_the_least_recently_used_entries_go_first_whichever_cache_holds_them():
    memory = Memory(2 * SMALL_ENTRY_BYTES)
    cache, other = ContentCache(memory), ContentCache(memory)
    cache.get("a", lambda: 1)
    other.get("a", lambda: 2)
    cache.get("a", lambda: 0)
    other.get("c", lambda: 3)
    assert cache.get("a", lambda: -1) == 1
    assert other.get("a", lambda: -2) == -2
    assert memory.size_bytes <= 2 * SMALL_ENTRY_BYTES


def test_a_limit_of_nothing_keeps_nothing():
    try:
        content_cache.set_limit_bytes(0)
        ctx_hooks.compress(SESSION, format="openai-chat", budget_tokens=9_000)
        assert len(content_cache._memory) == content_cache._memory.size_bytes == 0  # noqa: SLF001
    finally:
        content_cache.set_limit_bytes(content_cache.DEFAULT_LIMIT_BYTES)


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
def test_the_caches_hold_no_more_than_they_say(shape):
    content_cache.clear_all()
    for budget in (2_000, 9_000):
        ctx_hooks.compress(HOSTILE[shape], format="openai-chat", budget_tokens=budget, target_tokens="auto")
    memory, seen = content_cache._memory, set()  # noqa: SLF001
    held = sum(memory_of(k, seen) + memory_of(v, seen) for k, v in memory._entries.items())  # noqa: SLF001
    assert 0 < held <= 1.2 * memory.size_bytes


def test_the_map_is_counted_also_where_it_has_just_doubled():
    """Python's maps make room for three times what is in them: just above a third of a power of two most of it is empty."""
    entries = 2**14 // 3 + 50
    memory = Memory()
    cache: ContentCache[int] = ContentCache(memory)
    for n in range(6 * entries):
        if n == entries:
            memory.limit(memory.size_bytes)
        cache.get((b"%016d" % n, n), lambda: 1)
    assert len(memory) >= entries - 1
    held = sum(sys.getsizeof(found) for found in vars(memory).values() if isinstance(found, dict))
    for own, kept in memory._entries.items():  # noqa: SLF001
        collected = sum(isinstance(found, tuple) for found in (own, own[1], kept))
        held += memory_of(own, {id(own[0])}) + memory_of(kept, {id(1)}) + 16 * collected
    assert held <= memory.size_bytes
