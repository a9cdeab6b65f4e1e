"""The window's sources in their order, and what of it a request may fill."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ctx_hooks.attempts.attempt import Limits
from ctx_hooks.policy.settings import Policy
from ctx_hooks.tokens.budget import (
    Window,
    budget_tokens_of,
    holds_output,
    replaced_reserve,
    window_of,
)
from ctx_hooks.tokens.units import to_local, to_provider

POLICY = Policy()


@pytest.mark.parametrize(("sources", "expected"), [
    ((60_000, 70_000), (60_000, "model_info")), ((1_000, 70_000), (1_000, "model_info")),
    ((None, 70_000), (70_000, "model_map")), ((None, None), (128_000, "default")), (("many", 70_000), (70_000, "model_map")),
    ((-5, None), (128_000, "default")), ((True, None), (128_000, "default")), ((128, 70_000), (70_000, "model_map")),
])  # fmt: skip
def test_the_most_specific_source_wins_and_nonsense_is_passed_over(sources, expected):
    window = window_of(POLICY, *sources)
    assert (window.tokens, window.source) == expected


WINDOWS = st.none() | st.integers(1_000, 2_000_000)


@given(cap=st.integers(0, 2_000_000), configured=WINDOWS, known=WINDOWS)
def test_a_cap_lowers_every_window_to_it_and_raises_none(cap, configured, known):
    stated = window_of(POLICY, configured, known)
    capped = window_of(POLICY.model_copy(update={"window_tokens": cap}), configured, known)
    assert capped.tokens == min(cap, stated.tokens)
    assert capped == stated or capped.source == "policy"


@pytest.mark.parametrize(("window", "policy", "recent", "expected"), [
    (200_000, POLICY, 0, 16_384), (200_000, Policy(reserve="8%"), 0, 16_000),
    (200_000, Policy(reserve="dynamic"), 2_500, 32_768), (200_000, Policy(reserve="dynamic"), 1_500, 16_384),
    (200_000, Policy(reserve="dynamic"), 100, 8_192), (8_000, POLICY, 0, 640),
])  # fmt: skip
def test_the_reserve_follows_the_policy(window, policy, recent, expected):
    assert window - budget_tokens_of(Window(window, "policy"), policy, recent) == expected


ANY_WINDOW = st.integers(4_000, 2_000_000)


KINDS = {
    "tokens": lambda n: {"policy": Policy(reserve=n)},
    "share": lambda n: {"policy": Policy(reserve=f"{n % 100}%")},
    "size of messages": lambda n: {"policy": Policy(reserve="dynamic"), "recent_message_tokens": n / 25},
    "output": lambda n: {"policy": Policy(reserve="output"), "requested": n},
}


@pytest.mark.parametrize("kind", KINDS)
@example(128_000, 16_384, 32_768)
@example(32_768, 8_192, 16_384)
@example(128_000, 37_500, 62_500)
@given(ANY_WINDOW, st.integers(1, 2_500_000), st.integers(1, 2_500_000))
def test_a_larger_reserve_leaves_no_larger_budget(kind, window, one, other):
    smaller, larger = sorted((one, other), key=lambda n: n % 100 if kind == "share" else n)
    budgets = [budget_tokens_of(Window(window, "policy"), **KINDS[kind](n)) for n in (smaller, larger)]
    assert budgets[1] <= budgets[0]


class TestAReserve:
    """The default leaves what it has always left; a replaced one is named."""

    def budget(self, window, reserve):
        return budget_tokens_of(Window(window, "policy"), Policy(reserve=reserve))

    @given(ANY_WINDOW)
    def test_the_default_is_scaled_in_small_windows(self, window):
        reserve = 16_384 if window >= 65_536 else int(window * 0.08)
        assert self.budget(window, None) == max(window - reserve, min(4_096, window))

    @example(32_768, 4_096)
    @given(ANY_WINDOW, st.integers(0, 2_500_000))
    def test_a_stated_reserve_is_kept_up_to_a_quarter_of_the_window_and_a_larger_one_is_named(self, window, reserve):
        held, least = min(reserve, window // 4), min(4_096, window)
        assert self.budget(window, reserve) == max(window - held, least)
        named = replaced_reserve(Window(window, "policy"), Policy(reserve=reserve))
        assert named == (f"reserve {reserve:,} becomes {held:,} in a window of {window:,}" if held < reserve else "")

    def test_only_tokens_are_replaced(self):
        window = Window(32_768, "policy")
        assert replaced_reserve(window, Policy(reserve="60%")) == ""
        assert replaced_reserve(window, Policy(reserve="dynamic")) == "reserve 32,768 becomes 8,192 in a window of 32,768"


class TestAReserveForTheOutput:
    """`reserve: output` keeps the smaller of the requested output and a quarter of the window, beside any input."""

    policy = Policy(reserve="output")

    def budget(self, window, requested, policy=policy, **of_window):
        return budget_tokens_of(Window(window, "policy", **of_window), policy, requested=requested)

    @example(12_000, 4_000)
    @given(st.integers(8_000, 2_000_000), st.integers(256, 2_500_000))
    def test_the_output_fits_beside_the_largest_input(self, window, requested):
        kept = min(requested, window // 4)
        budget = self.budget(window, requested)
        assert Limits(Window(window, "policy")).allowed_output_tokens(requested, budget) >= kept
        assert budget <= window - kept

    @given(ANY_WINDOW, st.integers(0, 2_500_000))
    def test_without_a_stake_in_it_the_default_holds(self, window, requested):
        """No output is requested, the window is for the input alone, or the policy does not ask for it."""
        usual = budget_tokens_of(Window(window, "policy"), POLICY)
        assert self.budget(window, 0) == self.budget(window, requested, POLICY) == usual
        assert self.budget(window, requested, holds_output=False) == usual


class TestAThinkingBudget:
    window = Window(60_000, "model_info")

    def reserve(self, least_output_tokens, window=window):
        return window.tokens - budget_tokens_of(window, POLICY, least_output_tokens=least_output_tokens)

    @pytest.mark.parametrize("least", [2_048, 8_192, 15_000])
    def test_it_is_free_when_the_output_is_lowered_to_what_the_input_leaves(self, least):
        input_tokens = self.window.tokens - self.reserve(least)
        assert Limits(self.window).allowed_output_tokens(32_000, input_tokens) >= least

    def test_above_a_quarter_of_the_window_it_takes_nothing_from_the_conversation(self):
        assert self.reserve(15_001) == self.reserve(0) < self.reserve(15_000)

    def test_a_window_for_the_input_alone_needs_nothing_for_it(self):
        beside = Window(60_000, "model_info", holds_output=False)
        assert self.reserve(15_000, beside) == self.reserve(0, beside)


@pytest.mark.parametrize(
    ("model", "expected"),
    [("gemini/gemini-2.5-pro", False), ("openai/gpt-5-mini", False), ("gpt-4o", True), ("claude", True)],
)
def test_windows_for_the_input_alone_are_told_apart(model, expected):
    assert holds_output(model) is expected


@given(
    window=st.integers(0, 2_000_000),
    least=st.integers(0, 3_000_000),
    kind=st.sampled_from([16_384, "8%", "99%", "dynamic", "output"]),
)
def test_a_budget_is_never_negative_nor_above_the_window(window, least, kind):
    budget = budget_tokens_of(Window(window, "policy"), Policy(reserve=kind), 500, least, least)
    assert min(4_096, window) <= budget <= window


@given(st.integers(0, 10**9), st.sampled_from([0.5, 0.77, 1.0, 1.3, 2.5]))
def test_a_conversion_rounds_down_so_that_what_fits_here_fits_there(tokens, factor):
    assert to_provider(to_local(tokens, factor), factor) <= tokens
