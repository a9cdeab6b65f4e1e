"""What does not fit is sent within the budget, and what fits goes on as it came."""

import json
from contextlib import ExitStack
from dataclasses import replace
from typing import get_args

import pytest
from engine_requests import (
    DEAR_CACHE,
    MODEL,
    NO_CACHE,
    STORED,
    by_size,
    decided,
    only_newest_loop,
    sent,
    session,
    to,
    tokens_of,
)
from hypothesis import given
from hypothesis import strategies as st
from strategies import FIELDS, FORMATS, called, every_format, spoken, tool_round

import ctx_hooks
from ctx_hooks.attempts.attempt import Limits
from ctx_hooks.attempts.request import Request
from ctx_hooks.compaction import last_resort
from ctx_hooks.compaction.last_resort import BYTES_PER_TOKEN
from ctx_hooks.compaction.plain_cut import json_bytes, plain_cut
from ctx_hooks.flow import engine, uncounted
from ctx_hooks.flow.decision import Compressed, FailedOpen, GaveUp, Untouched
from ctx_hooks.formats import WIRE_FORMATS
from ctx_hooks.overflow.recognise import Overflow
from ctx_hooks.overflow.retry_plan import BLIND_FRACTION
from ctx_hooks.policy.settings import Policy
from ctx_hooks.runtime.deadline import Deadline
from ctx_hooks.telemetry.listeners import on
from ctx_hooks.testing import agent_session, violations
from ctx_hooks.tokens.budget import Window
from ctx_hooks.tokens.counter import Counter


class TestBeforeACall:
    def test_protected_text_leaves_room_for_briefest_record(self):
        """The first attempt may not cut the newest results, and its budget is no target."""
        turns = []
        for n in range(40):
            turns += called(
                f"line of part_{n} in src/file_{n * 7919}.py\n" * 10, f"c{n}", "bash", {"command": f"make part_{n}"}
            )
            turns += [{"role": "assistant", "content": f"Part {n} is done: the cause was in handler_{n}; the test passes."}]
            turns += [{"role": "user", "content": f"Now go on with part {n + 1}, and mind rule_{n} as agreed."}]
        system = {"role": "system", "content": "Mind the rule of the house now. " * 1_260}
        request = Request("openai-chat", {"model": MODEL, "messages": [system, {"role": "user", "content": "Go."}, *turns]})
        decision, _ = decided(request, to(12_000))
        assert isinstance(decision, Compressed)
        assert decision.figures.tokens_after <= decision.figures.budget_tokens

    def test_unfitting_request_is_as_small_as_possible(self):
        """Its provider may take it: the budget has a reserve, and sizes are estimates."""
        words = [{"role": "user", "content": f"And mind rule_{n} of handler_{n} as agreed."} for n in range(40)]
        turns = [
            m for n, word in enumerate(words) for m in (word, *called("line\n" * 90, f"c{n}", "bash", {"command": "make"}))
        ]
        protected = [{"role": "system", "content": "Mind the rule of the house now. " * 1_400}, turns[-3], *turns[-2:]]
        sent = ctx_hooks.compress([protected[0], *turns], format="openai-chat", budget_tokens=9_800, target_tokens="auto")
        assert not sent.fits
        counter = Counter("o200k_base")
        least = counter.conversation(WIRE_FORMATS["openai-chat"].read(protected))
        assert sent.tokens_after <= least + 60

    @every_format
    def test_request_is_sent_within_budget(self, fmt):
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
    @pytest.mark.parametrize("window_tokens", [20_000, 2_000])
    def test_system_text_tools_and_newest_words_stay(self, fmt, window_tokens):
        newest = "Which of these files names the piano?"
        fields = session(fmt, turns=40).fields
        request = Request(fmt, {**fields, FIELDS[fmt]: [*fields[FIELDS[fmt]], spoken(fmt, "user", newest)]})
        limits = Limits(to(window_tokens).window)
        for decision in (
            decided(request, to(window_tokens))[0],
            engine.decide_by_last_resort(request, to(window_tokens), limits)[0],
        ):
            changes = decision.changes
            assert changes.keys() <= {FIELDS[fmt], "max_tokens", "max_output_tokens"}, "no tools, no instructions"
            assert changes[FIELDS[fmt]] != request.items
            assert newest in json.dumps(changes[FIELDS[fmt]][-1])
            if request.items[0].get("role") == "system":
                assert changes[FIELDS[fmt]][0] == request.items[0]

    def test_cut_result_stays_paired_without_call_id(self):
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

    def test_result_of_stored_call_stays(self):
        """The call stands in the stored history, so its result is no orphan."""
        hasty = engine.decide_by_last_resort(STORED, to(20_000), Limits(Window(20_000, "model_info")))[0]
        assert [step.name for step in hasty.steps] == [last_resort.NAME]
        for decision in (decided(STORED, to(20_000))[0], hasty):
            assert isinstance(decision, Compressed)
            assert decision.changes["input"][-1] == STORED.items[-1]

    @pytest.mark.parametrize("turns", [0, 12])
    @every_format
    def test_request_above_budget_is_given_up(self, fmt, turns):
        request = Request(fmt, agent_session(fmt, turns=turns, question="the user's own words " * 8_000))
        decision, attempt = decided(request, to(10_000))
        assert isinstance(decision, GaveUp)
        assert decision.reason
        assert attempt.sent_tokens == tokens_of(sent(request, decision)) > decision.figures.budget_tokens
        assert (attempt.sent_tokens < attempt.received_tokens) == bool(turns)

    @pytest.mark.parametrize("rescue_attempts", [0, 3])
    def test_newest_results_are_cut_below_certain_refusal(self, rescue_attempts):
        """The provider has named its limit, or the Router compares requests with the window itself."""
        request = only_newest_loop()
        policy = {"tool_results": {"max_fraction": 1.0}}
        stated, _ = decided(request, to(9_000, **policy, rescue_attempts=rescue_attempts))
        named, _ = decided(request, to(9_000, **policy), Limits(Window(9_000, "learned")))
        checked, _ = decided(request, replace(to(9_000, **policy, rescue_attempts=rescue_attempts), checked=True))
        assert not isinstance(stated, Compressed)
        assert isinstance(named, Compressed)
        assert isinstance(checked, Compressed)


