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
    memory.limit(0)
    other.get("d", lambda: 4)
    assert len(memory) == memory.size_bytes == 0


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
    "names": [*SESSION[:3], {**SESSION[3], "content": "\n".join(f"a_{n}" for n in range(40_000))}, *SESSION[4:]],
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
