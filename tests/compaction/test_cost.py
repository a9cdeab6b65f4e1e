"""A compaction pays when the shorter prompt saves more than the cache it throws away."""

import pytest

from ctx_hooks.compaction.cost import EXPECTED_REQUESTS, Prices, pays

CLAUDE = Prices(plain=3.0, cache_read=0.3, cache_write=3.75)


@pytest.mark.parametrize("prices", [CLAUDE, Prices(plain=1.0, cache_read=1.0, cache_write=1.0), Prices(2.0, 0.5, 2.0)])
def test_compaction_pays_if_its_requests_cost_less(prices):
    """The bills of the compacted request and of those behind it, with the compaction and without."""
    whole = 100 * (1 + EXPECTED_REQUESTS) * prices.cache_read
    for after in range(1, 121):
        rewritten = after * prices.cache_write + EXPECTED_REQUESTS * after * prices.cache_read
        assert pays(100, after, prices) == (rewritten < whole)


def test_halving_a_cached_prompt_pays_and_taking_a_tenth_off_does_not():
    assert not pays(100_000, 90_000, prices=CLAUDE)
    assert pays(100_000, 50_000, prices=CLAUDE)
