"""What is known when an attempt begins: the stated window, what was learned of it, and what was refused."""

import time
from dataclasses import replace

from engine_requests import NOW, stats_of, to

from ctx_hooks.learning.known import known_of
from ctx_hooks.learning.stats import ANYONE, DeploymentStats
from ctx_hooks.tokens.budget import Window


class TestWhatIsKnown:
    def test_a_learned_limit_holds_where_it_is_smaller(self):
        assert known_of(to(), stats_of(("limit", "ann", 60_000)), NOW).window == Window(60_000, "learned")
        assert known_of(to(), stats_of(("limit", "ann", 600_000)), NOW).window == to().window

    def test_when_the_limit_in_use_was_shown_is_known_and_nothing_of_one_that_is_not(self):
        by_other, kept = stats_of(("limit", "bob", 60_000)), stats_of(("kept", "ann", 1_500))
        found = [known_of(to(), stats, NOW + 60).limit_learned_seconds for stats in (by_other, kept)]
        assert found == [NOW - 1, None]

    def test_what_another_tenant_was_told_lowers_the_window_to_its_half_at_most(self):
        assert known_of(to(), stats_of(("limit", "bob", 8_000)), NOW).window.tokens == 100_000

    def test_whether_the_window_holds_the_output_is_learned_both_ways(self):
        assert known_of(to(), DeploymentStats(), NOW).window.holds_output
        apart = replace(to(), window=Window(200_000, "model_info", holds_output=False))
        held = stats_of(("holds_output", "ann", 1))
        assert known_of(apart, held, NOW).window.holds_output
        assert not known_of(apart, DeploymentStats(), NOW).window.holds_output
        exceeded = stats_of(("accepted_total", ANYONE, 230_000))
        assert not known_of(to(), exceeded, NOW).window.holds_output

    def test_the_ratio_is_learned(self):
        assert known_of(to(), stats_of(("ratios", "ann", 1.2, 1.2)), NOW).factor == 1.2

    def test_the_largest_output_is_learned(self):
        assert known_of(to(), stats_of(("output_limit", "ann", 4_096)), NOW).output_limit_tokens == 4_096

    def test_what_is_old_is_not_known(self):
        stats = stats_of(("limit", "ann", 60_000), ("holds_output", "ann", 1), ("output_limit", "ann", 4_096))
        later = time.time()
        assert known_of(to(), stats, later).window == to().window
        assert known_of(to(), stats, later).output_limit_tokens is None
