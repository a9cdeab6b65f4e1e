"""What an attempt may have follows what its deployment has shown to its tenant, and stays within its window."""

from dataclasses import replace

import pytest
from engine_requests import NOW, attempted, session, stats_of, to
from hypothesis import given
from hypothesis import strategies as st

from ctx_hooks.attempts.attempt import ANSWER_FRACTION, Limits, attempt_at, limits_of, sent_unchanged, with_counts
from ctx_hooks.attempts.observations import DAY_SECONDS, DeploymentStats
from ctx_hooks.attempts.request import counted_history
from ctx_hooks.overflow.recognise import Overflow
from ctx_hooks.overflow.retry_plan import BLIND_FRACTION, LEAST_OUTPUT_TOKENS, NO_BOUND, limit_for_retry
from ctx_hooks.policy.settings import Policy
from ctx_hooks.tokens.budget import Window
from ctx_hooks.tokens.counter import Counter, vocabulary_of
from ctx_hooks.tokens.units import ESTIMATE_ERROR_FRACTION

REQUEST = session(turns=2, max_tokens=2_000)
HISTORY = counted_history(REQUEST, Counter(vocabulary_of("gpt-4o")))
windows = st.integers(5_000, 2_000_000)
factors = st.floats(0.5, 2.5)
sizes = st.integers(1, 2_500_000)


def limits(window, factor=1.0, *, holds_output=True, source="model_info", **fields):
    return Limits(Window(window, source, holds_output), factor, **fields)


@given(windows, windows, factors, st.booleans())
def test_larger_window_never_has_smaller_budget(one, other, factor, holds_output):
    small, large = (limits(tokens, factor, holds_output=holds_output) for tokens in sorted((one, other)))
    for budget_of in (
        lambda known: known.budget_tokens(Policy(reserve="8%"), REQUEST, HISTORY),
        lambda known: known.uncounted_budget_tokens(Policy(reserve="8%"), 1_000),
        Limits.window_less_error,
    ):
        assert budget_of(small) <= budget_of(large)


@given(windows, factors, st.booleans())
def test_no_budget_exceeds_the_window(window, factor, holds_output):
    known = limits(window, factor, holds_output=holds_output)
    usable = window * (1 - ANSWER_FRACTION if holds_output else 1)
    assert known.window_less_error() * factor * (1 + ESTIMATE_ERROR_FRACTION) <= usable + 3
    assert known.window_less_error() * factor * (1 + ESTIMATE_ERROR_FRACTION) >= usable - 5
    assert known.budget_tokens(Policy(), REQUEST, HISTORY) * factor <= window
    for target in (replace(to(window), **{name: True}) for name in ("waits", "defers", "checked")):
        assert known.most_tokens(target, REQUEST, HISTORY) * factor <= window


@given(windows, factors)
def test_waiting_raises_and_checking_lowers_what_stays_whole(window, factor):
    known, target = limits(window, factor), to(window)
    budget, most = known.budget_tokens(target.policy, REQUEST, HISTORY), known.window_less_error()
    found = {
        name: known.most_tokens(replace(target, **{name: True}), REQUEST, HISTORY) for name in ("waits", "defers", "checked")
    }
    assert found == {"waits": max(budget, most), "defers": max(budget, most), "checked": min(budget, most)}
    assert known.most_tokens(target, REQUEST, HISTORY) == budget
    unknown = limits(window, factor, source="default")
    assert unknown.most_tokens(replace(target, defers=True), REQUEST, HISTORY) == NO_BOUND


@pytest.mark.parametrize(("mean", "reserve"), [(1_000, 8_192), (1_100, 16_384), (2_100, 32_768)])
def test_dynamic_reserve_follows_newest_messages(mean, reserve):
    dialogue = [{"role": "user", "content": "word " * (mean - 6 if n >= 10 else 1)} for n in range(20)]
    history = counted_history(REQUEST.with_fields({"messages": dialogue}), Counter(vocabulary_of("gpt-4o")))
    request = REQUEST.with_fields({"messages": dialogue})
    assert limits(200_000).budget_tokens(Policy(reserve="dynamic"), request, history) == 200_000 - reserve


