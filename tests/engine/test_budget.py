"""What does not fit is sent within the budget, and what fits goes on as it came."""

import json
from dataclasses import replace

import pytest
from engine_requests import MODEL, STORED, decided, only_newest_loop, sent, session, to, tokens_of
from strategies import FIELDS, every_format

from ctx_hooks import engine
from ctx_hooks.decision import Compressed, GaveUp, Untouched, changes_of
from ctx_hooks.learning.known import Known
from ctx_hooks.request.request import Request
from ctx_hooks.testing import agent_session, violations
from ctx_hooks.tokens.window import Window


class TestBeforeACall:
    @every_format
    def test_what_does_not_fit_is_sent_within_the_budget_and_the_attempt_says_what_was_sent(self, fmt):
        request = session(fmt, turns=40)
        before = json.dumps(request.fields)
        decision, attempt = decided(request, to(20_000))
        assert isinstance(decision, Compressed)
        assert decision.figures.tokens_before == attempt.received_tokens == tokens_of(request)
        assert decision.figures.tokens_after == attempt.sent_tokens == tokens_of(sent(request, decision))
        assert decision.figures.tokens_after <= decision.figures.budget_tokens < decision.figures.window_tokens == 20_000
        assert not violations(fmt, sent(request, decision).fields)
        assert json.dumps(request.fields) == before, "the caller's request stays as it is"

    @every_format
    @pytest.mark.parametrize("window_tokens", [20_000, 6_000, 2_000])
    def test_system_text_tools_and_the_newest_words_stay_however_small_the_window(self, fmt, window_tokens):
        newest = "Which of these files names the piano?"
        turn = {"role": "user", "parts": [{"text": newest}]} if fmt == "gemini" else {"role": "user", "content": newest}
        fields = session(fmt, turns=40).fields
        request = Request(fmt, {**fields, FIELDS[fmt]: [*fields[FIELDS[fmt]], turn]})
        known = Known(to(window_tokens).window)
        for decision in (
            decided(request, to(window_tokens))[0],
            engine.decide_by_last_resort(request, to(window_tokens), known)[0],
        ):
            changes = changes_of(decision)
            assert changes.keys() <= {FIELDS[fmt], "max_tokens", "max_output_tokens"}, "no tools, no instructions"
            assert changes[FIELDS[fmt]] != request.items
            assert newest in json.dumps(changes[FIELDS[fmt]][-1])
            if request.items[0].get("role") == "system":
                assert changes[FIELDS[fmt]][0] == request.items[0]

    def test_a_result_that_is_cut_as_it_arrives_stays_paired_with_a_call_that_has_no_id(self):
        """Gemini CLI gives its responses ids of its own, which no call of the model's has."""
        fields = agent_session("gemini", turns=6)
        for n, content in enumerate(fields["contents"]):
            for part in content["parts"]:
                if "functionResponse" in part:
                    text = "\n".join(f"line {k} of answer {n}" for k in range(4_000))
                    part["functionResponse"] |= {"id": f"cli-{n}", "response": {"output": text}}
        request = Request("gemini", {**fields, "contents": fields["contents"][:-1]})
        decision, _ = decided(request, to(16_000))
        assert isinstance(decision, Compressed)
        newest = decision.changes["contents"][-1]["parts"][0]["functionResponse"]
        assert newest["id"] == request.items[-1]["parts"][0]["functionResponse"]["id"]
        assert "line 0 of answer" in newest["response"]["output"]
        assert not violations("gemini", sent(request, decision).fields)

    def test_a_budget_is_in_the_providers_tokens(self):
        """A provider with twice as many tokens per local token gets half as many local tokens."""
        request = session(turns=40)
        whole, _ = decided(request, to(40_000))
        halved, attempt = decided(request, to(40_000), Known(Window(40_000, "model_info"), factor=2.0))
        assert halved.figures.budget_tokens == pytest.approx(whole.figures.budget_tokens, abs=2)
        assert halved.figures.tokens_after == pytest.approx(2 * attempt.sent_tokens, abs=2)
        assert attempt.sent_tokens * 2 <= 40_000

    @pytest.mark.parametrize(("words", "reserve_tokens"), [(100, 8_192), (1_500, 16_384), (2_500, 32_768)])
    def test_the_dynamic_reserve_follows_the_mean_of_the_newest_messages(self, words, reserve_tokens):
        newest = [{"role": ("user", "assistant")[n % 2], "content": "word " * words} for n in range(10)]
        messages = [{"role": "user", "content": "word " * 150_000}, {"role": "assistant", "content": "a"}, *newest]
        request = Request(
            "openai-chat", {"model": MODEL, "messages": [*messages, {"role": "user", "content": "word " * words}]}
        )
        decision, _ = decided(request, to(140_000, reserve="dynamic"))
        assert decision.figures.budget_tokens == 140_000 - reserve_tokens

    def test_what_answers_a_call_that_the_provider_keeps_stays(self):
        """The call stands in the stored history, so its result is no orphan."""
        decision, _ = decided(STORED, to(20_000))
        assert isinstance(decision, Compressed)
        assert decision.changes["input"][-1] == STORED.items[-1]

    def test_a_conversation_that_goes_on_is_left_room_and_a_single_question_is_not(self):
        """A first request fills the window: nothing shows that turns will follow."""
        pages = [{"role": "user", "content": f"page {n}: " + f"words of page {n} " * 400} for n in range(30)]
        first = Request("openai-chat", {"model": MODEL, "messages": [*pages, {"role": "user", "content": "Summarise."}]})
        decision, attempt = decided(first, to(20_000))
        assert isinstance(decision, Compressed)
        assert attempt.sent_tokens > 0.85 * decision.figures.budget_tokens
        decision, attempt = decided(session(turns=40), to(20_000, target_fraction=0.5))
        assert attempt.sent_tokens < 0.75 * decision.figures.budget_tokens

    def test_what_cannot_be_made_to_fit_goes_on_as_small_as_it_got(self):
        request = Request("openai-chat", agent_session("openai-chat", question="the user's own words " * 8_000))
        decision, attempt = decided(request, to(10_000))
        assert isinstance(decision, GaveUp)
        assert decision.reason
        assert attempt.sent_tokens == tokens_of(sent(request, decision)) < tokens_of(request)

    @every_format
    @pytest.mark.parametrize("compaction", ["full", "gentle"])
    def test_what_nothing_is_cut_from_though_it_does_not_fit_is_no_untouched_request(self, fmt, compaction):
        request = Request(fmt, agent_session(fmt, turns=0, question="the user's own words " * 8_000))
        decision, attempt = decided(request, to(10_000, compaction=compaction))
        assert isinstance(decision, GaveUp)
        assert decision.reason
        assert sent(request, decision).items == request.items
        assert attempt.sent_tokens == attempt.received_tokens > decision.figures.budget_tokens

    def test_only_the_newest_turns_are_sent_however_much_would_fit(self):
        talk = [{"role": ("user", "assistant")[n % 2], "content": f"turn {n} " * 30} for n in range(9)]
        request = Request("openai-chat", {"model": MODEL, "messages": talk})
        decision, attempt = decided(request, to(max_turns=2))
        assert changes_of(decision)["messages"] == talk[6:]
        assert attempt.received_tokens == tokens_of(request) > attempt.sent_tokens

    @pytest.mark.parametrize("rescue_attempts", [0, 3])
    def test_the_newest_results_are_cut_before_the_call_only_where_a_larger_request_is_refused_for_certain(
        self, rescue_attempts
    ):
        """The provider has named its limit, or the Router compares requests with the window itself."""
        request = only_newest_loop()
        policy = {"tool_result_max_fraction": 1.0}
        stated, _ = decided(request, to(9_000, **policy, rescue_attempts=rescue_attempts))
        named, _ = decided(request, to(9_000, **policy), Known(Window(9_000, "learned")))
        checked, _ = decided(request, replace(to(9_000, **policy, rescue_attempts=rescue_attempts), checked=True))
        assert not isinstance(stated, Compressed)
        assert isinstance(named, Compressed)
        assert isinstance(checked, Compressed)

    def test_where_the_router_counts_for_itself_an_estimates_error_is_left_free(self):
        request = session(turns=20)
        window = int(tokens_of(request) * 1.02)
        assert isinstance(decided(request, to(window, reserve_tokens=0))[0], Untouched)
        fitted, attempt = decided(request, replace(to(window, reserve_tokens=0), checked=True))
        assert isinstance(fitted, Compressed)
        assert attempt.sent_tokens * 1.05 <= window


class TestAClientThatCompactsFirst:
    """It is left the window but for the estimate's error; what exceeds that is fitted as ever."""

    request = session(turns=20)
    size = tokens_of(request)

    def decide(self, window_tokens, *, waits):
        target = replace(to(window_tokens), waits=waits)
        return decided(self.request, target)

    def test_what_the_window_holds_is_left_to_it(self):
        window_tokens = int(self.size * 1.06)
        assert isinstance(self.decide(window_tokens, waits=True)[0], Untouched)
        assert isinstance(self.decide(window_tokens, waits=False)[0], Compressed)

    def test_what_the_window_does_not_hold_is_fitted(self):
        decision, attempt = self.decide(int(self.size * 0.9), waits=True)
        assert isinstance(decision, Compressed)
        assert attempt.sent_tokens < self.size
