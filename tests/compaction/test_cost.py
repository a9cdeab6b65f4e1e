"""A compaction pays when the shorter prompt saves more than the cache it throws away, and goes as low as costs least."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctx_hooks.compaction.cost import (
    CACHE_PRICES,
    LARGEST_TARGET_FRACTION,
    LEAST_TARGET_FRACTION,
    MISSED_NAME_REQUESTS,
    MISSED_NAMES_TOKENS,
    TARGET_STEPS,
    Prices,
    WritingPrices,
    pays,
    target_fraction_of,
)

CLAUDE = Prices(plain=3.0, cache_read=0.3, cache_write=3.75)
UNCACHED = Prices(plain=1.0, cache_read=1.0, cache_write=1.0)


def test_halving_a_cached_prompt_pays_only_over_many_turns():
    assert not pays(100_000, 50_000, expected_turns=5, prices=CLAUDE)
    assert pays(100_000, 50_000, expected_turns=20, prices=CLAUDE)


def test_a_summary_has_to_be_saved_for_too():
    """It reads the history and writes its most tokens."""
    summary_cost = WritingPrices(read=1.0, written=5.0).of_summary(100_000, 2_000)
    assert summary_cost == 110_000
    assert pays(100_000, 50_000, expected_turns=20, prices=CLAUDE)
    assert not pays(100_000, 50_000, expected_turns=20, prices=CLAUDE, summary_cost=summary_cost * 2)
    assert pays(100_000, 50_000, expected_turns=60, prices=CLAUDE, summary_cost=summary_cost * 2)


def test_without_a_cache_a_shorter_prompt_always_pays():
    assert pays(100_000, 99_000, expected_turns=1, prices=UNCACHED)


def test_a_price_cannot_be_negative():
    with pytest.raises(ValueError, match="negative"):
        Prices(1.0, -0.1, 1.0)


budgets, growths = st.integers(8_000, 1_000_000), st.floats(10, 20_000)
prices = st.builds(lambda read, more: Prices(1.0, read, read + more), st.floats(0.01, 1), st.floats(0, 2))


def cost_a_request(free, growth, budget, fixed, prices):
    """Return what a request costs where each compaction frees so many tokens: read, written anew, and missed."""
    room = budget - fixed
    requests = 1 + free / growth
    rewritten = (room - free) * (prices.cache_write - prices.cache_read) / requests
    missed = MISSED_NAMES_TOKENS / budget * free / room
    return (budget - free / 2) * prices.cache_read + rewritten + missed * MISSED_NAME_REQUESTS * budget * prices.cache_read


@given(budgets, growths, st.floats(0, 0.8), prices)
def test_what_is_left_costs_least(budget, growth, fixed_share, prices):
    """No other share within the bounds is cheaper, but for what rounding to a step loses."""
    fixed = int(budget * fixed_share)
    chosen = target_fraction_of(growth, budget - fixed, prices)
    shares = [n / (2 * TARGET_STEPS) for n in range(TARGET_STEPS // 2, 5 * TARGET_STEPS // 4 + 1)]
    costs = {s: cost_a_request((1 - s) * (budget - fixed), growth, budget, fixed, prices) for s in shares}
    cheapest = min(costs, key=costs.get)
    assert LEAST_TARGET_FRACTION <= chosen <= LARGEST_TARGET_FRACTION
    assert abs(chosen - cheapest) <= 1 / TARGET_STEPS


@given(budgets, growths, growths, prices)
def test_the_faster_a_conversation_grows_the_more_is_freed_at_once(budget, growth, other, prices):
    """While a request is a small part of the budget."""
    slow, fast = sorted((min(growth, budget / 10), min(other, budget / 10)))
    assert target_fraction_of(fast, budget, prices) <= target_fraction_of(slow, budget, prices)


@given(budgets, growths, st.floats(1.0, 4.0), st.floats(1.0, 4.0))
def test_the_dearer_writing_is_the_more_is_freed_at_once(budget, growth, write, other):
    cheap, dear = sorted((write, other))
    fractions = [target_fraction_of(growth, budget, Prices(1.0, 0.5, w)) for w in (dear, cheap)]
    assert fractions == sorted(fractions)


def test_without_a_cache_as_much_is_left_as_keeps_compactions_rare():
    assert target_fraction_of(2_000, 32_000, UNCACHED) == LARGEST_TARGET_FRACTION


def test_the_currency_says_nothing():
    assert target_fraction_of(2_000, 32_000, CLAUDE) == target_fraction_of(2_000, 32_000, CACHE_PRICES)


def test_a_budget_that_fixed_text_fills_has_a_target_all_the_same():
    assert target_fraction_of(1_000, 0, CACHE_PRICES) == LARGEST_TARGET_FRACTION
