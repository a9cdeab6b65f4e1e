"""The retry plan: bounded, each attempt smaller than what was refused, and the remedy that fits what the provider said."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ctx_hooks.overflow.recognise import Overflow
from ctx_hooks.overflow.retry_plan import LEAST_OUTPUT_TOKENS, limit_for_retry, lower_output, plan_of

tokens = st.integers(1_000, 2_000_000)


@given(sent=tokens, number=st.integers(1, 3))
def test_each_attempt_is_at_least_five_percent_smaller_than_the_one_before(sent, number):
    assert plan_of(number, 3, sent).most_tokens <= sent * 0.95


@given(sent=tokens, number=st.integers(1, 2))
def test_without_figures_the_limit_is_guessed_smaller_at_each_retry(sent, number):
    guesses = [limit_for_retry(Overflow("input", "x"), sent, sent, n) for n in (number, number + 1)]
    assert 0 < guesses[1] < guesses[0] < sent


def test_a_limit_and_a_count_are_taken_at_their_word():
    assert limit_for_retry(Overflow("input", "x", 64_000, 131_000), 100_000, 100_000, 1) == 64_000


def test_a_limit_without_a_count_is_not_filled_to_the_brim():
    assert limit_for_retry(Overflow("input", "x", 64_000), 100_000, 100_000, 1) < 64_000


def test_an_output_that_asks_too_much_is_lowered_to_what_is_left():
    overflow = Overflow("input_plus_output", "x", 200_000, 143_653, 64_000)
    lowered = lower_output(overflow, 64_000)
    assert LEAST_OUTPUT_TOKENS <= lowered <= 200_000 - 143_653
    plan = plan_of(1, 3, 110_000, lowered)
    assert (plan.max_output_tokens, plan.most_tokens) == (lowered, 110_000), "the conversation stays whole"


def test_an_output_above_the_models_own_cap_is_lowered_to_it():
    assert lower_output(Overflow("output_limit", "x", limit_tokens=8_192, requested_output_tokens=64_000), 64_000) == 8_192


def test_an_input_that_leaves_no_room_for_an_answer_is_compressed_instead():
    assert lower_output(Overflow("input_plus_output", "x", 200_000, 199_900, 64_000), 64_000) is None


def test_only_the_last_retry_cuts_the_newest_results():
    assert [plan_of(n, 3, 10_000).cut_newest for n in (1, 2, 3)] == [False, False, True]
