"""A retry is smaller than what was refused, or it is not sent."""

from dataclasses import replace

from engine_requests import DEAR_CACHE, MODEL, NOW, decided, only_newest_loop, session, to, tokens_of
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import screenshots

from ctx_hooks.attempts import updates
from ctx_hooks.attempts.attempt import Limits, limits_of
from ctx_hooks.attempts.observations import DeploymentStats
from ctx_hooks.attempts.request import Request
from ctx_hooks.flow.decision import Compressed, NotRetried
from ctx_hooks.overflow.recognise import Overflow
from ctx_hooks.overflow.retry_plan import BLIND_FRACTION, LEAST_OUTPUT_TOKENS, SMALLER_FRACTION


def at_another(attempt):
    return replace(attempt, to=replace(attempt.to, deployment="another"))


class TestRetries:
    request = session(turns=40)
    size = tokens_of(request)

    def refused(self, overflow, number=0, **fields):
        _, attempt = decided(self.request, to())
        where = replace(attempt.to, attempt=number)
        return replace(attempt, to=where, overflow=overflow, failed=True, **fields)

    def retry(self, overflow, *, attempt=1, request=None, stats=None, refused=None, **policy):
        target = to(attempt=attempt, **policy)
        previous = refused or self.refused(overflow)
        limits = limits_of(target, stats or DeploymentStats(), NOW, previous)
        return limits, *decided(request or self.request, target, limits)

    def test_retry_is_smaller_by_a_margin(self):
        for number in (1, 2, 3):
            _, decision, attempt = self.retry(Overflow("input", "x"), attempt=number)
            assert isinstance(decision, Compressed)
            assert attempt.to.attempt == number
            assert attempt.sent_tokens <= self.size * SMALLER_FRACTION

    def test_compacted_form_refused_elsewhere_is_compacted_further(self):
        target = to(int(self.size * 0.5))
        _, first = decided(self.request, target)
        refused = at_another(replace(first, overflow=Overflow("input", "x"), failed=True))
        decision, again = decided(self.request, replace(target, attempt=1), Limits(target.window, previous=refused))
        assert isinstance(decision, Compressed)
        assert again.sent_tokens <= first.sent_tokens * SMALLER_FRACTION

    @given(
        limit=st.integers(1, 200_000),
        asked=st.none() | st.integers(1, 200_000),
        named=st.booleans(),
        window=st.sampled_from([200_000, int(size * 0.5)]),
        number=st.integers(1, 3),
    )
    def test_refusal_of_output_never_shortens_input(self, limit, asked, named, window, number):
        request = Request("openai-chat", {**self.request.fields, **({} if asked is None else {"max_tokens": asked})})
        target = to(window)
        _, first = decided(request, target)
        said = Overflow("output_limit", "x", limit, requested_output_tokens=first.output_tokens if named else None)
        refused = replace(first, overflow=said, failed=True)
        retry = replace(target, attempt=number)
        limits = limits_of(retry, DeploymentStats(), NOW, refused)
        decision, again = decided(request, retry, limits)
        assert limits.window == target.window
        if isinstance(decision, NotRetried):
            assert first.output_tokens is not None
            assert limit >= first.output_tokens
        else:
            assert decision.changes["max_tokens"] == limit == again.output_tokens
            assert again.lowered
            assert again.sent_tokens == first.sent_tokens

    @given(
        stated=st.none() | st.floats(0.15, 0.9),
        number=st.integers(1, 3),
        images=st.sampled_from([0, 12]),
        asked=st.integers(1, 9_000),
    )
    @settings(max_examples=25)
    def test_refusal_for_bytes_shortens_bytes_only(self, stated, number, images, asked):
        shown = {"messages": screenshots("openai-chat", images)} if images else {}
        request = Request("openai-chat", {**self.request.fields, **shown, "max_tokens": asked})
        size = request.json_bytes({})
        _, first = decided(request, to())
        said = Overflow("bytes", "x", limit_bytes=stated and int(size * stated))
        refused = replace(first, overflow=said, failed=True)
        target = to(attempt=number)
        limits = limits_of(target, DeploymentStats(), NOW, refused)
        decision, again = decided(request, target, limits)
        assert limits.window == target.window
        assert again.output_tokens == first.output_tokens
        assert "max_tokens" not in decision.changes
        assert request.json_bytes(decision.changes) <= (size * BLIND_FRACTION**number if stated is None else size * stated)

    def test_limit_below_uncuttable_text_ends_retries(self):
        """The provider counts four times what is counted here: cutting the rest to nothing would not help."""
        _, decision, attempt = self.retry(Overflow("input", "x", self.size * 2, self.size * 4))
        assert isinstance(decision, NotRetried)
        assert attempt.spent

    def test_output_gives_way_before_conversation(self):
        limit = int(self.size * 1.1)
        asked = session(turns=40, max_tokens=self.size // 2)
        overflow = Overflow("input_plus_output", "x", limit, self.size, self.size // 2)
        _, decision, attempt = self.retry(overflow, request=asked)
        assert list(decision.changes) == ["max_tokens"]
        assert LEAST_OUTPUT_TOKENS <= attempt.output_tokens < limit - self.size

    def test_conversation_gives_way_after_output(self):
        asked = session(turns=40, max_tokens=64_000)
        overflow = Overflow("input_plus_output", "x", 100_000, self.size, 64_000)
        lowered = self.refused(overflow, lowered=True, number=1)
        _, decision, attempt = self.retry(overflow, request=asked, refused=lowered, attempt=2)
        assert "messages" in decision.changes
        assert attempt.sent_tokens <= self.size * SMALLER_FRACTION

    def test_retry_that_is_no_smaller_is_skipped(self):
        only = Request("openai-chat", {"model": MODEL, "messages": [{"role": "user", "content": "Do it. " * 50}]})
        _, first = decided(only, to())
        refused = replace(first, overflow=Overflow("input", "x"), failed=True)
        limits = Limits(to().window, previous=refused)
        decision, attempt = decided(only, to(attempt=1), limits)
        assert isinstance(decision, NotRetried)
        assert decision.reason
        assert attempt == replace(refused, spent=True)

    @given(limit_fraction=st.floats(0.1, 0.95), output=st.sampled_from([500, 2_000, 8_000]))
    def test_lower_bound_teaches_limit_and_shortens_input(self, limit_fraction, output):
        """vLLM counts no further than the window less the output: the figure says nothing of the size."""
        limit = max(int(self.size * limit_fraction), output + 1_000)
        overflow = Overflow("input_plus_output", "x", limit, limit - output + 1, output, at_least=True)
        refused = self.refused(overflow, output_tokens=output)
        stats = DeploymentStats().merged(
            updates.of_refusal(DeploymentStats(), refused, overflow, NOW, is_confirmed=True), NOW
        )
        assert stats.seen_by("ann", NOW).limit_tokens(200_000) == limit
        limits, _, attempt = self.retry(overflow, request=session(turns=40, max_tokens=output), stats=stats, refused=refused)
        assert limits.window.tokens == limit
        assert attempt.sent_tokens <= min(limit, self.size * SMALLER_FRACTION)

    @given(
        limit_fraction=st.floats(0.25, 0.9),
        number=st.integers(1, 3),
        policy=st.fixed_dictionaries(
            {},
            optional={
                "compaction": st.sampled_from(["cost_aware", "client_first"]),
                "keep_recent": st.sampled_from([10**6, "99%"]),
                "tool_results": st.just({"max_fraction": 1.0}),
                "reserve": st.just(0),
            },
        ),
    )
    def test_rescue_is_full_whatever_the_policy(self, limit_fraction, number, policy):
        limit = int(self.size * limit_fraction)
        target = replace(to(attempt=number, **policy), prices=DEAR_CACHE, waits=policy.get("compaction") == "client_first")
        refused = self.refused(Overflow("input", "x", limit, self.size))
        decision, attempt = decided(self.request, target, limits_of(target, DeploymentStats(), NOW, refused))
        assert isinstance(decision, Compressed)
        assert attempt.sent_tokens <= min(limit, self.size * SMALLER_FRACTION)

    def test_newest_results_give_way_last(self):
        request = only_newest_loop()
        _, first = decided(request, to())
        refused = replace(first, overflow=Overflow("input", "x"), failed=True)
        target = to(attempt=1, tool_results={"max_fraction": 1.0})
        for limits in (
            limits_of(target, DeploymentStats(), NOW, refused),
            Limits(target.window, previous=at_another(refused)),
        ):
            decision, attempt = decided(request, target, limits)
            assert isinstance(decision, Compressed)
            assert attempt.sent_tokens <= first.sent_tokens * SMALLER_FRACTION
