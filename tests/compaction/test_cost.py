"""A compaction pays when the shorter prompt saves more than the cache it throws away."""

from ctx_hooks.compaction.cost import Prices, pays

CLAUDE = Prices(plain=3.0, cache_read=0.3, cache_write=3.75)
UNCACHED = Prices(plain=1.0, cache_read=1.0, cache_write=1.0)


def test_halving_a_cached_prompt_pays_and_taking_a_tenth_off_does_not():
    assert not pays(100_000, 90_000, prices=CLAUDE)
    assert pays(100_000, 50_000, prices=CLAUDE)


def test_without_a_cache_a_shorter_prompt_always_pays():
    assert pays(100_000, 99_000, prices=UNCACHED)
