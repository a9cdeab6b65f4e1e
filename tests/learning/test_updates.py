"""What one refusal or answer shows, and what it does not."""

from dataclasses import replace

import pytest
from engine_requests import attempted
from hypothesis import assume, given
from hypothesis import strategies as st

from ctx_hooks.learning import updates
from ctx_hooks.learning.attempts import Known, known_of
from ctx_hooks.learning.stats import ANYONE, DeploymentStats, Observation
from ctx_hooks.overflow.recognise import Overflow, recognise_overflow, too_large_for_rate
from ctx_hooks.request.sizes import Uncounted
from ctx_hooks.tokens.budget import Window
from ctx_hooks.tokens.usage import Billed

NOW = 1_000_000_000.0
NOTHING = DeploymentStats()
COUNTED = attempted(200_000, 50_000, output_tokens=8_000)
UNSEEN = Uncounted(holds_any=True)
UNCOUNTED = replace(COUNTED, received_tokens=None, sent_tokens=None, most_tokens=80_000)


def values(shown):
    return {kind: o.values for (kind, _), o in shown.items()}


def truncation(stats, attempt, billed):
    return updates.truncation(updates.of_answer(stats, attempt, billed, NOW), attempt, billed)


def after(*answers, attempt=COUNTED, stats=NOTHING):
    """Return the statistics after answers, each of what was sent and what was billed for it."""
    for n, (sent, billed) in enumerate(answers):
        tried = replace(attempt, sent_tokens=sent, received_tokens=sent)
        stats = stats.merged(updates.of_answer(stats, tried, billed, NOW + n), NOW + n)
    return stats


def test_an_answer_shows_the_ratio_and_what_was_accepted():
    shown = updates.of_answer(NOTHING, COUNTED, 60_000, NOW)
    assert values(shown)["ratios"][1:] == (1.2,)
    assert shown["accepted_input", ANYONE].values == (60_000,)
    assert shown["accepted_output", ANYONE].values == (8_000,)


def test_a_low_bill_for_an_uncounted_request_has_the_next_one_counted():
    stats = NOTHING.merged(updates.of_answer(NOTHING, UNCOUNTED, 4_000, NOW), NOW)
    assert "low_bill" in stats.seen_by("ann", NOW).own
    assert "low_bill" not in stats.seen_by("bob", NOW).own


@pytest.mark.parametrize(("sent", "billed", "counts"), [
    (50_000, 50_000, False), (4_050, 4_050, True), (2_000, 2_000, True), (50_000, 4_000, True), (50_000, 20_000, True),
], ids=["a larger one", "one as large", "a smaller one", "another odd one", "another odd one, larger"])  # fmt: skip
def test_a_larger_bill_that_is_right_ends_the_counting(sent, billed, counts):
    """An image as base64 has many bytes and few tokens: nothing was cut, and no hour of requests is counted for it."""
    odd = NOTHING.merged(updates.of_answer(NOTHING, UNCOUNTED, 4_000, NOW - 1), NOW - 1)
    stats = after((sent, billed), stats=odd)
    assert known_of(COUNTED.to, stats, NOW + 1).counts is counts
    again = stats.merged(updates.of_answer(stats, UNCOUNTED, 4_000, NOW + 2), NOW + 2)
    assert known_of(COUNTED.to, again, NOW + 2).counts


@pytest.mark.parametrize(("answers", "factor"), [
    ([(50_000, 20_000)], 1.0), ([(50_000, 26_000), (60_000, 31_200), (70_000, 36_400)], 0.52),
], ids=["one alone says nothing", "a better vocabulary"])  # fmt: skip
def test_a_low_bill_is_no_truncation_and_a_ratio_where_bills_grow_with_the_requests(answers, factor):
    """A vocabulary made for the language bills a third of what an old one counts."""
    stats = after(*answers)
    assert stats.seen_by("ann", NOW).limit_tokens(200_000, 0.5) is None
    assert stats.seen_by("ann", NOW).factor("model") == pytest.approx(factor, rel=0.05)


