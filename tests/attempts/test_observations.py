"""What one tenant shows holds for it, and for others within a bound, whatever it sends."""

import random
import statistics
from dataclasses import replace

import pytest
from engine_requests import attempted
from hypothesis import given
from hypothesis import strategies as st

from ctx_hooks.attempts import updates
from ctx_hooks.attempts.observations import (
    ANYONE,
    MOST_TENANTS,
    OTHERS_FLOOR_FRACTION,
    RULES,
    DeploymentStats,
    Observation,
    Seen,
    ratios_after,
)
from ctx_hooks.attempts.sizes import Uncounted
from ctx_hooks.overflow.recognise import Overflow

NOW = 1_000_000_000.0
WINDOW = 128_000


def stats_of(*shown, at=NOW):
    """Return statistics of (kind, tenant, values...)."""
    return DeploymentStats().merged({(k, t): Observation(tuple(v), at) for k, t, *v in shown}, NOW)


def named(tenant, tokens):
    return "limit", tenant, tokens, 0, 1


def limit(stats, tenant="cat", now=NOW):
    return stats.seen_by(tenant, now).limit_tokens(WINDOW)


@pytest.mark.parametrize(("shown", "expected"), [
    ([named("cat", 8_000)], 8_000), ([named("ann", 8_000)], 64_000), ([named("ann", 8_000), named("bob", 9_000)], 9_000),
    ([named("ann", 8_000), named("bob", 8_000), ("accepted", ANYONE, 100_000)], 100_000),
    ([("limit", "ann", 8_000, 0, 0), ("limit", "bob", 8_000, 0, 0)], None),
], ids=["what it was told", "the floor of what another was told", "what two others agree on", "no less than was accepted",
        "nothing that holds for others only"])  # fmt: skip
def test_limit_that_holds_for_tenant(shown, expected):
    assert limit(stats_of(*shown)) == expected


@pytest.mark.parametrize(("ago", "expected"), [(60, 60_000), (-60, 100_000)])
def test_newer_of_limit_and_accepted_size_holds(ago, expected):
    """An operator has lowered the window, or raised it."""
    later = {("accepted", ANYONE): Observation((100_000,), NOW - ago)}
    assert limit(stats_of(named("cat", 60_000)).merged(later, NOW)) == expected


@pytest.mark.parametrize(
    ("kind", "read"), [("output_limit", Seen.output_limit_tokens), ("wants_reasoning", Seen.wants_reasoning)]
)
def test_figure_of_one_tenant_needs_second(kind, read):
    one = stats_of((kind, "ann", 1))
    assert read(one.seen_by("ann", NOW))
    assert not read(one.seen_by("cat", NOW))
    assert read(one.merged({(kind, "bob"): Observation((1,), NOW)}, NOW).seen_by("cat", NOW))


def test_ratio_applies_to_its_tenant_only():
    stats = stats_of(*(("ratios", tenant, 2.5, 2.5) for tenant in ("ann", "bob", "eve")))
    assert [stats.seen_by("ann", NOW).factor(model) for model in ("model", "claude")] == [2.5, 2.5]
    assert [stats.seen_by("cat", NOW).factor(model) for model in ("model", "claude")] == [1.0, 1.3]


shown = st.tuples(
    st.sampled_from(["output_limit", "accepted", "ratios"]), st.sampled_from([1.5, 2_000.0]), st.integers(0, 2)
)


@given(st.permutations([0, 1, 2]), st.lists(shown, min_size=3, max_size=3))
def test_workers_agree_whatever_the_order(order, told):
    """The newer observation, of what was accepted the larger."""
    each = [{(kind, "ann"): Observation((value,), NOW - ago)} for kind, value, ago in told]
    found, again = DeploymentStats(), DeploymentStats()
    for n, m in enumerate(order):
        found, again = found.merged(each[n], NOW), again.merged(each[m], NOW)
    assert found == again == again.merged(found.observations, NOW)
    for (kind, _), kept in found.observations.items():
        seen = [v if kind == "accepted" else -ago for k, v, ago in told if k == kind and (k != "ratios" or v < 3)]
        assert max(seen) == (kept.values[0] if kind == "accepted" else kept.at - NOW)


