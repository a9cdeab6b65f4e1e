"""A compaction pays when the shorter prompt saves more than the cache it throws away."""

from hypothesis import given
from hypothesis import strategies as st

from ctx_hooks.compaction.cost import EXPECTED_REQUESTS, Prices, pays

CLAUDE = Prices(plain=3.0, cache_read=0.3, cache_write=3.75)
prices = st.sampled_from([CLAUDE, Prices(plain=1.0, cache_read=1.0, cache_write=1.0), Prices(2.0, 0.5, 2.0)])


@given(st.integers(1, 1_000_000), st.integers(1, 1_000_000), prices)
def test_compaction_pays_if_its_requests_cost_less(before, after, price):
    """The bills of the compacted request and of those behind it, with the compaction and without."""
    later = EXPECTED_REQUESTS
    rewritten = after * price.cache_write + later * after * price.cache_read
    assert pays(before, after, price) == (rewritten < (1 + later) * before * price.cache_read)


def test_halving_a_cached_prompt_pays_and_taking_a_tenth_off_does_not():
    assert not pays(100_000, 90_000, prices=CLAUDE)
    assert pays(100_000, 50_000, prices=CLAUDE)