def test_request_is_counted_unless_surely_small():
    small = Request("openai-chat", {"model": MODEL, "messages": [{"role": "user", "content": "hi"}]})
    decision, attempt = by_size(small, to())
    assert isinstance(decision, Untouched)
    assert attempt.sent_tokens is None
    assert attempt.most_tokens >= tokens_of(small)
    assert by_size(session(turns=40), to(20_000)) is None
    for target in (replace(to(), retried=False), to(max_turns=3), to(attempt=1)):
        assert by_size(small, target) is None


@pytest.mark.parametrize(("window_tokens", "compaction"), [(200_000, "full"), (8_000, "full"), (8_000, "cost_aware")])
def test_result_leaves_with_its_call(window_tokens, compaction):
    """OpenAI's responses take a user's words between a call and its output."""
    items = []
    for n in range(9):
        items += [spoken("openai-responses", "user", f"Read part {n}. " * 200)]
        call, output = tool_round("openai-responses", [(f"call_{n}", "done")])
        items += [call, spoken("openai-responses", "user", f"Mind rule {n}. " * 400), output]
    request = Request("openai-responses", {"model": MODEL, "input": items})
    where = to(window_tokens, prices=DEAR_CACHE, max_turns=3, compaction=compaction)
    assert violations("openai-responses", request.fields) == []
    assert violations("openai-responses", sent(request, decided(request, where)[0]).fields) == []


