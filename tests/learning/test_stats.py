"""What one tenant shows holds for it, and for others within a bound, whatever it sends."""

from dataclasses import replace

import pytest
from engine_requests import attempted
from hypothesis import given
from hypothesis import strategies as st

from ctx_hooks.learning import updates
from ctx_hooks.learning.stats import (
    ANYONE,
    DAY_SECONDS,
    FOREIGN_RATIO_FACTOR,
    MOST_TENANTS,
    RULES,
    DeploymentStats,
    Observation,
)
from ctx_hooks.overflow.recognise import Overflow
from ctx_hooks.request.sizes import Uncounted

NOW = 1_000_000_000.0
WINDOW = 128_000
FLOOR = 0.5


def stats_of(*shown, at=NOW):
    """Return statistics of (kind, tenant, values...)."""
    return DeploymentStats().merged({(k, t): Observation(tuple(v), at) for k, t, *v in shown}, NOW)


def limit(stats, tenant="cat", now=NOW):
    return stats.seen_by(tenant, now).limit_tokens(WINDOW, FLOOR)


@pytest.mark.parametrize(("shown", "expected"), [
    ([("limit", "cat", 8_000)], 8_000), ([("limit", "ann", 8_000)], 64_000),
    ([("limit", "ann", 8_000), ("refused", "bob", 12_000, 0, 0.75)], 9_000),
    ([("limit", "ann", 8_000), ("limit", "bob", 8_000), ("accepted_input", ANYONE, 100_000)], 100_000),
    ([("refused", "cat", 30_000, 0, 1.0), ("accepted_input", ANYONE, 56_000)], 30_000),
    ([("refused", "cat", 32_000, 0, 0.5), ("accepted_input", ANYONE, 12_000)], 16_000),
    ([("refused", "cat", 32_000, 4_000, 0.5), ("ratios", "cat", 1.5), ("other_ratios", "cat", 2.0)], 28_000),
    ([("limit", "cat", 60_000), ("refused", "cat", 80_000, 0, 0.5), ("own_limit", "cat", 50_000)], 40_000),
], ids=["what it was told", "the floor of what another was told", "what two others agree on", "no less than was accepted",
        "no more than it was refused", "a share of a refused size", "by the newest ratios", "the smallest"])  # fmt: skip
def test_the_limit_that_holds_for_a_tenant(shown, expected):
    assert limit(stats_of(*shown)) == expected


def test_a_limit_that_was_named_after_the_acceptance_holds_for_the_tenant_that_was_told():
    """An operator has lowered the window."""
    later = {("limit", "cat"): Observation((60_000,), NOW)}
    assert limit(stats_of(("accepted_input", ANYONE, 100_000), at=NOW - 60).merged(later, NOW)) == 60_000


def test_what_others_have_shown_is_forgotten_too():
    stats = stats_of(("limit", "ann", 8_000), ("limit", "bob", 8_000))
    assert (limit(stats), limit(stats, now=NOW + DAY_SECONDS + 1)) == (8_000, None)


def test_the_ratio_in_use_is_the_published_one():
    stats = DeploymentStats({("ratios", "ann"): Observation((1.1, 0.9, 1.3), NOW)})
    assert stats.seen_by("ann", NOW).factor("model") == 1.1


def test_an_output_limit_is_one_tenants_until_a_second_has_met_it():
    stats = stats_of(("output_limit", "ann", 256))
    assert stats.seen_by("ann", NOW).output_limit_tokens() == 256
    assert stats.seen_by("cat", NOW).output_limit_tokens() is None
    stats = stats_of(("output_limit", "ann", 256), ("output_limit", "bob", 4_096))
    assert stats.seen_by("cat", NOW).output_limit_tokens() == 4_096


@pytest.mark.parametrize(("accepted", "ago", "holds"), [(8_000, 0, None), (8_000, 10, 256), (200, 0, 256)])
def test_only_a_later_answer_with_more_output_disproves_an_output_limit(accepted, ago, holds):
    stats = stats_of(("output_limit", "ann", 256), at=NOW - 1)
    stats = stats.merged({("accepted_output", ANYONE): Observation((accepted,), NOW - ago)}, NOW)
    assert stats.seen_by("ann", NOW).output_limit_tokens() == holds
    confirmed = stats.merged({("output_limit", "bob"): Observation((10_000,), NOW)}, NOW)
    assert confirmed.seen_by("ann", NOW).output_limit_tokens() == holds, "what was disproved confirms nothing"