def test_a_bill_that_stands_still_while_requests_grow_shows_a_limit_to_that_tenant():
    grown = replace(COUNTED, sent_tokens=60_000)
    stats = after((50_000, 4_096))
    event = truncation(stats, grown, 4_096)
    assert event is not None
    assert (event.sent_tokens, event.read_tokens, event.window_tokens) == (60_000, 4_096, 200_000)
    stats = stats.merged(updates.of_answer(stats, grown, 4_096, NOW), NOW)
    assert stats.seen_by("ann", NOW).limit_tokens(200_000, 0.5) == 4_096
    assert stats.seen_by("bob", NOW).limit_tokens(200_000, 0.5) == 100_000


def test_what_is_mostly_guessed_shows_neither_a_limit_nor_a_ratio():
    """A scanned document of five megabytes may be billed at a tenth of what its size suggests."""
    document = replace(COUNTED, guessed_tokens=48_000)
    shown = updates.of_answer(NOTHING, document, 6_000, NOW)
    assert {kind for kind, _ in shown} == {"accepted_input", "accepted_output"}
    assert updates.of_refusal(NOTHING, document, Overflow("input", "x"), NOW) == {}


@pytest.mark.parametrize(("before", "now"), [
    ((50_000, 20_000), {"sent_tokens": 50_000}), ((50_000, 20_000), {"sent_tokens": 60_000, "guessed_tokens": 30_000}),
    ((50_000, 20_000), {"sent_tokens": 55_000}), ((0, 20_000), {"sent_tokens": 60_000}),
], ids=["the request has not grown", "it has hardly grown", "what grew is a guess",
        "the first was not counted"])  # fmt: skip
def test_a_bill_that_stands_still_for_another_reason_shows_no_limit(before, now):
    stats = NOTHING.merged({("low_bill", "ann"): Observation(tuple(map(float, before)), NOW)}, NOW)
    assert truncation(stats, replace(COUNTED, **now), 20_000) is None


@pytest.mark.parametrize("billed", [1_000, 20_000])
def test_a_usual_bill_or_one_too_small_to_judge_has_nothing_counted(billed):
    assert "low_bill" not in values(updates.of_answer(NOTHING, UNCOUNTED, billed, NOW))


@pytest.mark.parametrize("hidden", [{"uncounted": UNSEEN}, {"guessed_tokens": 20_000}, {"sent_tokens": None}], ids=str)
def test_a_bill_for_what_was_not_counted_shows_no_ratio(hidden):
    assert "ratios" not in values(updates.of_answer(NOTHING, replace(COUNTED, **hidden), 60_000, NOW))


def test_a_bill_is_low_beside_what_the_provider_bills_per_token():
    shown = values(updates.of_answer(NOTHING, attempted(200_000, 50_000, output_tokens=8_000, factor=2.0), 50_000, NOW))
    assert shown["low_bill"] == (100_000, 50_000)


def test_a_bill_of_another_conversation_leaves_the_ratio_and_its_age():
    assert "ratios" not in values(updates.of_answer(after((50_000, 60_000)), COUNTED, 250_000, NOW + 9))


def test_more_input_than_the_window_is_told_of():
    assert truncation(NOTHING, COUNTED, 210_000) is not None
    assert truncation(NOTHING, COUNTED, 49_000) is None
    learned = replace(COUNTED, known=Known(Window(45_000, "learned")))
    assert truncation(NOTHING, learned, 50_000) is None, "a learned limit may have been too small"


NAMED = Overflow("input", "x", 60_000)
BOTH = Overflow("input_plus_output", "x")
LARGER = replace(COUNTED, sent_tokens=60_000, output_tokens=10_000)
SEARCHED = replace(COUNTED, uncounted=Uncounted(holds_any=True, holds_hosted=True))
OUTPUT = "max_tokens is too large: 20000. This model supports at most 4096 completion tokens, whereas you provided 20000."


