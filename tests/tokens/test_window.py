"""The window's sources in their order, and what of it a request may fill."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctx_hooks.policy.settings import Policy
from ctx_hooks.request.output_limit import allowed_output_tokens
from ctx_hooks.tokens.window import (
    ReservedOutput,
    Window,
    budget_tokens_of,
    holds_output,
    reserve_tokens_of,
    target_tokens_of,
    window_of,
)

POLICY = Policy()


@pytest.mark.parametrize(
    ("sources", "expected"),
    [
        ((50_000, 60_000, 70_000), (50_000, "policy")),
        ((0, 60_000, 70_000), (0, "policy")),
        ((None, 60_000, 70_000), (60_000, "model_info")),
        ((None, None, 70_000), (70_000, "model_map")),
        ((None, None, None), (128_000, "default")),
        ((None, "many", 70_000), (70_000, "model_map")),
        ((None, -5, None), (128_000, "default")),
        ((None, True, None), (128_000, "default")),
    ],
)
def test_the_most_specific_source_wins_and_nonsense_is_passed_over(sources, expected):
    window = window_of(*sources)
    assert (window.tokens, window.source) == expected


@pytest.mark.parametrize(
    ("window", "policy", "output", "recent", "expected"),
    [
        (200_000, POLICY, None, 0, 16_384),
        (200_000, Policy(reserve="scaled"), None, 0, 16_000),
        (200_000, Policy(reserve="dynamic"), None, 2_500, 32_768),
        (200_000, Policy(reserve="dynamic"), None, 1_500, 16_384),
        (200_000, Policy(reserve="dynamic"), None, 100, 8_192),
        (8_000, POLICY, None, 0, 640),
        (200_000, POLICY, 32_000, 0, 32_000),
        (200_000, POLICY, 500_000, 0, 16_384),
        (200_000, POLICY, 1_000, 0, 16_384),
    ],
)
def test_the_reserve_follows_the_policy_and_the_requests_own_output(window, policy, output, recent, expected):
    assert reserve_tokens_of(Window(window, "policy"), policy, ReservedOutput(output), recent) == expected


def test_no_requested_output_takes_all_of_the_history():
    window = Window(60_000, "learned")
    assert reserve_tokens_of(window, POLICY, ReservedOutput(50_000), fixed_tokens=20_000) == 30_000
    assert reserve_tokens_of(window, POLICY, ReservedOutput(50_000), fixed_tokens=50_000) == 10_000 - 4_096


class TestAnswersThatAreKnown:
    window = Window(60_000, "model_info")

    def reserve(self, requested, needed, window=None):
        return reserve_tokens_of(window or self.window, POLICY, ReservedOutput(requested, needed), fixed_tokens=18_000)

    def test_a_requested_maximum_is_no_need(self):
        assert self.reserve(32_000, None) > 30_000
        assert self.reserve(32_000, 512) < 8_000
        assert self.reserve(32_000, 512) < self.reserve(32_000, 16_384) < self.reserve(32_000, None)

    @pytest.mark.parametrize("needed", [512, 8_192, 16_384])
    def test_what_an_answer_needs_is_free_when_the_output_is_lowered_to_what_the_input_leaves(self, needed):
        input_tokens = self.window.tokens - self.reserve(32_000, needed)
        left = allowed_output_tokens(32_000, None, self.window, input_tokens)
        assert left >= needed
        assert left >= POLICY.reserve_fraction * self.window.tokens - 1

    def test_no_more_is_reserved_than_without_knowing(self):
        for needed in (100, 10_000, 40_000, 400_000):
            assert self.reserve(32_000, needed) <= self.reserve(32_000, None)

    def test_a_window_for_the_input_alone_needs_nothing_more(self):
        beside = Window(60_000, "model_info", holds_output=False)
        assert self.reserve(32_000, 16_384, beside) == self.reserve(32_000, None, beside)


def test_what_no_compaction_makes_smaller_is_set_aside_before_the_target():
    policy = Policy(keep_recent_tokens=0, target_fraction=0.5)
    assert target_tokens_of(40_000, policy) == 20_000
    assert target_tokens_of(40_000, policy, 30_000) == 35_000
    assert target_tokens_of(40_000, policy, 50_000) == 40_000


def test_a_policy_that_states_no_target_leaves_it_to_what_compactions_cost():
    assert target_tokens_of(40_000, POLICY) is None


def test_an_output_beside_the_window_needs_no_reserve_in_it():
    assert reserve_tokens_of(Window(1_000_000, "model_map", holds_output=False), POLICY, ReservedOutput(65_000)) == 16_384


@pytest.mark.parametrize(
    ("model", "expected"),
    [("gemini/gemini-2.5-pro", False), ("openai/gpt-5-mini", False), ("gpt-4o", True), ("claude", True)],
)
def test_windows_for_the_input_alone_are_told_apart(model, expected):
    assert holds_output(model, POLICY) is expected
    assert holds_output(model, Policy(window_holds_output=not expected)) is not expected


@given(
    window=st.integers(0, 2_000_000),
    output=st.one_of(st.none(), st.integers(1, 3_000_000)),
    kind=st.sampled_from(["fixed", "scaled", "dynamic"]),
)
def test_a_budget_is_never_negative_nor_above_the_window(window, output, kind):
    policy = Policy(reserve=kind, target_fraction=0.5)
    budget = budget_tokens_of(Window(window, "policy"), policy, ReservedOutput(output), 500)
    assert min(4_096, window) <= budget <= window
    assert 0 <= target_tokens_of(budget, policy) <= budget
