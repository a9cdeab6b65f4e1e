"""An output that the deployment would refuse is lowered before the call, and takes no message's place."""

from dataclasses import replace

import pytest
from engine_requests import DEAR_CACHE, by_size, decided, sent, session, to, tokens_of
from hypothesis import given
from hypothesis import strategies as st
from strategies import FIELDS, FORMATS

from ctx_hooks.attempts.attempt import Limits
from ctx_hooks.attempts.request import LEAST_ANSWER_TOKENS, LEAST_THINKING_TOKENS, Request
from ctx_hooks.flow.decision import Untouched
from ctx_hooks.overflow.retry_plan import LEAST_OUTPUT_TOKENS
from ctx_hooks.tokens.budget import Window


class TestOutputs:
    """An output that the deployment would refuse is lowered before it is sent; any other stays."""

    @pytest.mark.parametrize(("asked", "cap", "expected"), [
        (8_000, 4_096, 4_096), (8_000, 8_000, 8_000), (1_000, 4_096, 1_000), (8_000, None, 8_000),
        (8_000, LEAST_OUTPUT_TOKENS, LEAST_OUTPUT_TOKENS), (8_000, LEAST_OUTPUT_TOKENS - 1, 8_000), (None, 4_096, None),
    ])  # fmt: skip
    @pytest.mark.parametrize("counts", [True, False])
    def test_output_is_lowered_to_deployments_cap(self, asked, cap, expected, counts):
        fields = {} if asked is None else {"max_tokens": asked}
        request = session(turns=1, **fields)
        limits = Limits(to().window, output_limit_tokens=cap)
        decision, attempt = decided(request, to(), limits) if counts else by_size(request, to(), limits)
        assert sent(request, decision).fields.get("max_tokens") == attempt.output_tokens == expected
        assert isinstance(decision, Untouched) == (expected == asked)


REQUESTS = {(fmt, turns): session(fmt, turns=turns) for fmt in FORMATS for turns in (1, 8, 24)}
SIZES = {which: tokens_of(request) for which, request in REQUESTS.items()}
POLICIES = (
    {}, {"mode": "observe"}, {"reserve": "20%"},
    {"reserve": "dynamic"}, {"reserve": 0}, {"retrieval": True}, {"compaction": "cost_aware"},
)  # fmt: skip


def asking_for(request, output_tokens):
    """Return the request with an output that it asks for, in the field of its format."""
    return Request(request.format, {**request.fields, **request.with_output(output_tokens)})


class TestTheRequestedOutputGivesWayFirst:
    """What a request asks for never costs it a message: neither what fits nor where a session is compacted depends on it."""

    @given(
        which=st.sampled_from(sorted(REQUESTS)),
        share=st.floats(0.3, 1.5),
        output_tokens=st.integers(1, 200_000),
        policy=st.sampled_from(POLICIES),
        source=st.sampled_from(["model_info", "learned", "default"]),
        factor=st.sampled_from([0.8, 1.0, 1.3]),
    )
    def test_requested_output_changes_no_messages(self, which, share, output_tokens, policy, source, factor):
        """The window is a share of the request: what fits and what is compacted are both among them."""
        silent = REQUESTS[which]
        asking = asking_for(silent, output_tokens)
        window = Window(max(1_000, int(SIZES[which] * factor / share)), source)
        limits = Limits(window, factor)
        target = replace(to(window.tokens, **policy), prices=DEAR_CACHE)
        before, _ = decided(silent, target, limits)
        decision, attempt = decided(asking, target, limits)
        now = sent(asking, decision)
        assert now.items == sent(silent, before).items
        assert attempt.output_tokens == now.max_output_tokens <= output_tokens
        if attempt.sent_provider_tokens + LEAST_OUTPUT_TOKENS <= window.tokens:
            assert attempt.sent_provider_tokens + attempt.output_tokens <= window.tokens
            assert attempt.output_tokens >= min(output_tokens, LEAST_OUTPUT_TOKENS)

    @given(
        which=st.sampled_from(sorted(REQUESTS)),
        spare_tokens=st.integers(0, 50_000),
        output_tokens=st.none() | st.integers(1, 200_000),
        policy=st.sampled_from(POLICIES),
    )
    def test_fitting_request_keeps_its_messages(self, which, spare_tokens, output_tokens, policy):
        """It fits where it leaves free what the policy keeps for an answer: at most `reserve` or a fifth of all."""
        request = REQUESTS[which] if output_tokens is None else asking_for(REQUESTS[which], output_tokens)
        window_tokens = max(int(SIZES[which] / 0.8), SIZES[which] + 32_768) + spare_tokens
        for decide in (decided, by_size):
            found = decide(request, to(window_tokens, **policy))
            assert found is None or not found[0].changes.keys() & set(FIELDS.values())


class TestThinking:
    """Anthropic: a changed budget costs the prompt cache. So room for it is kept, unless it would take most of a window."""

    def decide(self, window_tokens, turns, budget_tokens):
        thinking = {"type": "enabled", "budget_tokens": budget_tokens}
        request = session("anthropic", turns=turns, max_tokens=32_000, thinking=thinking)
        decision, attempt = decided(request, to(window_tokens))
        return sent(request, decision), decision, attempt

    def test_conversation_gives_way_to_thinking_budget(self):
        now, _, attempt = self.decide(60_000, 60, 10_000)
        assert now.fields["thinking"]["budget_tokens"] == 10_000
        assert now.fields["max_tokens"] >= 10_000 + LEAST_ANSWER_TOKENS
        assert attempt.sent_provider_tokens + attempt.output_tokens <= 60_000

    def test_budget_above_quarter_of_window_is_lowered(self):
        now, decision, attempt = self.decide(32_768, 17, 31_999)
        assert set(decision.changes) == {"max_tokens", "thinking"}
        assert LEAST_THINKING_TOKENS <= now.fields["thinking"]["budget_tokens"] < attempt.output_tokens < 32_000