@pytest.mark.parametrize(("attempt", "overflow", "expected"), [
    (COUNTED, Overflow("input", "x", 60_000, 61_004), {"limit": (60_000,), "ratios": (1.2167, 1.2201)}),
    (COUNTED, recognise_overflow(OUTPUT, status=400), {"output_limit": (4_096,)}),
    (COUNTED, too_large_for_rate("Request too large (TPM): Limit 20000, Requested 50000"), {"own_limit": (20_000,)}),
    (COUNTED, NAMED, {"limit": (60_000,), "refused": (46_340, 0, 0.86)}),
    (replace(COUNTED, sent_tokens=61_000), NAMED, {"limit": (60_000,)}),
    (LARGER, Overflow("input", "x"), {"refused": (55_108, 0, 0.65)}),
    (LARGER, BOTH, {"refused": (65_536, 0, 0.64)}),
    (replace(LARGER, output_tokens=None), BOTH, {"refused": (55_108, 0, 0.65)}),
    (SEARCHED, Overflow("input", "x"), {"refused": (46_340, 0, 0.65)}), (SEARCHED, Overflow("input", "x", 40_000), {}),
], ids=["its limit and its count", "a cap of the output and no window", "a rate limit that one request is above",
        "what was sent too where the local count is within the limit", "no size above it", "the size, rounded down",
        "the sum where the output counts too", "no output that was not asked for", "the size beside calls of hosted tools",
        "no limit beside these"])  # fmt: skip
def test_a_refusal_shows(attempt, overflow, expected):
    shown = values(updates.of_refusal(NOTHING, attempt, overflow, NOW))
    assert shown.keys() == expected.keys()
    assert all(shown[kind] == pytest.approx(expected[kind], rel=0.01) for kind in expected)


def test_a_size_in_other_scripts_that_was_refused_before_their_ratio_was_known_is_counted_anew_by_it():
    """Else English requests keep for a day to a limit that is too small by the ratio."""
    japanese = replace(COUNTED, sent_tokens=33_000, received_tokens=33_000, other_tokens=32_000)
    stats = NOTHING.merged(updates.of_refusal(NOTHING, japanese, Overflow("input", "x"), NOW), NOW)
    before = stats.seen_by("ann", NOW).limit_tokens(200_000, 0.05)
    smaller = replace(japanese, sent_tokens=17_000, other_tokens=16_000)
    stats = stats.merged(updates.of_answer(stats, smaller, 33_000, NOW + 1), NOW + 1)
    for tenant in ("ann", "bob"):
        assert stats.seen_by(tenant, NOW + 1).limit_tokens(200_000, 0.05) == pytest.approx(2 * before, rel=0.04)
    weighed = japanese.weighed(stats.seen_by("ann", NOW + 1).other_weight("model"))
    stats = stats.merged(updates.of_refusal(stats, weighed, Overflow("input", "x"), NOW + 2), NOW + 2)
    assert stats.seen_by("ann", NOW + 2).limit_tokens(200_000, 0.05) == pytest.approx(2 * before, rel=0.1), "once, not twice"


@pytest.mark.parametrize("refused", [(0, 0, 0), (1e9, 1e9, 0), (2_000, 1e9, 1e9), (50_000,), (50_000, 9)], ids=str)
def test_what_somebody_has_written_of_a_refused_size_is_survived(refused):
    shown = {"refused": refused, "other_ratios": (2.0, 2.0)}
    stats = NOTHING.merged({(kind, "ann"): Observation(values, NOW) for kind, values in shown.items()}, NOW)
    assert stats.seen_by("ann", NOW).limit_tokens(200_000, 0.5) >= 1_000
    assert stats.seen_by("bob", NOW).limit_tokens(200_000, 0.5) >= 100_000


@pytest.mark.parametrize(("other", "kind"), [(9_500, "ratios"), (10_000, "other_ratios")])
def test_an_answer_shows_the_ratio_of_other_scripts_where_these_are_a_fifth(other, kind):
    shown = values(updates.of_answer(NOTHING, replace(COUNTED, other_tokens=other), 60_000, NOW))
    assert {"ratios", "other_ratios"} & shown.keys() == {kind}