@pytest.mark.parametrize("margin", [0.5, 1.0, 1.04])
@pytest.mark.parametrize("compaction", get_args(Policy.model_fields["compaction"].annotation))
def test_no_strategy_sends_more_than_the_window(compaction, margin):
    """The same is sent as with `full`, so that none causes a refusal that another would have avoided."""
    request = session(turns=40)
    window_tokens = int(tokens_of(request) * margin)
    full, attempt = decided(request, to(window_tokens, prices=DEAR_CACHE))
    found, _ = decided(request, replace(to(window_tokens, prices=DEAR_CACHE, compaction=compaction), waits=False))
    assert attempt.sent_tokens <= window_tokens
    assert found.changes == full.changes


PLAIN = {(fmt, turns): session(fmt, turns) for fmt in FORMATS for turns in (1, 8)}


def test_pairing_is_repaired_only_in_compressed_requests():
    messages = agent_session("openai-chat", turns=40)["messages"]
    orphan = {"role": "tool", "tool_call_id": "nobody", "content": "orphan"}
    request = Request("openai-chat", {"model": MODEL, "messages": [*messages, orphan, messages[-1]]})
    assert not decided(request, to())[0].changes
    decision, _ = decided(request, to(20_000))
    assert violations("openai-chat", request.fields)
    assert not violations("openai-chat", sent(request, decision).fields)


class TestWhatCompactingCosts:
    """With `cost_aware`, a compaction has to save more than the prompt cache it throws away."""

    request = session(turns=40)
    size = tokens_of(request)
    window_tokens = int(size * 1.07)
    """The request is above the budget, which leaves room for an answer, and the window would hold it."""

    @pytest.mark.parametrize(("prices", "cost_aware", "window_tokens", "compacts"), [
        (DEAR_CACHE, True, window_tokens, False), (DEAR_CACHE, True, int(size * 0.9), True),
        (DEAR_CACHE, False, window_tokens, True), (NO_CACHE, True, window_tokens, True), (None, True, window_tokens, True),
    ], ids=["does not pay", "the window does not hold it", "whatever it costs", "pays", "prices not known"])  # fmt: skip
    def test_costly_compaction_is_not_made(self, prices, cost_aware, window_tokens, compacts):
        target = to(window_tokens, prices=prices, compaction="cost_aware" if cost_aware else "full")
        decision, attempt = decided(self.request, target)
        assert bool(decision.changes) == compacts
        assert isinstance(decision, Compressed if compacts else Untouched)
        assert (attempt.sent_tokens < self.size) == compacts
        assert ("cost more" in decision.reason) != compacts

    def test_window_is_compared_in_provider_tokens(self):
        """The local tokens are below the window's figure; the provider counts 1.3 for each of them."""
        window = Window(self.window_tokens, "model_info")
        target = to(self.window_tokens, prices=DEAR_CACHE, compaction="cost_aware")
        decision, _ = decided(self.request, target, Limits(window, factor=1.3))
        assert isinstance(decision, Compressed)
        assert decision.figures.tokens_after <= decision.figures.budget_tokens

    def test_retry_asks_for_no_price(self):
        target = to(self.window_tokens, compaction="cost_aware", prices=DEAR_CACHE)
        refused = replace(decided(self.request, target)[1], overflow=Overflow("input", "x"), failed=True)
        decision, _ = decided(self.request, replace(target, attempt=1), Limits(target.window, previous=refused))
        assert isinstance(decision, Compressed)


@pytest.mark.parametrize(("source", "room", "is_whole"), [
    ("model_info", 1.01, True), ("model_info", 0.99, False), ("default", 0.5, True),
])  # fmt: skip
def test_deferring_request_is_whole_up_to_window(source, room, is_whole):
    """A larger fallback holds it whole; the window has room for the estimate's error and for a usual answer."""
    request = session(turns=20)
    window = int(tokens_of(request) * 1.05 / 0.99 * room)
    target = replace(to(reserve="50%"), window=Window(window, source))
    decision, _ = decided(request, replace(target, defers=True))
    assert isinstance(decision, Untouched) is is_whole
    assert not decision.changes
    assert engine.holds(request, target, Limits(target.window), Deadline(60)) is is_whole


