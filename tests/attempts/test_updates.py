"""What one refusal or answer shows, and what it does not."""

from dataclasses import replace

import pytest
from engine_requests import attempted
from hypothesis import given
from hypothesis import strategies as st

from ctx_hooks.attempts import updates
from ctx_hooks.attempts.observations import ANYONE, LARGEST_RATIO, LEAST_LIMIT_TOKENS, DeploymentStats, Observation
from ctx_hooks.attempts.sizes import Uncounted
from ctx_hooks.overflow.recognise import Overflow, recognise_overflow, too_large_for_rate
from ctx_hooks.overflow.texts import own_words
from ctx_hooks.tokens.units import ProviderTokens
from ctx_hooks.tokens.usage import Billed

NOW = 1_000_000_000.0
RATE = too_large_for_rate(own_words("Request too large (TPM): Limit 20000, Requested 50000"))
NOTHING = DeploymentStats()
COUNTED = attempted(200_000, 50_000, output_tokens=8_000)
UNSEEN = Uncounted(holds_any=True)
UNCOUNTED = replace(COUNTED, received_tokens=None, sent_tokens=None, most_tokens=80_000)
OBSERVED = replace(COUNTED, to=replace(COUNTED.to, policy=COUNTED.to.policy.model_copy(update={"mode": "observe"})))


def values(shown):
    return {kind: o.values for (kind, _), o in shown.items()}


def accepted(tokens, at=NOW - 1):
    return NOTHING.merged({("accepted", ANYONE): Observation((tokens,), at)}, NOW)


def after(attempt, overflow, stats=NOTHING, now=NOW):
    return stats.merged(updates.of_refusal(stats, attempt, overflow, now), now)


def limit_of(stats, tenant="ann"):
    return stats.seen_by(tenant, NOW + 9).limit_tokens(200_000)


def test_an_answer_shows_ratio_and_accepted_size():
    shown = updates.of_answer(NOTHING, COUNTED, 60_000, NOW)
    assert values(shown)["ratios"][1:] == (1.2,)
    assert shown["accepted", ANYONE].values == (60_000,)


@pytest.mark.parametrize(
    "hidden", [{"uncounted": UNSEEN}, {"guessed_tokens": 20_000}, {"sent_tokens": None, "most_tokens": 80_000}], ids=str
)
def test_bill_for_uncounted_text_shows_no_ratio(hidden):
    assert "ratios" not in values(updates.of_answer(NOTHING, replace(COUNTED, **hidden), 60_000, NOW))


@pytest.mark.parametrize("billed", [250_000, 4_096])
def test_bill_of_another_conversation_shows_no_ratio(billed):
    assert "ratios" not in values(updates.of_answer(NOTHING, COUNTED, billed, NOW))


NAMED = Overflow("input", "x", 60_000)
BOTH = Overflow("input_plus_output", "x")
LARGER = replace(COUNTED, sent_tokens=60_000, output_tokens=10_000)
SEARCHED = replace(COUNTED, uncounted=Uncounted(holds_any=True, holds_hosted=True))
OUTPUT = "max_tokens is too large: 20000. This model supports at most 4096 completion tokens, whereas you provided 20000."


@pytest.mark.parametrize(("attempt", "overflow", "expected"), [
    (OBSERVED, Overflow("input", "x", 60_000, 61_004), {"limit": (60_000, 0, 1), "ratios": (1.2167, 1.2201)}),
    (COUNTED, recognise_overflow(OUTPUT, status=400), {"output_limit": (4_096,)}),
    (OBSERVED, RATE, {"limit": (20_000, 0, 0)}),
    (OBSERVED, NAMED, {"limit": (40_000, 50_000, 1)}),
    (replace(OBSERVED, sent_tokens=61_000), NAMED, {"limit": (60_000, 60_000, 1)}),
    (replace(LARGER, to=OBSERVED.to), Overflow("input", "x"), {"limit": (36_000, 60_000, 1)}),
    (replace(LARGER, to=OBSERVED.to), BOTH, {"limit": (42_000, 70_000, 1)}),
    (replace(SEARCHED, to=OBSERVED.to), Overflow("input", "x"), {"limit": (30_000, 50_000, 1)}),
    (SEARCHED, Overflow("input", "x", 40_000), {}),
], ids=["its limit and its count", "a cap of the output and no window", "a rate limit that one request is above",
        "less than the size where the local count is within the limit", "its limit without a count",
        "a share of the size",
        "a share of the sum where the output counts too", "a share beside calls of hosted tools", "no limit beside these"],
)  # fmt: skip
def test_a_refusal_shows(attempt, overflow, expected):
    shown = values(updates.of_refusal(NOTHING, attempt, overflow, NOW))
    assert shown.keys() == expected.keys()
    assert all(shown[kind] == pytest.approx(expected[kind], rel=0.02) for kind in expected)