def test_the_ratio_of_others_moves_a_newcomer_by_a_quarter_at_most():
    def ratios(*published):
        return DeploymentStats().merged(
            {("ratios", f"t{n}"): Observation((p, p), NOW) for n, p in enumerate(published)}, NOW
        )

    assert ratios(2.5).seen_by("cat", NOW).factor("model") == 1.25
    assert ratios(0.5, 0.5).seen_by("cat", NOW).factor("claude") == 1.3 / 1.25
    assert ratios(1.4, 1.4, 2.5).seen_by("cat", NOW).factor("model") == 1.4
    assert ratios(2.5).seen_by("t0", NOW).factor("model") == 2.5


shown = st.tuples(st.sampled_from(["limit", "accepted_input", "ratios"]), st.sampled_from([1.5, 2_000.0]), st.integers(0, 2))


@given(st.permutations([0, 1, 2]), st.lists(shown, min_size=3, max_size=3))
def test_in_whatever_order_workers_tell_of_a_deployment_they_come_to_know_the_same(order, told):
    """The newer observation, of what was accepted the larger."""
    each = [{(kind, "ann"): Observation((value,), NOW - ago)} for kind, value, ago in told]
    found, again = DeploymentStats(), DeploymentStats()
    for n, m in enumerate(order):
        found, again = found.merged(each[n], NOW), again.merged(each[m], NOW)
    assert found == again == again.merged(found.observations, NOW)
    for (kind, _), kept in found.observations.items():
        seen = [(v if kind == "accepted_input" else -ago) for k, v, ago in told if k == kind and (k != "limit" or v > 1_000)]
        assert max(seen) == (kept.values[0] if kind == "accepted_input" else kept.at - NOW)


@pytest.mark.parametrize(("kind", "values", "at"), [
    ("limit", (1,), NOW), ("limit", (), NOW), ("limit", (8_000, 8_000), NOW), ("limit", (float("nan"),), NOW),
    ("limit", (float("inf"),), NOW), ("ratios", (100.0,), NOW), ("ratios", (1.0, 100.0), NOW),
    ("ratios", (1.0,) * 100, NOW), ("output_limit", (-5,), NOW), ("limit", (8_000,), NOW + 1e6),
])  # fmt: skip
def test_what_is_no_figure_or_of_the_future_is_not_taken_in(kind, values, at):
    assert DeploymentStats().merged({(kind, "ann"): Observation(values, at)}, NOW) == DeploymentStats()


def test_so_many_tenants_are_remembered_and_no_more():
    many = {(kind, f"t{n}"): Observation((1.0,), NOW - n) for n in range(500) for kind in ("ratios", "output_limit")}
    stats = DeploymentStats().merged(many, NOW)
    assert len(stats.observations) == 2 * MOST_TENANTS
    assert ("ratios", "t0") in stats.observations, "the newest stay"


ATTEMPT = attempted(WINDOW, 1)
figures = st.one_of(st.none(), st.integers(-5, 10**12))
overflows = st.builds(
    Overflow, st.sampled_from(["input", "input_plus_output", "output_limit"]), st.just("x"), figures, figures, figures,
    st.booleans(),
)  # fmt: skip
attempts = st.builds(
    lambda sent, guessed, output, counts: replace(
        ATTEMPT,
        received_tokens=sent,
        sent_tokens=sent,
        guessed_tokens=guessed,
        output_tokens=output,
        uncounted=Uncounted(holds_any=not counts),
    ),
    st.one_of(st.none(), st.integers(1, 10**7)),
    st.integers(0, 10**6),
    st.one_of(st.none(), st.integers(1, 10**9)),
    st.booleans(),
)
endings = st.tuples(attempts, st.one_of(overflows, st.integers(0, 10**12)))


@given(st.lists(endings, max_size=30))
def test_nothing_that_one_tenant_sends_moves_another_beyond_the_bounds(history):
    """Whatever it is refused or billed, in whatever order."""
    stats = DeploymentStats()
    for n, (attempt, end) in enumerate(history):
        update = updates.of_refusal if isinstance(end, Overflow) else updates.of_answer
        stats = stats.merged(update(stats, attempt, end, NOW + n), NOW + n)
    now = NOW + len(history)
    found = limit(stats, "bob", now)
    assert found is None or found >= WINDOW * FLOOR
    assert 1 / FOREIGN_RATIO_FACTOR <= stats.seen_by("bob", now).factor("model") <= FOREIGN_RATIO_FACTOR
    assert stats.seen_by("bob", now).output_limit_tokens() is None
    assert "low_bill" not in stats.seen_by("bob", now).own
    assert len(stats.observations) <= len(RULES)
