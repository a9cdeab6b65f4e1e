"""An output that the deployment would refuse is lowered before the call."""

from __future__ import annotations

import pytest
from engine_requests import by_size, decided, sent, session, to, tokens_of

from ctx_hooks.decision import Compressed, Untouched, changes_of
from ctx_hooks.learning.known import Known
from ctx_hooks.overflow.retry_plan import LEAST_OUTPUT_TOKENS
from ctx_hooks.tokens.window import Window


class TestOutputs:
    """An output that the deployment would refuse is lowered before it is sent; any other stays."""

    @pytest.mark.parametrize(
        ("asked", "cap", "expected"),
        [
            (8_000, 4_096, 4_096),
            (8_000, 8_000, 8_000),
            (1_000, 4_096, 1_000),
            (8_000, None, 8_000),
            (8_000, LEAST_OUTPUT_TOKENS, LEAST_OUTPUT_TOKENS),
            (8_000, LEAST_OUTPUT_TOKENS - 1, 8_000),
            (None, 4_096, None),
        ],
    )
    @pytest.mark.parametrize("counts", [True, False])
    def test_it_is_lowered_to_what_the_deployment_gives(self, asked, cap, expected, counts):
        fields = {} if asked is None else {"max_tokens": asked}
        request = session(turns=1, **fields)
        known = Known(to().window, output_limit_tokens=cap)
        decision, attempt = decided(request, to(), known) if counts else by_size(request, to(), known)
        assert sent(request, decision).fields.get("max_tokens") == attempt.output_tokens == expected
        assert isinstance(decision, Untouched) == (expected == asked)

    def test_it_is_lowered_to_what_the_window_leaves_where_the_window_holds_both(self):
        request = session(turns=3, max_tokens=30_000)
        size = tokens_of(request)
        held, alone = Window(30_000, "model_info"), Window(30_000, "model_info", holds_output=False)
        decision, attempt = decided(request, to(30_000), Known(held))
        assert size + attempt.output_tokens <= 30_000
        assert sent(request, decision).fields["max_tokens"] == attempt.output_tokens >= 30_000 - 1.06 * size
        decision, attempt = decided(request, to(30_000), Known(alone))
        assert isinstance(decision, Untouched)
        assert attempt.output_tokens == 30_000

    def test_it_is_not_lowered_below_what_helps_anybody(self):
        request = session(turns=3, max_tokens=30_000)
        window = Window(int(tokens_of(request) * 1.05) + LEAST_OUTPUT_TOKENS // 2, "model_info")
        decision, _ = decided(request, to(reserve="scaled", reserve_fraction=0.0), Known(window))
        assert sent(request, decision).fields["max_tokens"] in (30_000, *range(LEAST_OUTPUT_TOKENS, 30_000))

    def test_a_compressed_request_asks_for_less_too(self):
        request = session(turns=40, max_tokens=8_000)
        decision, attempt = decided(request, to(20_000), Known(Window(20_000, "model_info"), output_limit_tokens=4_096))
        assert isinstance(decision, Compressed)
        assert changes_of(decision)["max_tokens"] == attempt.output_tokens == 4_096
        assert changes_of(decision)["messages"]


class TestWhatAnswersNeed:
    """Clients ask for the most that they could use: it is reserved until answers have shown what they need."""

    window = Window(60_000, "model_info")

    def decide(self, answer_tokens, turns=30, **fields):
        request = session("anthropic", turns=turns, **{"max_tokens": 32_000, **fields})
        decision, attempt = decided(request, to(60_000), Known(self.window, answer_tokens=answer_tokens))
        return request, decision, attempt

    def test_a_request_that_fits_beside_a_usual_answer_is_not_compacted(self):
        request, before, _ = self.decide(None)
        assert 28_000 < tokens_of(request) < 45_000
        assert "messages" in before.changes
        _, after, attempt = self.decide(512)
        assert set(after.changes) == {"max_tokens"}
        assert 60_000 * 0.08 <= after.changes["max_tokens"] < 32_000
        assert attempt.sent_provider_tokens + after.changes["max_tokens"] <= 60_000

    def test_a_thinking_budget_is_needed_whatever_answers_were(self):
        """A changed budget costs the prompt cache."""
        thinking = {"type": "enabled", "budget_tokens": 20_000}
        for turns in (30, 40):
            request, decision, _ = self.decide(512, turns, thinking=thinking)
            now = sent(request, decision).fields
            assert now["thinking"] == thinking
            assert now["max_tokens"] > thinking["budget_tokens"] + 1_000