@pytest.mark.parametrize(("overflow", "attempt"), [
    (Overflow("input", "x", 1, 50_000), OBSERVED), (Overflow("input", "x", 40_000, 2_000_000), OBSERVED),
    (Overflow("input", "x", 4_000_000), OBSERVED), (Overflow("input", "x", 40_000), replace(OBSERVED, uncounted=UNSEEN)),
    (Overflow("input", "x"), replace(OBSERVED, uncounted=UNSEEN)),
    (Overflow("input", "x"), replace(OBSERVED, guessed_tokens=48_000)),
    (Overflow("input", "x", 40_000, 50_000), replace(UNCOUNTED, to=OBSERVED.to)),
    (Overflow("input", "rate_too_large", 600), OBSERVED), (Overflow("bytes", "x", limit_bytes=100_000), OBSERVED),
    (replace(Overflow("input", "x", 150_000, 160_000), quoted=True), replace(COUNTED, sent_tokens=160_000)),
], ids=["one token", "another count", "above the request", "stored history", "guess", "mostly guessed", "not counted",
        "rate", "bytes", "quoted"])  # fmt: skip
def test_implausible_refusal_shows_no_limit(overflow, attempt):
    assert "limit" not in values(updates.of_refusal(NOTHING, attempt, overflow, NOW))


def test_limit_of_request_not_counted_whole_is_own():
    hidden = replace(OBSERVED, uncounted=UNSEEN)
    stats = after(hidden, Overflow("input", "x", 40_000, 70_000))
    assert (limit_of(stats), limit_of(stats, "bob")) == (40_000, None)
    for limit, sent in ((70_000, 40_000), (999, 70_000)):
        assert not updates.of_refusal(NOTHING, hidden, Overflow("input", "x", limit, sent), NOW), "above its input"


@pytest.mark.parametrize(("size", "limit", "known"), [(0, 100_000, True), (90_000, 100_000, True),
    (110_000, 100_000, False), (0, 99_999, False)])  # fmt: skip
def test_limit_far_below_known_sizes_needs_proof(size, limit, known):
    attempt, overflow = replace(COUNTED, sent_tokens=120_000), Overflow("input", "x", limit, 120_000)
    stats = accepted(size) if size else NOTHING
    assert (limit_of(after(attempt, overflow, stats)) == limit) is known
    observing = replace(attempt, to=OBSERVED.to)
    assert limit_of(after(observing, overflow, stats)) == limit, "a wrong limit changes no request"


@pytest.mark.parametrize("overflow", [
    Overflow("input", "x", 12_000, 50_000), replace(Overflow("input", "x", 150_000, 160_000), quoted=True),
], ids=["far below", "quoted"])  # fmt: skip
def test_answered_retry_proves_limit_once(overflow):
    refused = replace(COUNTED, sent_tokens=160_000 if overflow.quoted else 50_000, overflow=overflow, failed=True)
    retry = replace(COUNTED, to=replace(COUNTED.to, attempt=1), limits=replace(COUNTED.limits, previous=refused))
    assert limit_of(after(refused, overflow)) is None
    shown = updates.of_answered_retry(NOTHING, retry, NOW)
    assert values(shown) == {"limit": (overflow.limit_tokens, 0, 1)}
    assert updates.of_answered_retry(NOTHING.merged(shown, NOW), retry, NOW + 1) == {}
    elsewhere = replace(retry, to=replace(retry.to, deployment="other"))
    assert updates.of_answered_retry(NOTHING, elsewhere, NOW) == {}


def test_accepted_size_bounds_guess_from_below():
    for size, least in ((90_000, 90_000 * 1.08), (140_000, 60_000)):
        stats = after(replace(OBSERVED, sent_tokens=100_000), Overflow("input", "x"), accepted(size))
        assert limit_of(stats) >= least
        assert limit_of(stats) <= 100_000