@given(windows, sizes, st.none() | sizes, st.none() | st.integers(1, 100_000), st.booleans())
def test_allowed_output_fits_beside_the_input(window, asked, given_tokens, cap, holds_output):
    known = limits(window, holds_output=holds_output, output_limit_tokens=cap)
    allowed = known.allowed_output_tokens(asked, given_tokens)
    capped = min(asked, cap) if cap is not None and cap >= LEAST_OUTPUT_TOKENS else asked
    room = window - (given_tokens or 0)
    assert min(asked, LEAST_OUTPUT_TOKENS) <= allowed <= capped
    if given_tokens is None or not holds_output or room >= capped or room < LEAST_OUTPUT_TOKENS:
        assert allowed == capped
    else:
        assert allowed == max(LEAST_OUTPUT_TOKENS, window - int(given_tokens * (1 + ESTIMATE_ERROR_FRACTION)))


@given(windows, factors, st.none() | st.integers(1, 4_000))
def test_uncounted_request_leaves_its_output_room(window, factor, asked):
    budget = limits(window, factor).uncounted_budget_tokens(Policy(), asked)
    assert budget * factor + (asked or 0) <= window
    only_input = limits(window, factor, holds_output=False)
    assert only_input.uncounted_budget_tokens(Policy(), asked) == only_input.uncounted_budget_tokens(Policy(), None)


SHOWN = stats_of(
    ("limit", "ann", 20_000, 0, 1),
    ("output_limit", "ann", 4_096),
    ("ratios", "ann", 1.5, 1.5),
    ("other_ratios", "ann", 3.0, 3.0),
)


def test_observations_apply_to_their_tenant_for_their_time():
    found = limits_of(to(100_000), SHOWN, NOW)
    assert (found.window.tokens, found.window.source, found.output_limit_tokens) == (20_000, "learned", 4_096)
    assert (found.factor, round(found.other_weight, 1)) == (1.5, 2.0)
    other = limits_of(replace(to(100_000), tenant="bob"), SHOWN, NOW)
    assert (other.window.tokens, other.output_limit_tokens, other.factor) == (50_000, None, 1.0)
    later = limits_of(to(100_000), SHOWN, NOW + DAY_SECONDS)
    assert (later.window, later.output_limit_tokens, later.factor) == (to(100_000).window, None, 1.5)
    assert limits_of(to(100_000), SHOWN, NOW + 8 * DAY_SECONDS) == Limits(to(100_000).window)


@given(windows, st.integers(1_000, 2_000_000))
def test_learned_limit_only_lowers_a_window(window, limit):
    found = limits_of(to(window), stats_of(("limit", "ann", limit, 0, 1)), NOW).window
    assert found == (Window(limit, "learned") if limit < window else to(window).window)


kinds = st.sampled_from(["input", "input_plus_output", "output_limit", "bytes"])


@given(windows, st.integers(1_000, 400_000), kinds, st.none() | st.integers(1_000, 400_000), st.integers(1, 3), factors)
def test_retry_window_follows_the_refusal(window, sent, kind, named, number, factor):
    refused = attempted(window, sent, deployment=to(window).deployment, overflow=Overflow(kind, "x", named), failed=True)
    stats = stats_of(("ratios", "ann", factor, factor))
    found = limits_of(to(window, attempt=number), stats, NOW, refused)
    tokens = int(sent * factor)
    expected = limit_for_retry(refused.overflow, tokens, number)
    is_lower = kind.startswith("input") and expected < window
    assert found.window == (Window(expected, "refusal") if is_lower else to(window).window)
    assert found.previous == refused
    elsewhere = replace(refused, to=replace(refused.to, deployment="other"))
    assert limits_of(to(window, attempt=number), stats, NOW, elsewhere).window == to(window).window
    assert limits_of(to(window), stats, NOW, replace(refused, sent_tokens=None)).window == to(window).window


