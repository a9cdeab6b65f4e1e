"""Broken messages are repaired where the policy says so, whether or not the request is compressed."""

import pytest
from engine_requests import DEAR_CACHE, MODEL, broken_session, decided, sent, to, tokens_of

from ctx_hooks.decision import Compressed, changes_of
from ctx_hooks.request.request import Request
from ctx_hooks.testing import agent_session, violations


class TestRepair:
    """`repair: always` repairs what fits as well, `auto` what is compressed, `off` nothing."""

    @pytest.mark.parametrize(("repair", "repaired"), [("always", True), ("auto", False), ("off", False)])
    def test_a_request_that_fits(self, repair, repaired):
        request = broken_session()
        decision, _ = decided(request, to(repair=repair))
        assert bool(violations("openai-chat", request.fields))
        assert bool(violations("openai-chat", sent(request, decision).fields)) != repaired

    def test_a_request_that_is_not_made_smaller(self):
        """To compact it does not pay; what is broken is repaired all the same."""
        request = broken_session(turns=20)
        cost = {"cost_aware": True, "expected_turns": 1, "prices": DEAR_CACHE}
        window_tokens = int(tokens_of(request) * 1.02)
        left, _ = decided(request, to(window_tokens, repair="auto", **cost))
        assert not changes_of(left)
        decision, _ = decided(request, to(window_tokens, repair="always", **cost))
        assert not violations("openai-chat", sent(request, decision).fields)
        assert len(changes_of(decision)["messages"]) == len(request.items) - 1

    @pytest.mark.parametrize(("repair", "repaired"), [("always", True), ("auto", True), ("off", False)])
    def test_a_request_that_is_compressed(self, repair, repaired):
        messages = agent_session("openai-chat", turns=40)["messages"]
        orphan = {"role": "tool", "tool_call_id": "nobody", "content": "orphan"}
        request = Request("openai-chat", {"model": MODEL, "messages": [*messages, orphan, messages[-1]]})
        decision, _ = decided(request, to(20_000, repair=repair))
        assert isinstance(decision, Compressed)
        assert tokens_of(sent(request, decision)) == decision.figures.tokens_after <= decision.figures.budget_tokens
        assert bool(violations("openai-chat", sent(request, decision).fields)) != repaired
