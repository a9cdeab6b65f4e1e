"""A request is never lost, a retry is never sent in vain, and what an attempt shows reaches the next request."""

import threading
from dataclasses import replace

import litellm
import pytest
from engine_requests import session, to
from fastapi import HTTPException

import ctx_hooks
from ctx_hooks.attempts.request import Request, counted_history
from ctx_hooks.flow.decision import Compressed, NotRetried, ShownAgain, Untouched
from ctx_hooks.flow.request_flow import RequestFlow
from ctx_hooks.litellm_compat.call import Call, with_request_id
from ctx_hooks.litellm_compat.logged import Answer
from ctx_hooks.litellm_compat.rescue import arrange_rescue
from ctx_hooks.overflow.recognise import Overflow
from ctx_hooks.policy.settings import Settings
from ctx_hooks.runtime import warnings
from ctx_hooks.tokens.budget import Window
from ctx_hooks.tokens.counter import Counter, vocabulary_of
from ctx_hooks.tokens.usage import Billed, billed_of

OVERFLOW_TEXT = "This model's maximum context length is 20000 tokens. However, your messages resulted in 41000 tokens."
OVERFLOW = Overflow("input", "x", 20_000, 41_000)
SMALL = Request("openai-chat", {"model": "m", "messages": [{"role": "user", "content": "hi"}]})

LONG = session(turns=40)
DEPLOYMENT = to().deployment


async def flow_after(request, where):
    """Return a flow that has decided about a request."""
    flow = RequestFlow()
    await flow.deciding.decide(request, where)
    return flow


def last_of(flow, request_id="request"):
    return flow.running.of(request_id).attempts.last()


async def test_failed_attempt_learns_from_no_answer():
    """The Router may go on to a model that the plugin is off for: what it bills says nothing of the one that failed."""
    runner = await flow_after(LONG, to(20_000))
    await runner.failed("request", None)
    assert await runner.answered("request", Answer(billed_of({"prompt_tokens": 50_000, "completion_tokens": 5}))) is None
    assert last_of(runner) is None


async def test_fallback_that_holds_no_request_is_passed_over():
    """The retries on the requested group come behind all fallbacks: there the request is shortened."""
    flow, request = RequestFlow(), LONG
    state = flow.running.open("request")
    state.requested, state.fallbacks = replace(to(20_000), group="asked"), ("gpt-4",)
    small = replace(to(8_000), group="gpt-4", deployment="gpt-4")
    with pytest.raises(litellm.ContextWindowExceededError, match="a configured fallback comes first"):
        await flow.before_attempt(Request(request.format, with_request_id(request.fields)), small)


@pytest.fixture
def learned_limits():
    events = []
    end = ctx_hooks.on("limit_learned", events.append)
    yield events
    end()


async def known_limit(runner, tenant="ann"):
    """Return the window that the tenant's next request is fitted to."""
    await runner.deciding.decide(session(turns=2), replace(to(request_id="next"), tenant=tenant))
    return last_of(runner, "next").limits.window


async def test_attempt_keeps_policy_of_its_beginning():
    """What a team's metadata say may change while its request runs."""
    flow, call = RequestFlow(), Call(with_request_id({"model": "openai/gpt-4o"}))
    assert flow.mode(call) == "enforce"
    await flow.deciding.decide(LONG, to(mode="observe", request_id=call.request_id))
    assert flow.mode(call) == "observe"


class TestARequestIsNeverLost:
    @pytest.mark.parametrize("messages", [["no message"], [{"role": 1}], {"role": "user"}], ids=str)
    async def test_unreadable_conversation_is_sent_once_unchanged(self, messages):
        runner, request = RequestFlow(), Request("openai-chat", {"messages": messages})
        decision = await runner.deciding.decide(request, to(max_turns=1_000))
        assert isinstance(decision, Untouched)
        assert decision.reason
        await runner.failed("request", OVERFLOW)
        assert isinstance(await runner.deciding.decide(request, to(attempt=1)), NotRetried)