@pytest.mark.parametrize(
    ("other", "counted", "kind"),
    [(2_400, 60_000, "ratios"), (2_500, 60_000, "other_ratios"), (2_500, 52_000, "ratios")],
    ids=["less than a twentieth", "a twentieth", "a twentieth of what has as many tokens as expected"],
)
def test_a_refusal_shows_it_where_these_are_a_twentieth_of_more_tokens_than_expected(other, counted, kind):
    shown = values(
        updates.of_refusal(NOTHING, replace(COUNTED, other_tokens=other), Overflow("input", "x", 40_000, counted), NOW)
    )
    assert {"ratios", "other_ratios"} & shown.keys() == {kind}


@pytest.mark.parametrize(("overflow", "attempt"), [
    (Overflow("input", "x", 1, 50_000), COUNTED), (Overflow("input", "x", 40_000, 2_000_000), COUNTED),
    (Overflow("input", "x", 4_000_000), COUNTED), (Overflow("input", "x", 40_000), replace(COUNTED, uncounted=UNSEEN)),
    (Overflow("input", "x"), replace(COUNTED, uncounted=UNSEEN)), (Overflow("input", "x", 40_000, 50_000), UNCOUNTED),
    (Overflow("input", "rate_too_large", 600), COUNTED),
], ids=["one token", "another count", "above the request", "stored history", "guess", "not counted", "rate"])  # fmt: skip
def test_what_is_not_plausible_beside_our_count_shows_no_limit(overflow, attempt):
    shown = updates.of_refusal(NOTHING, attempt, overflow, NOW)
    assert not {"limit", "own_limit", "refused"} & {kind for kind, _ in shown}


@pytest.mark.parametrize("window_tokens", [4_096, 8_192, 32_768, 131_072, 1_048_576])
def test_a_window_that_is_a_power_of_two_is_found_from_what_is_refused_just_above_it(window_tokens):
    accepted = NOTHING.merged({("accepted_input", ANYONE): Observation((window_tokens - 99.0,), NOW)}, NOW)
    for sent in (window_tokens, window_tokens + 1, int(window_tokens * 1.09)):
        attempt = replace(COUNTED, sent_tokens=sent)
        stats = accepted.merged(updates.of_refusal(accepted, attempt, Overflow("input", "x"), NOW), NOW)
        assert stats.seen_by("ann", NOW).limit_tokens(2_000_000, 0.5) == window_tokens


def test_where_not_all_was_counted_a_named_limit_holds_for_the_tenant_alone():
    hidden = replace(COUNTED, uncounted=UNSEEN)
    shown = updates.of_refusal(NOTHING, hidden, Overflow("input", "x", 40_000, 70_000), NOW)
    assert values(shown) == {"own_limit": (40_000,)}
    stats = NOTHING.merged(shown, NOW)
    assert stats.seen_by("ann", NOW).limit_tokens(200_000, 0.5) == 40_000
    assert stats.seen_by("bob", NOW).limit_tokens(200_000, 0.5) is None
    for limit, sent in ((70_000, 40_000), (999, 70_000)):
        assert not updates.of_refusal(NOTHING, hidden, Overflow("input", "x", limit, sent), NOW), (
            "no limit is above its input"
        )


@pytest.mark.parametrize(("attempt", "billed"), [
    (replace(COUNTED, uncounted=UNSEEN), 120_000), (COUNTED, 400_000), (COUNTED, 190_000),
    (attempted(40_000, 50_000, output_tokens=8_000), 50_000), (UNCOUNTED, 120_000),
], ids=["with content of the provider's",
        "above the window", "far above the count", "window", "above the bound"])  # fmt: skip
