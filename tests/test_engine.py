"""One attempt leads to one decision, by what is known when it begins: policy, window, output, prices, what was refused."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import pytest

from ctx_hooks import engine
from ctx_hooks.compaction import last_resort
from ctx_hooks.compaction.cost import Prices
from ctx_hooks.decision import Compressed, GaveUp, NotRetried, Rescued, Untouched, changes_of
from ctx_hooks.engine import Known
from ctx_hooks.learning.stats import ANYONE, DeploymentStats, Observation
from ctx_hooks.overflow.recognise import Overflow
from ctx_hooks.overflow.retry_plan import BLIND_FRACTIONS, LEAST_OUTPUT_TOKENS, SMALLER_FRACTION
from ctx_hooks.policy.settings import Policy
from ctx_hooks.request.request import Request
from ctx_hooks.request.target import Target
from ctx_hooks.runtime.deadline import Deadline
from ctx_hooks.testing import agent_session, violations
from ctx_hooks.tokens.counter import Counter
from ctx_hooks.tokens.vocabulary import vocabulary_of
from ctx_hooks.tokens.window import Window

NOW = 1_000_000_000.0
MODEL = "openai/gpt-4o"
FORMATS = ("openai-chat", "anthropic", "openai-responses", "gemini")
every_format = pytest.mark.parametrize("wire_format", FORMATS)
COUNTER = Counter(vocabulary_of(MODEL))
DEAR_CACHE = Prices(plain=3.0, cache_read=0.3, cache_write=3.75)
NO_CACHE = Prices(plain=1.0, cache_read=1.0, cache_write=1.0)


def session(wire_format="openai-chat", turns=20, **fields):
    return Request(wire_format, {**agent_session(wire_format, turns=turns), **fields})


def tokens_of(request):
    return engine.history_in(request, COUNTER).tokens


def sent(request, decision):
    """Return the request as the decision sends it."""
    return Request(request.format, {**request.fields, **changes_of(decision)})


def to(window_tokens=200_000, *, model=MODEL, attempt=0, prices=None, **policy):
    window = Window(window_tokens, "model_info")
    return Target(model, f"deployment:{model}", window, Policy(**policy), "request", "ann", prices, attempt)


def decided(request, target, known=None):
    return engine.decide(request, target, known or Known(target.window), Deadline(60))


def broken_session(turns=3):
    """Return a session with a result of a call that nobody made."""
    messages = agent_session("openai-chat", turns=turns)["messages"]
    orphan = {"role": "tool", "tool_call_id": "nobody", "content": "orphan"}
    return Request("openai-chat", {"model": MODEL, "messages": [*messages[:-1], orphan, messages[-1]]})


def only_newest_loop():
    """Return a request whose one large part is the result that the model is about to read."""
    call = {"id": "c", "type": "function", "function": {"name": "run", "arguments": "{}"}}
    output = "\n".join(f"line {n} of the output" for n in range(3_000))
    messages = [
        {"role": "user", "content": "q"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c", "content": output},
    ]
    return Request("openai-chat", {"model": MODEL, "messages": messages})


def stored_session():
    """Return a session whose last item is the result of a call in the history that the provider keeps."""
    fields = agent_session("openai-responses", turns=40)
    answer = {"type": "function_call_output", "call_id": "kept_there", "output": "done"}
    return Request("openai-responses", {**fields, "input": [*fields["input"], answer], "previous_response_id": "resp_1"})


STORED = stored_session()


def stats_of(*shown):
    """Return statistics of (kind, tenant, values...)."""
    return DeploymentStats({(kind, tenant): Observation(tuple(values), NOW - 1) for kind, tenant, *values in shown})


class TestBeforeACall:
    @every_format
    def test_what_fits_goes_on_as_it_came(self, wire_format):
        request = session(wire_format, turns=3)
        decision, attempt = decided(request, to())
        assert isinstance(decision, Untouched)
        assert (attempt.received_tokens, attempt.sent_tokens) == (tokens_of(request),) * 2

    @every_format
    def test_what_does_not_fit_is_sent_within_the_budget_and_the_attempt_says_what_was_sent(self, wire_format):
        request = session(wire_format, turns=40)
        before = json.dumps(request.fields)
        decision, attempt = decided(request, to(20_000))
        assert isinstance(decision, Compressed)
        assert decision.figures.tokens_before == attempt.received_tokens == tokens_of(request)
        assert decision.figures.tokens_after == attempt.sent_tokens == tokens_of(sent(request, decision))
        assert decision.figures.tokens_after <= decision.figures.budget_tokens < decision.figures.window_tokens == 20_000
        assert not violations(wire_format, sent(request, decision).fields)
        assert json.dumps(request.fields) == before, "the caller's request stays as it is"

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

    def test_only_the_newest_turns_are_sent_however_much_would_fit(self):
        talk = [{"role": ("user", "assistant")[n % 2], "content": f"turn {n} " * 30} for n in range(9)]
        request = Request("openai-chat", {"model": MODEL, "messages": talk})
        decision, attempt = decided(request, to(max_turns=2))
        assert changes_of(decision)["messages"] == talk[6:]
        assert attempt.received_tokens == tokens_of(request) > attempt.sent_tokens

    @pytest.mark.parametrize("rescue_attempts", [0, 3])
    def test_the_newest_results_are_cut_before_the_call_only_where_the_provider_has_named_its_limit(self, rescue_attempts):
        request = only_newest_loop()
        policy = {"tool_result_max_fraction": 1.0}
        stated, _ = decided(request, to(9_000, **policy, rescue_attempts=rescue_attempts))
        named, _ = decided(request, to(9_000, **policy), Known(Window(9_000, "learned")))
        assert not isinstance(stated, Compressed)
        assert isinstance(named, Compressed)


class TestWhatCompactingCosts:
    """With `cost_aware`, a compaction has to save more than the prompt cache it throws away."""

    request = session(turns=40)
    size = tokens_of(request)
    window_tokens = int(size * 1.02)
    """The request is above the budget, which leaves room for an answer, and the window would hold it."""

    @pytest.mark.parametrize(
        ("prices", "cost_aware", "window_tokens", "compacts"),
        [
            (DEAR_CACHE, True, window_tokens, False),
            (DEAR_CACHE, True, int(size * 0.9), True),
            (DEAR_CACHE, False, window_tokens, True),
            (NO_CACHE, True, window_tokens, True),
            (None, True, window_tokens, True),
        ],
        ids=["does not pay", "the window does not hold it", "whatever it costs", "pays", "prices not known"],
    )
    def test_it_is_not_done_where_it_costs_more_than_it_saves(self, prices, cost_aware, window_tokens, compacts):
        target = to(window_tokens, prices=prices, cost_aware=cost_aware, expected_turns=1)
        decision, attempt = decided(self.request, target)
        assert bool(changes_of(decision)) == compacts
        assert isinstance(decision, Compressed if compacts else Untouched)
        assert (attempt.sent_tokens < self.size) == compacts

    def test_a_retry_asks_for_no_price(self):
        _, first = decided(self.request, to(self.window_tokens, cost_aware=True, prices=DEAR_CACHE, expected_turns=1))
        refused = replace(first, overflow=Overflow("input", "x"), failed=True)
        retry = to(self.window_tokens, cost_aware=True, prices=DEAR_CACHE, expected_turns=1, attempt=1)
        decision, _ = decided(self.request, retry, Known(Window(self.window_tokens, "model_info"), previous=refused))
        assert isinstance(decision, Rescued)


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


class TestBySizeAlone:
    small = Request("openai-chat", {"model": MODEL, "messages": [{"role": "user", "content": "hi"}]})

    def test_what_is_small_in_any_vocabulary_is_not_counted(self):
        decision, attempt = engine.decide_by_size(self.small, to(), Known(to().window))
        assert isinstance(decision, Untouched)
        assert attempt.sent_tokens is None
        assert attempt.most_tokens >= tokens_of(self.small)

    def test_what_could_be_too_long_is_counted(self):
        assert engine.decide_by_size(session(turns=40), to(20_000), Known(Window(20_000, "model_info"))) is None

    def test_what_has_to_be_counted_is(self):
        assert engine.decide_by_size(self.small, to(), Known(to().window, counts=True)) is None

    @pytest.mark.parametrize("policy", [{"repair": "always"}, {"max_turns": 3}], ids=str)
    def test_a_policy_that_changes_what_fits_has_every_request_counted(self, policy):
        assert engine.known_of(to(**policy), DeploymentStats(), NOW).counts
        assert not engine.known_of(to(), DeploymentStats(), NOW).counts

    def test_a_retry_and_a_tenant_with_an_odd_bill_are_counted(self):
        assert engine.known_of(to(attempt=1), DeploymentStats(), NOW).counts
        assert engine.known_of(to(), stats_of(("low_bill", "ann", 0, 4_000)), NOW).counts
        assert not engine.known_of(to(), stats_of(("low_bill", "bob", 0, 4_000)), NOW).counts


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
        decision, attempt = decided(request, to(), known) if counts else engine.decide_by_size(request, to(), known)
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


class TestRetries:
    request = session(turns=40)
    size = tokens_of(request)

    def refused(self, overflow, number=0, **fields):
        _, attempt = decided(self.request, to())
        return replace(attempt, overflow=overflow, failed=True, number=number, first_tokens=self.size, **fields)

    def retry(self, overflow, *, attempt=1, request=None, stats=None, refused=None, **policy):
        target = to(attempt=attempt, **policy)
        previous = refused or self.refused(overflow)
        known = engine.known_of(target, stats or DeploymentStats(), NOW, previous)
        return known, *decided(request or self.request, target, known)

    def test_what_is_sent_again_is_smaller_by_a_margin(self):
        for number in (1, 2, 3):
            _, decision, attempt = self.retry(Overflow("input", "x"), attempt=number)
            assert isinstance(decision, Rescued)
            assert decision.attempt == attempt.number == number
            assert attempt.sent_tokens <= self.size * SMALLER_FRACTION

    def test_what_the_error_names_is_kept_to_at_once(self):
        limit = int(self.size * 0.2)
        known, decision, attempt = self.retry(Overflow("input", "x", limit, self.size))
        assert known.window == Window(limit, "refusal")
        assert attempt.sent_tokens <= limit
        assert decision.figures.window_tokens == limit

    def test_what_only_the_provider_sees_is_set_aside(self):
        """It counts 9,000 more than is counted here: a stored history, or an image."""
        limit = int(self.size * 0.7)
        known, _, attempt = self.retry(Overflow("input", "x", limit, self.size + 9_000))
        assert known.window.tokens == limit - 9_000
        assert attempt.sent_tokens + 9_000 <= limit

    def test_where_that_alone_exceeds_the_limit_nothing_is_sent_again(self):
        """The provider counts four times what is counted here: cutting the rest to nothing would not help."""
        _, decision, attempt = self.retry(Overflow("input", "x", self.size * 2, self.size * 4))
        assert isinstance(decision, NotRetried)
        assert attempt.spent

    def test_a_difference_within_the_estimates_error_is_nothing_unseen(self):
        known, decision, _ = self.retry(Overflow("input", "x", 100, self.size + 90))
        assert known.window.tokens == 100
        assert not isinstance(decision, NotRetried)

    def test_a_count_that_is_only_a_lower_bound_sets_nothing_aside(self):
        limit = int(self.size * 0.7)
        known, _, _ = self.retry(Overflow("input", "x", limit, self.size + 9_000, at_least=True))
        assert known.window.tokens == limit

    def test_a_limit_without_a_count_is_kept_to_with_room_to_spare(self):
        known, _, attempt = self.retry(Overflow("input", "x", int(self.size * 0.7)))
        assert attempt.sent_tokens < known.window.tokens < self.size * 0.7

    @pytest.mark.parametrize("counted", [None, size + 9_000])
    def test_without_a_limit_a_share_of_what_was_refused_is_taken_for_it(self, counted):
        known, _, _ = self.retry(Overflow("input", "x", None, counted))
        assert known.window == Window(int(self.size * BLIND_FRACTIONS[0]), "refusal")

    @pytest.mark.parametrize("unknown", [{"overflow": None}, {"sent_tokens": None}], ids=str)
    def test_what_is_not_known_of_a_refusal_says_nothing_of_the_window(self, unknown):
        refused = replace(self.refused(Overflow("input", "x", 20_000, self.size)), **unknown)
        known, decision, attempt = self.retry(None, refused=refused)
        assert known.window == to().window
        if refused.sent_tokens is None:
            assert isinstance(decision, Untouched)
        else:
            assert attempt.sent_tokens <= self.size * SMALLER_FRACTION

    def test_a_refusal_never_makes_a_window_larger(self):
        known, _, _ = self.retry(Overflow("input", "x", 10**6, self.size))
        assert known.window == to().window

    def test_a_refusal_of_another_deployment_says_nothing_of_this_one(self):
        elsewhere = self.refused(Overflow("input", "x", 20_000, self.size), deployment="another")
        known, _, _ = self.retry(None, refused=elsewhere)
        assert known.window == to().window

    def test_a_refused_output_says_nothing_of_the_window(self):
        asked = session(turns=40, max_tokens=64_000)
        overflow = Overflow("output_limit", "x", limit_tokens=8_192, requested_output_tokens=64_000)
        known, decision, attempt = self.retry(overflow, request=asked)
        assert known.window == to().window
        assert isinstance(decision, Rescued)
        assert dict(changes_of(decision)) == {"max_tokens": 8_192}
        assert (attempt.sent_tokens, attempt.output_tokens, attempt.lowered) == (self.size, 8_192, True)

    def test_an_output_that_does_not_fit_beside_the_input_gives_way_and_the_conversation_stays_whole(self):
        limit = int(self.size * 1.1)
        asked = session(turns=40, max_tokens=self.size // 2)
        overflow = Overflow("input_plus_output", "x", limit, self.size, self.size // 2)
        _, decision, attempt = self.retry(overflow, request=asked)
        assert list(changes_of(decision)) == ["max_tokens"]
        assert LEAST_OUTPUT_TOKENS <= attempt.output_tokens < limit - self.size

    def test_where_the_size_of_what_was_refused_is_not_known_the_budget_holds(self):
        asked = session(turns=40, max_tokens=8_000)
        refused = self.refused(Overflow("input_plus_output", "x", 20_000, 19_000, 8_000), sent_tokens=None)
        decision, attempt = decided(asked, to(20_000, attempt=1), Known(Window(20_000, "model_info"), previous=refused))
        assert attempt.sent_tokens <= decision.figures.budget_tokens < 20_000

    def test_an_output_is_lowered_once_and_then_the_conversation_gives_way(self):
        asked = session(turns=40, max_tokens=64_000)
        overflow = Overflow("input_plus_output", "x", 100_000, self.size, 64_000)
        lowered = self.refused(overflow, lowered=True, number=1)
        _, decision, attempt = self.retry(overflow, request=asked, refused=lowered, attempt=2)
        assert "messages" in changes_of(decision)
        assert attempt.sent_tokens <= self.size * SMALLER_FRACTION

    def test_a_retry_that_would_be_no_smaller_is_not_sent_and_the_attempt_is_spent(self):
        only = Request("openai-chat", {"model": MODEL, "messages": [{"role": "user", "content": "Do it. " * 50}]})
        _, first = decided(only, to())
        refused = replace(first, overflow=Overflow("input", "x"), failed=True)
        known = Known(to().window, counts=True, previous=refused)
        decision, attempt = decided(only, to(attempt=1), known)
        assert isinstance(decision, NotRetried)
        assert decision.reason
        assert attempt == replace(refused, spent=True)

    @pytest.mark.parametrize("number", [1, 2])
    def test_the_newest_results_stay_whole_while_older_ones_can_give_way(self, number):
        newest = only_newest_loop().items
        request = Request("openai-chat", {"model": MODEL, "messages": [*self.request.items, *newest]})
        _, first = decided(request, to())
        refused = replace(first, overflow=Overflow("input", "x"), failed=True, deployment="another")
        decision, attempt = decided(request, to(attempt=number), Known(to().window, previous=refused))
        assert attempt.sent_tokens <= first.sent_tokens * SMALLER_FRACTION
        assert changes_of(decision)["messages"][-1] == newest[-1]

    def test_the_newest_results_are_cut_where_nothing_else_is_left(self):
        request = only_newest_loop()
        _, first = decided(request, to())
        refused = replace(first, overflow=Overflow("input", "x"), failed=True)
        target = to(attempt=1, tool_result_max_fraction=1.0)
        for known in (
            engine.known_of(target, DeploymentStats(), NOW, refused),
            Known(target.window, previous=replace(refused, deployment="another")),
        ):
            decision, attempt = decided(request, target, known)
            assert isinstance(decision, Rescued)
            assert attempt.sent_tokens <= first.sent_tokens * SMALLER_FRACTION


class TestWhatIsKnown:
    def test_a_learned_limit_holds_where_it_is_smaller(self):
        assert engine.known_of(to(), stats_of(("limit", "ann", 60_000)), NOW).window == Window(60_000, "learned")
        assert engine.known_of(to(), stats_of(("limit", "ann", 600_000)), NOW).window == to().window

    def test_what_another_tenant_was_told_is_bounded_by_the_policys_floor(self):
        stats = stats_of(("limit", "bob", 8_000))
        assert engine.known_of(to(), stats, NOW).window.tokens == 100_000
        assert engine.known_of(to(learned_limit_floor_fraction=0.9), stats, NOW).window.tokens == 180_000

    def test_whether_the_window_holds_the_output_is_learned_both_ways(self):
        assert engine.known_of(to(), DeploymentStats(), NOW).window.holds_output
        apart = replace(to(), window=Window(200_000, "model_info", holds_output=False))
        held = stats_of(("holds_output", "ann", 1))
        assert engine.known_of(apart, held, NOW).window.holds_output
        assert not engine.known_of(apart, DeploymentStats(), NOW).window.holds_output
        exceeded = stats_of(("accepted_total", ANYONE, 230_000))
        assert not engine.known_of(to(), exceeded, NOW).window.holds_output

    def test_what_the_policy_says_of_the_output_stands_above_what_was_learned(self):
        apart = replace(to(window_holds_output=False), window=Window(200_000, "model_info", holds_output=False))
        assert not engine.known_of(apart, stats_of(("holds_output", "ann", 1)), NOW).window.holds_output

    def test_the_ratio_is_learned_unless_the_policy_forbids_it(self):
        stats = stats_of(("ratios", "ann", 1.2, 1.2))
        assert engine.known_of(to(), stats, NOW).factor == 1.2
        assert engine.known_of(to(calibrate=False), stats, NOW).factor == 1.0

    def test_the_largest_output_is_learned(self):
        assert engine.known_of(to(), stats_of(("output_limit", "ann", 4_096)), NOW).output_limit_tokens == 4_096

    def test_what_is_old_is_not_known(self):
        stats = stats_of(("limit", "ann", 60_000), ("holds_output", "ann", 1), ("output_limit", "ann", 4_096))
        later = time.time()
        assert engine.known_of(to(), stats, later).window == to().window
        assert engine.known_of(to(), stats, later).output_limit_tokens is None


class TestTheLastResort:
    """Without a deadline: sizes are estimated, nothing is counted, and what is sent teaches nothing."""

    @every_format
    def test_the_oldest_turns_are_dropped(self, wire_format):
        request = session(wire_format, turns=40)
        target = to(20_000)
        decision, attempt = engine.decide(request, target, Known(target.window))
        assert isinstance(decision, Compressed)
        assert [step.name for step in decision.steps] == [last_resort.NAME]
        assert not violations(wire_format, sent(request, decision).fields)
        assert attempt.guessed_tokens >= attempt.sent_tokens
        assert tokens_of(sent(request, decision)) < 20_000

    def test_what_answers_a_call_that_the_provider_keeps_stays(self):
        decision, _ = engine.decide(STORED, to(20_000), Known(Window(20_000, "model_info")))
        assert [step.name for step in decision.steps] == [last_resort.NAME]
        assert decision.changes["input"][-1] == STORED.items[-1]
