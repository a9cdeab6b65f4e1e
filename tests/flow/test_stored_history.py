"""A history that the provider keeps is shortened by the provider or by nobody; what is sent besides stays whole."""

from dataclasses import replace

from engine_requests import decided, sent, session, to, tokens_of
from hypothesis import given
from hypothesis import strategies as st

from ctx_hooks.attempts.attempt import limits_of
from ctx_hooks.attempts.observations import DeploymentStats
from ctx_hooks.attempts.request import Request
from ctx_hooks.flow.decision import Compressed, NotRetried
from ctx_hooks.overflow.recognise import Overflow

NOW = 1_000.0
FRESH = [{"type": "function_call_output", "call_id": "call_1", "output": "a line of a file\n" * 200}]
WINDOW = 100_000


def continued(**fields):
    return Request("openai-responses", {"input": FRESH, "previous_response_id": "resp_1", **fields})


def limits(target, previous=None):
    return limits_of(target, DeploymentStats(), NOW, previous)


def refused(request, overflow, **policy):
    target = to(**policy)
    _, attempt = decided(request, target, limits(target))
    size = tokens_of(request)
    return replace(attempt, overflow=overflow, failed=True, received_tokens=size, sent_tokens=size)


def retry(request, overflow, attempt=1, **policy):
    target = to(attempt=attempt, **policy)
    return decided(request, target, limits(target, previous=refused(request, overflow, **policy)))


class TestAfterARefusal:
    def test_new_text_above_the_limit_is_cut(self):
        request = continued()
        limit = tokens_of(request) // 2
        decision, attempt = retry(request, Overflow("input", "x", limit, tokens_of(request)))
        assert decision.changes["truncation"] == "auto"
        assert attempt.sent_tokens <= limit

    def test_truncation_is_asked_for_once(self):
        decision, attempt = retry(continued(truncation="auto"), Overflow("input", "x", WINDOW, WINDOW + 5_000))
        assert isinstance(decision, NotRetried)
        assert attempt.spent
        assert attempt.stored

    @given(asks=st.booleans(), share=st.floats(0.1, 40), kind=st.sampled_from(["input", "input_plus_output"]))
    def test_attempt_says_whether_provider_truncates(self, asks, share, kind):
        """Every retry asks for it: one without would send the whole stored history again."""
        request, previous = continued(**({"truncation": "auto"} if asks else {})), None
        size = tokens_of(request)
        for number in range(3):
            target = to(int(size * share) + 1_000, attempt=number)
            decision, attempt = decided(request, target, limits(target, previous))
            if isinstance(decision, NotRetried):
                assert number > 0
                return
            assert attempt.truncates == (sent(request, decision).fields.get("truncation") == "auto")
            assert attempt.truncates or not number
            previous = replace(attempt, overflow=Overflow(kind, "x"), failed=True)

    def test_too_large_output_is_lowered(self):
        request = continued(max_output_tokens=60_000)
        decision, _ = retry(request, Overflow("input_plus_output", "x", WINDOW, 50_000, 60_000))
        assert decision.changes["max_output_tokens"] < 60_000
        assert "truncation" not in decision.changes


def test_whole_conversation_is_compacted_despite_truncation():
    whole = session("openai-responses", turns=60)
    request = Request("openai-responses", {**whole.fields, "truncation": "auto"})
    target = to(window_tokens=40_000)
    assert tokens_of(request) > target.window.tokens
    decision, attempt = decided(request, target, limits(target))
    assert isinstance(decision, Compressed)
    assert attempt.sent_tokens < target.window.tokens, "nothing is left for the provider to cut"