def test_what_was_not_counted_whole_shows_nobody_what_is_accepted(attempt, billed):
    """A search that the provider runs is billed, and was never in the window: others keep the limit that they were told."""
    refused = updates.of_refusal(
        NOTHING, replace(COUNTED, to=replace(COUNTED.to, tenant="bob")), Overflow("input", "x", 40_000, 60_000), NOW
    )
    stats = NOTHING.merged(refused, NOW)
    stats = stats.merged(updates.of_answer(stats, attempt, billed, NOW + 1), NOW + 1)
    assert stats.seen_by("bob", NOW + 2).limit_tokens(200_000, 0.5) == 40_000
    assert not any(kind.startswith("accepted") for kind, _ in stats.observations)


def test_a_count_without_the_reasoning_only_raises_the_ratio():
    """It fills the window and is not billed: with the ratio of its bill the next request would exceed the window."""
    sealed = replace(COUNTED, guessed_tokens=9_000, uncounted=Uncounted(holds_unbilled=True))
    assert "ratios" not in values(updates.of_answer(NOTHING, sealed, 41_000, NOW))
    refused = values(updates.of_refusal(NOTHING, sealed, Overflow("input", "x", 40_000, 41_000), NOW))
    assert "ratios" not in refused
    assert refused["limit"] == (40_000,)
    assert values(updates.of_answer(NOTHING, sealed, 56_000, NOW))["ratios"][1:] == (1.12,)
    assert values(updates.of_refusal(NOTHING, sealed, Overflow("input", "x", 40_000, 56_000), NOW))["ratios"][1:] == (1.12,)


FAR_BELOW = Overflow("input", "x", 12_000, 50_000)


def believed(stats, attempt=COUNTED, overflow=FAR_BELOW, now=NOW):
    return stats.merged(updates.believed_of_refusal(stats, attempt, overflow, now), now)


def limit_of(stats, tenant="ann"):
    return stats.seen_by(tenant, NOW + 9).limit_tokens(200_000, 0.5)


@pytest.mark.parametrize("overflow", [FAR_BELOW, Overflow("input", "x"), Overflow("input", "x", 12_000)], ids=str)
def test_one_refusal_far_below_window_sets_no_limit(overflow):
    attempt = replace(COUNTED, sent_tokens=50_000 if overflow.limit_tokens else 20_000)
    once = believed(NOTHING, attempt, overflow)
    assert limit_of(once) is None
    retry = replace(attempt, to=replace(attempt.to, attempt=1))
    assert limit_of(believed(once, retry, overflow, NOW + 1)) is None, "a retry is no second request"
    assert limit_of(believed(once, attempt, overflow, NOW + 1)) is not None


def test_second_refusal_for_lower_limit_shows_none():
    stats = believed(believed(NOTHING), overflow=Overflow("input", "x", 1_200, 50_000), now=NOW + 1)
    assert limit_of(stats) is None
    assert limit_of(believed(stats, now=NOW + 2)) == 12_000


def test_answered_retry_shows_claimed_limit():
    stats = believed(NOTHING)
    refused = replace(COUNTED, overflow=FAR_BELOW, failed=True)
    retry = replace(COUNTED, to=replace(COUNTED.to, attempt=1), known=replace(COUNTED.known, previous=refused))
    elsewhere = replace(retry, to=replace(retry.to, deployment="another"))
    assert updates.of_answered_retry(stats, elsewhere, NOW + 1) == {}
    shown = updates.of_answered_retry(stats, retry, NOW + 1)
    assert values(shown)["limit"] == (12_000,)
    stats = stats.merged(shown, NOW + 1)
    assert limit_of(stats) == 12_000
    assert updates.of_answered_retry(stats, retry, NOW + 2) == {}, "it is shown once"


@pytest.mark.parametrize(("accepted", "limit", "known"), [(0, 100_000, True), (90_000, 100_000, True),
    (110_000, 100_000, False), (0, 99_999, False)])  # fmt: skip
