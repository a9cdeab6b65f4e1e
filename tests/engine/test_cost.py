"""A compaction that costs more than it saves is not done, where the policy asks for that."""

from dataclasses import replace

import pytest
from engine_requests import DEAR_CACHE, NO_CACHE, decided, session, to, tokens_of

from ctx_hooks.compaction.cost import WritingPrices
from ctx_hooks.decision import Compressed, Rescued, Untouched, changes_of
from ctx_hooks.learning.known import Known
from ctx_hooks.overflow.recognise import Overflow
from ctx_hooks.tokens.window import Window

DEAR_MODEL = WritingPrices(read=1.0, written=1.0)


class TestWhatCompactingCosts:
    """With `cost_aware`, a compaction has to save more than the prompt cache it throws away."""

    request = session(turns=40)
    size = tokens_of(request)
    window_tokens = int(size * 1.02)
    """The request is above the budget, which leaves room for an answer, and the window would hold it."""

    @pytest.mark.parametrize(("prices", "cost_aware", "window_tokens", "compacts"), [
        (DEAR_CACHE, True, window_tokens, False), (DEAR_CACHE, True, int(size * 0.9), True),
        (DEAR_CACHE, False, window_tokens, True), (NO_CACHE, True, window_tokens, True), (None, True, window_tokens, True),
    ], ids=["does not pay", "the window does not hold it", "whatever it costs", "pays", "prices not known"])  # fmt: skip
    def test_it_is_not_done_where_it_costs_more_than_it_saves(self, prices, cost_aware, window_tokens, compacts):
        target = to(window_tokens, prices=prices, cost_aware=cost_aware, expected_turns=1)
        decision, attempt = decided(self.request, target)
        assert bool(changes_of(decision)) == compacts
        assert isinstance(decision, Compressed if compacts else Untouched)
        assert (attempt.sent_tokens < self.size) == compacts

    def test_whether_the_window_holds_it_is_asked_in_the_providers_tokens(self):
        """The local tokens are below the window's figure; the provider counts 1.3 for each of them."""
        window = Window(self.window_tokens, "model_info")
        target = to(self.window_tokens, prices=DEAR_CACHE, cost_aware=True, expected_turns=1)
        decision, _ = decided(self.request, target, Known(window, factor=1.3))
        assert isinstance(decision, Compressed)
        assert decision.figures.tokens_after <= decision.figures.budget_tokens

    @pytest.mark.parametrize(("writing", "compacts"), [(None, True), (WritingPrices(0.0, 0.0), True), (DEAR_MODEL, False)])
    def test_the_summary_that_a_model_writes_of_it_counts_too(self, writing, compacts):
        """Without a cache any compaction pays, unless the summary costs more than all that is saved."""
        target = to(self.window_tokens, prices=NO_CACHE, cost_aware=True, expected_turns=1, summary={"model": "small"})
        decision, _ = decided(self.request, replace(target, writing_prices=writing))
        assert isinstance(decision, Compressed if compacts else Untouched)

    def test_a_retry_asks_for_no_price(self):
        _, first = decided(self.request, to(self.window_tokens, cost_aware=True, prices=DEAR_CACHE, expected_turns=1))
        refused = replace(first, overflow=Overflow("input", "x"), failed=True)
        retry = to(self.window_tokens, cost_aware=True, prices=DEAR_CACHE, expected_turns=1, attempt=1)
        decision, _ = decided(self.request, retry, Known(Window(self.window_tokens, "model_info"), previous=refused))
        assert isinstance(decision, Rescued)