class TestRetries:
    @pytest.mark.parametrize(
        ("deployment", "fields", "expected"),
        [(DEPLOYMENT, {}, Compressed), ("another", {}, Untouched), (DEPLOYMENT, {"rescue_attempts": 0}, Untouched)],
        ids=["the one that refused", "another", "where nothing is retried"],
    )
    async def test_unmarked_second_attempt_is_a_retry(self, deployment, fields, expected):
        """An operator's `retry_policy` makes the Router do so, with the request as it was."""
        runner = RequestFlow()
        assert isinstance(await runner.deciding.decide(LONG, to(**fields)), Untouched)
        await runner.failed("request", OVERFLOW)
        again = replace(to(**fields), deployment=deployment)
        retry = runner.running.of("request").numbered(again, continues=False)
        assert isinstance(await runner.deciding.decide(LONG, retry), expected)

    async def test_retry_of_unknown_refusal_is_not_sent(self):
        """Unless it is known that the Router itself has refused it, before any deployment: then the retry is the first."""
        runner = RequestFlow()
        for awaits, expected in ((False, NotRetried), (True, Untouched)):
            runner.running.open("request").awaits_attempt = awaits
            retry = runner.running.of("request").numbered(to(attempt=1), continues=False)
            assert isinstance(await runner.deciding.decide(LONG, retry), expected)
        assert runner.running.of("request").numbered(to(attempt=2), continues=False).attempt == 2

    @pytest.mark.parametrize(("number", "expected"), [(1, Compressed), (2, NotRetried)], ids=["repeated", "the next"])
    @pytest.mark.parametrize("deployment", [DEPLOYMENT, "another"])
    async def test_retry_with_other_error_is_only_repeated(self, deployment, number, expected):
        """The repeated retry plans from the same refusal, at whichever deployment LiteLLM repeats it."""
        runner = await flow_after(LONG, to())
        await runner.failed("request", OVERFLOW)
        await runner.deciding.decide(LONG, to(attempt=1))
        await runner.failed("request", None, "rate limit")
        again = replace(to(attempt=number), deployment=deployment)
        assert isinstance(await runner.deciding.decide(LONG, again), expected)
        refused = last_of(runner).limits.previous
        assert refused.overflow == OVERFLOW
        assert last_of(runner).sent_tokens < refused.sent_tokens

    @pytest.mark.parametrize("is_sent", [True, False], ids=["the provider's", "the Router's own"])
    async def test_caller_gets_last_retry_error(self, is_sent):
        """An overflow of a later retry replaces it, and a first attempt has none."""
        runner, fields = RequestFlow(), with_request_id({"model": "m"})
        request_id = Call(fields).request_id
        first, busy = RuntimeError(OVERFLOW_TEXT), RuntimeError("Rate limit reached. Try again in 6 s.")
        (entry, later) = arrange_rescue(fields, 2)["context_window_fallbacks"][0]["m"]
        await runner.deciding.decide(LONG, to(request_id=request_id))
        for retry, error, expected in ((fields, first, first), ({**fields, **entry}, busy, busy)):
            await runner.note_failure(retry, error, is_sent=is_sent)
            assert runner.end_of(fields, first) is expected
        await runner.deciding.decide(LONG, to(request_id=request_id))
        await runner.note_failure({**fields, **later}, first)
        assert runner.end_of(fields, first) is first

    async def test_smallest_request_is_never_retried(self):
        runner = await flow_after(SMALL, to(max_turns=1_000))
        await runner.failed("request", Overflow("input", "x"), "too long")
        for number in (1, 2, 3):
            assert isinstance(await runner.deciding.decide(SMALL, to(attempt=number)), NotRetried)
        last = last_of(runner)
        assert (last.spent, last.to.attempt, last.refusal) == (True, 0, "too long")

    async def test_translated_attempt_stays_as_fitted(self):
        """LiteLLM asks again where it translates a request, and by then the mark of the retry is gone."""
        runner = RequestFlow()
        assert isinstance(await runner.deciding.decide(session("anthropic", turns=40), to(20_000)), Compressed)
        assert await runner.deciding.decide(LONG, to(20_000)) == ShownAgain()
        await runner.failed("request", Overflow("input", "x"))
        assert isinstance(await runner.deciding.decide(session("anthropic", turns=40), to(20_000, attempt=1)), Compressed)
        for number in (0, 1):
            assert await runner.deciding.decide(LONG, to(20_000, attempt=number)) == ShownAgain()

    async def test_new_attempt_is_fitted_anew(self):
        """After a failure, as a later retry, or in the same format it is no translation."""
        runner = await flow_after(session("anthropic", turns=40), to())
        assert isinstance(await runner.deciding.decide(LONG, to(20_000, attempt=1)), Compressed)
        runner = await flow_after(session("anthropic", turns=40), to(20_000))
        assert isinstance(await runner.deciding.decide(session("anthropic", turns=40), to(20_000)), Compressed)
        await runner.failed("request", None)
        assert isinstance(await runner.deciding.decide(LONG, to(20_000)), Compressed)