def test_limit_below_accepted_size_or_half_window_is_claim(accepted, limit, known):
    stats = NOTHING.merged({("accepted_input", ANYONE): Observation((accepted,), NOW - 1)} if accepted else {}, NOW)
    attempt = replace(COUNTED, sent_tokens=120_000)
    assert (limit_of(believed(stats, attempt, Overflow("input", "x", limit, 120_000))) == limit) is known


def test_quoted_figures_teach_only_by_answer():
    quoted = replace(Overflow("input", "x", 150_000, 160_000), quoted=True)
    attempt = replace(COUNTED, sent_tokens=160_000)
    assert updates.believed_of_refusal(NOTHING, attempt, quoted, NOW) == {}
    refused = replace(attempt, overflow=quoted, failed=True)
    retry = replace(attempt, to=replace(attempt.to, attempt=1), known=replace(attempt.known, previous=refused))
    assert values(updates.of_answered_retry(NOTHING, retry, NOW))["limit"] == (150_000,)


def test_output_limit_below_accepted_output_is_claim():
    capped = Overflow("output_limit", "x", 256, requested_output_tokens=8_000)
    assert believed(NOTHING, overflow=capped).seen_by("ann", NOW).output_limit_tokens() == 256
    stats = NOTHING.merged({("accepted_output", ANYONE): Observation((8_000,), NOW - 1)}, NOW)
    assert believed(stats, overflow=capped).seen_by("ann", NOW).output_limit_tokens() is None
    again = believed(believed(stats, overflow=capped), overflow=capped, now=NOW + 1)
    assert again.seen_by("ann", NOW + 1).output_limit_tokens() == 256


def test_limit_in_bytes_teaches_nothing():
    assert updates.believed_of_refusal(NOTHING, COUNTED, Overflow("bytes", "x", limit_bytes=100_000), NOW) == {}


def after_cut(*answers, asked=8_000, attempt=COUNTED):
    """Return the statistics after answers that were cut short, each of its input and its output."""
    stats = NOTHING
    for n, bill in enumerate(Billed(i, output_tokens=o) for i, o in answers):
        tried = replace(attempt, output_tokens=asked)
        shown = updates.of_answer(stats, tried, bill.input_tokens, NOW + n)
        cut = updates.of_cut_answer(stats.seen_by("ann", NOW + n), tried, bill, NOW + n)
        stats = stats.merged({**shown, **cut}, NOW + n)
    return stats


OUTPUTS = st.integers(1, 7_900).filter(lambda n: all(min(n % unit, -n % unit) > 1 for unit in (1_000, 1_024)))


@given(window=st.integers(40_000, 120_000), outputs=st.tuples(OUTPUTS, OUTPUTS))
def test_two_answers_cut_at_one_total_show_the_window(window, outputs):
    assume(abs(outputs[0] - outputs[1]) > 0.02 * max(outputs))
    bills = [(window - output, output) for output in outputs]
    assert limit_of(after_cut(bills[0])) is None
    assert limit_of(after_cut(*bills)) == window
    assert limit_of(after_cut(*bills), "bob") is None


@given(cap=st.integers(1, 7_999), inputs=st.lists(st.integers(30_000, 60_000), min_size=2, max_size=6))
def test_a_cap_on_the_output_shows_no_window(cap, inputs):
    assert limit_of(after_cut(*((given_tokens, cap) for given_tokens in inputs))) is None


@pytest.mark.parametrize(("answers", "asked"), [
    ([(50_000, 700), (49_500, 1_200)], 700), ([(50_000, 700), (49_500, 1_200)], None),
    ([(60_000, 5), (50_000, 700), (49_500, 1_200)], 8_000),
], ids=["all that was asked for", "nothing was asked for", "more was accepted"])  # fmt: skip
def test_answers_cut_for_another_reason_show_no_window(answers, asked):
    assert limit_of(after_cut(*answers, asked=asked)) is None


def test_cut_answer_confirms_no_refusal():
    cut = after_cut((11_000, 700))
    assert limit_of(believed(cut, now=NOW + 1)) is None
    assert limit_of(believed(believed(cut, now=NOW + 1), now=NOW + 2)) == 12_000