@pytest.mark.parametrize("name", ["after_compaction", "compaction"])
@given(share=st.floats(0.1, 0.9), factor=st.sampled_from([0.8, 1.0, 1.3]), observes=st.booleans())
def test_listeners_hear_figures_of_decision(name, share, factor, observes):
    request, heard = TestWhatCompactingCosts.request, []
    window = Window(int(TestWhatCompactingCosts.size * factor * share), "model_info")
    with ExitStack() as ends:
        for told in ("before_compaction", name):
            ends.callback(on(told, heard.append))
        target = to(window.tokens, mode="observe" if observes else "enforce")
        decision, _ = decided(request, target, Limits(window, factor))
    decided(request, target, Limits(window, factor))
    before, after = heard
    figures = decision.figures
    assert (before.name, before.request_id, before.mode) == ("before_compaction", "request", target.policy.mode)
    assert (before.tokens_before, before.budget_tokens) == (figures.tokens_before, figures.budget_tokens)
    assert before.tokens_after is None
    assert before.reserve_tokens == figures.window_tokens - figures.budget_tokens
    assert before.usage_fraction * window.tokens == pytest.approx(figures.tokens_before)
    made = {"tokens_after": figures.tokens_after, "steps": tuple(step.name for step in decision.steps)}
    touched = sum(step.messages_touched for step in decision.steps)
    assert after == replace(before, name="after_compaction", messages_touched=touched, **made)


@every_format
@given(
    limit=st.none() | st.integers(1, 30_000),
    number=st.integers(0, 3),
    window_tokens=st.integers(1, 30_000),
    turns=st.sampled_from([1, 8]),
)
def test_plain_cut_keeps_named_limit(fmt, limit, number, window_tokens, turns):
    """A retry has at most the limit that the refusal names, and always less than the attempt before it."""
    request, target = PLAIN[fmt, turns], to(window_tokens, attempt=number)
    refused = replace(decided(request, to())[1], overflow=Overflow("input", "x", limit)) if number else None
    decision, attempt = uncounted.decide_by_plain_cut(request, target, refused, "failed")[:2]
    most = min(window_tokens, limit or window_tokens) if number else window_tokens
    whole = json_bytes(request.items) + json_bytes(request.beside)
    most_bytes = min(most * BYTES_PER_TOKEN, whole * BLIND_FRACTION**number)
    kept = sent(request, decision).items
    assert list(kept) == plain_cut(request.items, int(most_bytes) - json_bytes(request.beside))
    if whole <= most_bytes:
        assert isinstance(decision, FailedOpen)
    if not isinstance(decision, FailedOpen):
        assert decision.figures.budget_tokens == most
        assert decision.figures.tokens_before - decision.figures.tokens_after == decision.steps[0].tokens_saved > 0
        assert decision.steps[0].messages_touched == len(request.items) - len(kept)
    assert attempt.sent_tokens == (json_bytes(request.beside) + json_bytes(kept)) // BYTES_PER_TOKEN


@every_format
@pytest.mark.parametrize(("window_tokens", "found"), [(12_000, {"read_file": 1}), (400_000, {})])
def test_only_first_attempt_counts_rereads_of_removed_results(fmt, window_tokens, found):
    begun = session(fmt, turns=1).fields
    items = [spoken(fmt, "user", "Read the files.")]
    for n in [*range(30), 0]:
        result = f"file {n}: " + "a line of it\n" * 300
        items += tool_round(fmt, [(f"call_{len(items)}", result)], name="read_file", arguments={"path": f"src/file_{n}.py"})
    request = Request(fmt, {**begun, FIELDS[fmt]: items})
    _, first = decided(request, to(window_tokens))
    assert first.rereads == found
    refused = replace(first, overflow=Overflow("input", "x"), failed=True)
    retry = to(window_tokens, attempt=1)
    assert decided(request, retry, Limits(retry.window, previous=refused))[1].rereads == {}