@pytest.mark.parametrize(("kind", "values", "at"), [
    ("limit", (1, 0, 1), NOW), ("limit", (), NOW), ("limit", (8_000,), NOW), ("limit", (float("nan"), 0, 1), NOW),
    ("limit", (8_000, float("inf"), 1), NOW), ("limit", (8_000, -1, 1), NOW), ("ratios", (100.0,), NOW),
    ("ratios", (1.0,) * 100, NOW), ("output_limit", (-5,), NOW), ("limit", (8_000, 0, 1), NOW + 1e6),
])  # fmt: skip
def test_invalid_observation_is_ignored(kind, values, at):
    assert DeploymentStats().merged({(kind, "ann"): Observation(values, at)}, NOW) == DeploymentStats()


def test_newest_tenants_are_remembered():
    many = {(kind, f"t{n}"): Observation((1.0,), NOW - n) for n in range(500) for kind in ("ratios", "output_limit")}
    stats = DeploymentStats().merged(many, NOW)
    assert len(stats.observations) == 2 * MOST_TENANTS
    assert ("ratios", "t0") in stats.observations


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
endings = st.tuples(attempts, st.one_of(overflows, st.integers(0, 10**12)), st.booleans())


@given(st.lists(endings, max_size=30))
def test_one_tenant_moves_another_only_within_bounds(history):
    """Whatever it is refused or billed, in whatever order."""
    stats = DeploymentStats()
    for n, (attempt, end, confirmed) in enumerate(history):
        if isinstance(end, Overflow):
            shown = updates.of_refusal(stats, attempt, end, NOW + n, is_confirmed=confirmed)
        else:
            shown = updates.of_answer(stats, attempt, end, NOW + n)
        stats = stats.merged(shown, NOW + n)
    seen = stats.seen_by("bob", NOW + len(history))
    found = seen.limit_tokens(WINDOW)
    assert found is None or found >= WINDOW * OTHERS_FLOOR_FRACTION
    assert (seen.factor("model"), seen.other_weight("model")) == (1.0, 1.0)
    assert seen.output_limit_tokens() is None
    assert len(stats.observations) <= len(RULES)


def learned(ratios, counted=10_000, *, is_bound=False):
    found = ()
    for ratio in ratios:
        found = ratios_after(found, counted, int(counted * ratio), is_bound=is_bound)
    return found


@pytest.mark.parametrize("factor", [0.9, 1.17, 1.31])
def test_ten_noisy_answers_show_ratio(factor):
    errors = []
    for seed in range(300):
        draw = random.Random(seed)
        ratios = learned([factor * draw.gauss(1, 0.03) for _ in range(10)])
        errors.append(abs(ratios[0] / (factor * draw.gauss(1, 0.03)) - 1))
    errors.sort()
    assert statistics.median(errors) <= 0.03
    assert errors[int(0.95 * len(errors))] <= 0.08


def test_only_a_lasting_change_moves_the_ratio():
    steady = learned([1.1, 1.11, 1.09, 1.105, 1.095, 1.12, 1.1, 2.4])
    assert steady[0] == learned([1.1])[0]
    assert learned([1.0] * 15 + [1.3] * 12)[0] == pytest.approx(1.3, rel=0.02)


@pytest.mark.parametrize(("counted", "billed"), [(10_000, 60_000), (10_000, 100), (10, 11), (10_000, 0)])
def test_impossible_ratio_is_not_learned(counted, billed):
    assert ratios_after((), counted, billed) == ()


def test_other_scripts_ratio_is_largest_of_fifteen():
    for later, expected in ((14, 3.0), (15, 1.5)):
        assert learned([3.0, *[1.5] * later], is_bound=True)[0] == pytest.approx(expected, rel=0.02)
