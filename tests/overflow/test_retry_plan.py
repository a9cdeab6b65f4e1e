"""The retry plan: bounded, each attempt smaller than what was refused, and the remedy that fits what the provider said."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctx_hooks.overflow.figures import figures_of
from ctx_hooks.overflow.recognise import Overflow
from ctx_hooks.overflow.retry_plan import (
    LEAST_OUTPUT_TOKENS,
    limit_for_retry,
    lower_output,
    smaller_than,
    unseen_tokens,
)

tokens = st.integers(1_000, 2_000_000)


@given(sent=tokens)
def test_each_attempt_is_at_least_five_percent_smaller_than_the_one_before(sent):
    assert smaller_than(sent) <= sent * 0.95


@given(sent=tokens, number=st.integers(1, 2))
def test_without_figures_the_limit_is_guessed_smaller_at_each_retry(sent, number):
    guess = limit_for_retry(Overflow("input", "x"), sent, number)
    assert 0 < limit_for_retry(Overflow("input", "x"), guess, number + 1) < guess < sent


def test_a_limit_and_a_count_are_taken_at_their_word():
    assert limit_for_retry(Overflow("input", "x", 64_000, 131_000), 100_000, 1) == 64_000


@given(limit=tokens, refused=tokens)
def test_a_limit_without_a_count_is_not_filled_to_the_brim_and_less_at_each_retry(limit, refused):
    for number in (1, 2, 3):
        lower = limit_for_retry(Overflow("input", "x", limit), refused, number)
        assert min(limit, refused) > lower > 0
        refused = lower


def test_an_output_that_asks_too_much_is_lowered_to_what_is_left():
    overflow = Overflow("input_plus_output", "x", 200_000, 143_653, 64_000)
    lowered = lower_output(overflow, 64_000)
    assert LEAST_OUTPUT_TOKENS <= lowered <= 200_000 - 143_653


@given(limit=tokens, counted=tokens, asked=st.none() | tokens)
def test_a_lowered_output_is_less_than_was_asked_and_fits_beside_the_input(limit, counted, asked):
    lowered = lower_output(Overflow("input_plus_output", "x", limit, counted), asked)
    if lowered is not None:
        assert LEAST_OUTPUT_TOKENS <= lowered < (asked or limit)
        assert counted + lowered < limit


@pytest.mark.parametrize("asked", [None, 64_000])
@pytest.mark.parametrize("overflow", [
    *(Overflow(kind, "x", None, 10_000) for kind in ("input", "input_plus_output", "output_limit")),
    Overflow("input_plus_output", "x", 200_000), Overflow("input", "x", 200_000, 10_000),
    Overflow("input_plus_output", "x", 200_000, 199_900, 64_000),
    Overflow("input_plus_output", "x", 200_000, 136_001, 64_000, at_least=True),
], ids=[*3 * ["no limit"], "no count", "the input by itself", "no room for an answer", "a lower bound"])  # fmt: skip
def test_where_a_shorter_answer_is_no_remedy_no_output_is_guessed(overflow, asked):
    assert lower_output(overflow, asked) is None


@pytest.mark.parametrize(("named", "asked", "lowered"), [
    (64_000, 64_000, 8_192), (64_000, None, 8_192), (None, 64_000, 8_192), (None, None, 8_192), (64_000, 8_000, 8_192),
    (8_192, 64_000, None), (None, 8_192, None),
], ids=str)  # fmt: skip
def test_an_output_above_the_models_own_cap_is_lowered_to_it(named, asked, lowered):
    """What the error says was asked is what was asked: LiteLLM may have asked for more than the caller."""
    assert lower_output(Overflow("output_limit", "x", limit_tokens=8_192, requested_output_tokens=named), asked) == lowered


@pytest.mark.parametrize(("counted", "unseen"), [(130_000, 30_000), (70_000, -30_000), (101_000, 0), (None, 0)])
def test_what_the_provider_counts_beyond_an_estimates_error_is_what_only_it_sees(counted, unseen):
    assert unseen_tokens(Overflow("input", "x", 64_000, counted), 100_000) == unseen
    assert unseen_tokens(Overflow("input", "x", 64_000, counted, at_least=True), 100_000) == 0


def test_an_input_that_fits_with_its_output_is_not_what_was_refused():
    text = "the maximum context length is 8192 tokens, the prompt has {} tokens, max_tokens is 1024"
    assert [figures_of(text.format(n)) for n in (7_168, 7_169)] == [(8_192, None, 1_024), (8_192, 7_169, 1_024)]