def test_retry_leaves_room_for_what_only_the_provider_sees():
    overflow = Overflow("input", "x", 60_000, 70_000)
    refused = attempted(100_000, 40_000, deployment=to().deployment, overflow=overflow, failed=True)
    window = limits_of(to(100_000, attempt=1), DeploymentStats(), NOW, refused).window
    assert window == Window(30_000, "refusal")
    stored = replace(refused, stored=True)
    assert limits_of(to(100_000, attempt=1), DeploymentStats(), NOW, stored).window == Window(60_000, "refusal")
    all_hidden = replace(refused, overflow=replace(overflow, input_tokens=170_000))
    assert limits_of(to(100_000, attempt=1), DeploymentStats(), NOW, all_hidden).window.tokens == 0


@pytest.mark.parametrize(("sent", "number", "tokens"), [
    (80_000, 1, 50_000), (40_000, 1, 24_000), (50_000, 1, 50_000), (50_000, 2, 50_000 * BLIND_FRACTION),
], ids=["above it", "below it", "an accepted size is as large", "refused again"])  # fmt: skip
def test_first_retry_keeps_a_learned_limit(sent, number, tokens):
    learned = stats_of(("limit", "ann", 50_000, 80_000, 1))
    refused = attempted(100_000, sent, deployment=to().deployment, overflow=Overflow("input", "x"), failed=True)
    assert limits_of(to(100_000, attempt=number), learned, NOW, refused).window.tokens == tokens


@given(st.integers(1, 10**6), st.integers(0, 10**5), st.floats(1, 3), st.floats(1, 3))
def test_weighing_again_changes_only_other_scripts(sent, other, before, after):
    attempt = attempted(200_000, sent + 3 * other, other_tokens=other).weighed(before)
    start = replace(attempt, sent_tokens=sent + int(other * before))
    found = start.weighed(after)
    assert found.limits.other_weight == after
    assert found.latin_tokens == pytest.approx(start.latin_tokens, abs=2)
    uncounted = replace(start, sent_tokens=None).weighed(after)
    assert (uncounted.sent_tokens, uncounted.limits.other_weight) == (None, after)


def test_attempt_states_what_was_counted():
    target, known = to(), limits(200_000, 1.5)
    uncounted = attempt_at(REQUEST, target, known, most_tokens=77)
    assert (uncounted.sent_tokens, uncounted.most_tokens, uncounted.output_tokens) == (None, 77, 2_000)
    assert (uncounted.sent_provider_tokens, uncounted.received_provider_tokens, uncounted.latin_tokens) == (0, 0, 0)
    counted = attempt_at(REQUEST, target, known, HISTORY)
    assert counted == with_counts(replace(uncounted, most_tokens=0), REQUEST, HISTORY)
    assert (counted.sent_tokens, counted.received_tokens) == (HISTORY.tokens, HISTORY.tokens)
    assert counted.sent_provider_tokens == counted.received_provider_tokens == int(HISTORY.tokens * 1.5)
    assert counted.guessed_tokens == sum(message.guessed_tokens for message in HISTORY.index)
    shorter = replace(counted, sent_tokens=9, output_tokens=8, lowered=True, truncates=True)
    assert (counted.is_shortened, shorter.is_shortened) == (False, True)
    assert sent_unchanged(REQUEST, shorter) == replace(counted, decided_tokens=9)


def test_reasoning_is_wanted_by_model_or_by_refusal():
    wanted = stats_of(("wants_reasoning", "ann", 1))
    assert limits_of(to(), wanted, NOW).wants_reasoning
    assert not limits_of(to(), DeploymentStats(), NOW).wants_reasoning
    assert limits_of(to(model="deepseek/deepseek-v4"), DeploymentStats(), NOW).wants_reasoning