class TestWhatIsLearned:
    async def test_observed_refusals_teach_without_a_retry(self):
        """A request that fits by its size is not counted; an enforced one would be at its retry."""
        runner, seen = RequestFlow(), {"mode": "observe"}
        fields = with_request_id({**LONG.fields, "model": "openai/gpt-4o"})
        await runner.deciding.decide(LONG, to(request_id=Call(fields).request_id, **seen))
        await runner.note_failure(fields, RuntimeError(OVERFLOW_TEXT))
        assert await known_limit(runner) == Window(20_000, "learned")

    async def test_uncounted_refusal_teaches_once_counted(self, learned_limits):
        """It was sent uncounted; the retry counts it in the vocabulary of the model that refused it, not in its own."""
        tokens, others = (
            counted_history(session(turns=20), Counter(vocabulary_of(model))).tokens for model in ("gpt-4o", "gpt-4")
        )
        assert tokens != others
        runner = await flow_after(session(turns=20), to(window_tokens=2_000_000))
        assert last_of(runner).sent_tokens is None
        await runner.failed("request", Overflow("input", "x", 10_000, tokens), "too long")
        again = replace(to(window_tokens=2_000_000, attempt=1), model="openai/gpt-4")
        await runner.deciding.decide(session(turns=20), again)
        assert not learned_limits
        await runner.learned.from_answer(last_of(runner), Billed(last_of(runner).sent_provider_tokens))
        assert [e.limit_tokens for e in learned_limits] == [10_000]
        assert last_of(runner).limits.previous.sent_tokens == tokens

    async def test_answer_teaches_factor_and_ends_request(self):
        runner = await flow_after(LONG, to(max_turns=1_000))
        counted = last_of(runner).sent_tokens
        await runner.answered("request", Answer(billed_of({"prompt_tokens": int(counted * 1.2)})))
        assert last_of(runner) is None
        await runner.deciding.decide(LONG, to(max_turns=1_000))
        assert last_of(runner).limits.factor == pytest.approx(1.2, rel=0.03)

    async def test_estimated_usage_teaches_nothing(self):
        logged = with_request_id({"model": "openai/gpt-4o"})
        request_id = Call(logged).request_id
        runner = await flow_after(LONG, to(max_turns=1_000, request_id=request_id))
        estimated = runner.estimated_tokens(logged)
        assert estimated == last_of(runner, request_id).sent_provider_tokens > 0
        await runner.answered(request_id, Answer(billed_of({"prompt_tokens": estimated * 2})))
        assert not (await runner.learned.of(DEPLOYMENT)).observations
        assert runner.estimated_tokens(logged) is None


class TestTheEventLoop:
    @pytest.fixture
    def threads(self):
        found = []
        end = ctx_hooks.on("before_compaction", lambda _: found.append(threading.current_thread()))
        yield found
        end()

    async def test_only_long_work_runs_in_thread(self, threads):
        talk = [{"role": ("user", "assistant")[n % 2], "content": f"turn {n} " * 40} for n in range(21)]
        short = Request("openai-chat", {"model": "m", "messages": talk})
        await RequestFlow().deciding.decide(short, to(1_000, max_turns=1_000))
        await RequestFlow().deciding.decide(LONG, to(20_000))
        short, long = threads
        assert short is threading.current_thread()
        assert long is not short


@pytest.mark.parametrize(("least", "warned"), [(None, True), (20_000, True), (0, False)])
async def test_small_window_is_warned_of(least, warned, caplog):
    warnings.forget_warnings()
    await RequestFlow().deciding.decide(SMALL, to(20_000, block_below_tokens=least))
    assert ("is small: 20000 tokens" in caplog.text) == warned


async def test_blocked_small_window_answers_400():
    flow = RequestFlow(Settings(defaults={"block_below_tokens": 400_000}))
    with pytest.raises(HTTPException, match=r"128000 .* 400000") as refused:
        await flow.before_choice(session(model="openai/gpt-4o", metadata={}))
    assert refused.value.status_code == 400


async def test_attempt_names_uncounted_content():
    sealed = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gAAAA" + "Zq3x" * 2_000}
    searched = {"type": "web_search_call", "id": "ws_1", "status": "completed"}
    sent, runner = session("openai-responses", turns=8), RequestFlow()
    fields = {**sent.fields, "input": [sealed, searched, *sent.fields["input"]], "tools": [{"type": "web_search"}]}
    await runner.deciding.decide(sent.with_fields(fields), to(10_000))
    uncounted = last_of(runner).uncounted
    assert (uncounted.holds_any, uncounted.holds_hosted, uncounted.holds_unbilled) == (True, True, True)
    assert last_of(runner).guessed_tokens >= 1_000, "the tool's definition"


@pytest.mark.parametrize("used_hosted_tools", [False, True])
async def test_bill_with_hosted_reading_teaches_no_ratio(used_hosted_tools):
    runner = await flow_after(session(turns=8), to(10_000))
    sent = last_of(runner).sent_tokens
    await runner.answered(
        "request", Answer(billed_of({"prompt_tokens": int(sent * 1.4)}), used_hosted_tools=used_hosted_tools)
    )
    shown = {kind for kind, _ in (await runner.learned.of(DEPLOYMENT)).observations}
    assert {"ratios", "accepted"} & shown == (set() if used_hosted_tools else {"ratios", "accepted"})