@pytest.mark.parametrize(("change", "rises"), [
    ({}, True), ({"sent_tokens": 20_000}, False), ({"sent_tokens": 20_000, "rewrites": True}, True),
], ids=["it fills the limit", "it is small", "it begins with a new compaction"])  # fmt: skip
def test_answers_raise_guessed_limit_below_refused_size(change, rises):
    stats = after(replace(OBSERVED, sent_tokens=100_000), Overflow("input", "x"))
    for _ in range(5):
        limits = replace(COUNTED.limits, window=replace(COUNTED.limits.window, tokens=limit_of(stats)))
        attempt = replace(COUNTED, limits=limits, sent_tokens=limit_of(stats) - 1, budget_tokens=limit_of(stats))
        before, shown = limit_of(stats), updates.of_answer(stats, replace(attempt, **change), 20_000, NOW + 1)
        stats = stats.merged({key: o for key, o in shown.items() if key[0] == "limit"}, NOW + 1)
        assert before <= limit_of(stats) <= 100_000
    assert (limit_of(stats) > 90_000) is rises


sizes = st.integers(1, 400_000)


@given(sizes, sizes, sizes, st.booleans(), st.booleans())
def test_bill_of_the_sent_request_shows_an_accepted_size(window, sent, billed, is_counted, is_whole):
    """A search that the provider runs is billed, and was never in the window."""
    attempt = attempted(window, sent, uncounted=Uncounted(holds_any=not is_whole))
    most = sent * LARGEST_RATIO if is_counted else sent
    attempt = attempt if is_counted else replace(attempt, sent_tokens=None, most_tokens=sent)
    for tokens in (billed, window, int(most), window + 1, int(most) + 1):
        accepted_tokens = values(updates.of_answer(NOTHING, attempt, tokens, NOW)).get("accepted")
        assert accepted_tokens == ((tokens,) if is_whole and tokens <= min(most, window) else None)


@given(sizes, st.integers(1, 9_000), st.integers(0, 250_000))
def test_answer_cut_below_its_limit_shows_a_total(sent, answer, accepted_tokens):
    """Not if a cap on the output may have ended it, or if the deployment has accepted more."""
    billed, total = Billed(ProviderTokens(sent), output_tokens=ProviderTokens(answer)), sent + answer
    is_cap = any(answer % unit in (0, 1, unit - 1) for unit in (1_000, 1_024))
    is_sound = LEAST_LIMIT_TOKENS <= total < 200_000 and sent <= COUNTED.sent_tokens * LARGEST_RATIO
    shows = is_sound and answer < COUNTED.output_tokens and not is_cap
    for size in (accepted_tokens, total, total + 1):
        found = updates.cut_total(accepted(size), COUNTED, billed, NOW)
        assert found == (total if shows and size <= total else None)


def test_count_without_reasoning_only_raises_ratio():
    """It fills the window and is not billed: with the ratio of its bill the next request would exceed the window."""
    sealed = replace(OBSERVED, guessed_tokens=9_000, uncounted=Uncounted(holds_unbilled=True))
    for billed, ratio in ((41_000, None), (56_000, (1.12,))):
        for shown in (
            updates.of_answer(NOTHING, sealed, billed, NOW),
            updates.of_refusal(NOTHING, sealed, Overflow("input", "x", 40_000, billed), NOW),
        ):
            assert (values(shown)["ratios"][1:] if "ratios" in values(shown) else None) == ratio


@pytest.mark.parametrize(("other", "counted", "kind"), [
    (9_500, None, "ratios"), (10_000, None, "other_ratios"),
    (2_400, 60_000, "ratios"), (2_500, 60_000, "other_ratios"), (2_500, 52_000, "ratios"),
], ids=["below a fifth", "a fifth of an answer", "less than a twentieth of a refusal", "a twentieth",
        "a twentieth of as many tokens as expected"])  # fmt: skip
def test_large_share_of_other_scripts_shows_their_ratio(other, counted, kind):
    attempt = replace(OBSERVED, other_tokens=other)
    refusal = Overflow("input", "x", 40_000, counted)
    shown = updates.of_refusal(NOTHING, attempt, refusal, NOW) if counted else None
    shown = shown or updates.of_answer(NOTHING, attempt, 60_000, NOW)
    assert {"ratios", "other_ratios"} & values(shown).keys() == {kind}
