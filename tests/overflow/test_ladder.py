"""The ladder: bounded, each rung smaller than what was refused, exact where the provider gave figures."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ctx_hooks.overflow.ladder import rung_of
from ctx_hooks.overflow.recognise import Overflow
from ctx_hooks.store.attempts import Attempt

tokens = st.integers(1_000, 2_000_000)


@given(sent=tokens, limit=tokens, counted=tokens, number=st.integers(1, 3), known=st.booleans())
def test_each_attempt_is_at_least_five_percent_smaller_than_the_one_before(sent, limit, counted, number, known):
    overflow = Overflow("input", "x", limit, counted) if known else None
    rung = rung_of(number, 3, budget_tokens=sent, attempt=Attempt(sent, sent, limit, overflow), reserve_tokens=16_384)
    assert 1 <= rung.goal_tokens <= sent * 0.95


def test_with_the_providers_figures_the_first_goal_is_exact():
    """A provider that counts 1.31 tokens for one of ours gets its limit less the reserve, in our tokens."""
    attempt = Attempt(100_000, 100_000, 200_000, Overflow("input", "x", limit_tokens=64_000, input_tokens=131_000))
    goal = rung_of(1, 3, budget_tokens=180_000, attempt=attempt, reserve_tokens=8_000).goal_tokens
    assert 0.9 * 56_000 <= goal * 1.31 <= 56_000


def test_only_the_last_rung_cuts_the_newest_results():
    assert [rung_of(n, 3, 10_000, None, 0).cut_newest for n in (1, 2, 3)] == [False, False, True]
