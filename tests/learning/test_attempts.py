"""What is known when an attempt begins: the stated window, what was learned of it, and what was refused."""

import time

from engine_requests import NOW, stats_of, to

from ctx_hooks.learning.attempts import known_of
from ctx_hooks.tokens.budget import Window


class TestWhatIsKnown:
    def test_a_learned_limit_holds_where_it_is_smaller(self):
        assert known_of(to(), stats_of(("limit", "ann", 60_000)), NOW).window == Window(60_000, "learned")
        assert known_of(to(), stats_of(("limit", "ann", 600_000)), NOW).window == to().window

    def test_when_the_limit_in_use_was_shown_is_known_and_nothing_of_one_that_is_not(self):
        by_other, larger = stats_of(("limit", "bob", 60_000)), stats_of(("limit", "ann", 600_000))
        found = [known_of(to(), stats, NOW + 60).limit_learned_seconds for stats in (by_other, larger)]
        assert found == [NOW - 1, None]

    def test_ratio_and_largest_output_are_learned_and_what_is_old_is_not_known(self):
        stats = stats_of(("ratios", "ann", 1.2, 1.2), ("limit", "ann", 60_000), ("output_limit", "ann", 4_096))
        found = [known_of(to(), stats, now) for now in (NOW, time.time())]
        assert [(known.window.tokens, known.factor, known.output_limit_tokens) for known in found] == [
            (60_000, 1.2, 4_096),
            (200_000, 1.0, None),
        ]
