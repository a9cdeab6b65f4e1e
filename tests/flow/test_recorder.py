"""What is recorded of an answer: saved is what the bill would have been higher by, rescued what would have had none."""

from dataclasses import replace

import litellm
import pytest
from engine_requests import attempted
from told_events import DECISION

from ctx_hooks.attempts.request import Request
from ctx_hooks.attempts.target import Target
from ctx_hooks.compaction.cost import Prices
from ctx_hooks.flow.recorder import Recorder, answer_event, names_of
from ctx_hooks.flow.request_flow import RequestFlow
from ctx_hooks.litellm_compat.call import Call, with_request_id
from ctx_hooks.litellm_compat.logged import Answer
from ctx_hooks.overflow.recognise import Overflow
from ctx_hooks.policy.settings import Policy, Settings
from ctx_hooks.telemetry.listeners import on
from ctx_hooks.telemetry.litellm_sinks import notes_of
from ctx_hooks.testing import agent_session
from ctx_hooks.tokens.budget import Window
from ctx_hooks.tokens.usage import Billed

PRICES = Prices(plain=1e-6, cache_read=1e-7, cache_write=1e-6)


def priced(attempt, prices):
    return replace(attempt, to=replace(attempt.to, prices=prices))


SENT = priced(attempted(10_000, 4_000, received_tokens=9_000, factor=1.1), PRICES)
RETRY = replace(SENT.to, attempt=1)
BILL = Billed(4_400)


def saved(event):
    return event.beyond_window, event.provider_tokens_saved, event.dollars_saved


def test_compressed_request_saves_cost_of_removed_text():
    event = answer_event(DECISION, SENT, Answer(BILL))
    assert saved(event) == (False, 5_500, pytest.approx(0.0055))
    assert (event.decision, event.attempts, event.billed) == ("compressed", 1, BILL)


ABOVE = replace(DECISION, provider_tokens_before=10_001)
RETRIED = replace(DECISION, decision="retried", trigger="overflow")
UNCOUNTED = replace(DECISION, local_tokens_before=None, local_tokens_after=None, provider_tokens_before=None)
WHOLE = replace(SENT, sent_tokens=9_000)
OBSERVED = replace(WHOLE, to=replace(SENT.to, policy=Policy(mode="observe")), decided_tokens=4_500)


def test_name_is_one_bounded_line():
    name = names_of(Call({"litellm_call_id": "call\n" + "x" * 5_000}), RETRY).call_id
    assert (name.isprintable(), len(name)) == (True, 200)


async def test_ignored_settings_are_counted_by_scope():
    heard, flow = [], RequestFlow(Settings(defaults={"mode": "off", "languag": "zh", "reserv": 1}))
    end = on("settings_ignored", heard.append)
    await flow.before_choice(
        Request("openai-chat", {"model": "gpt", "messages": [], "metadata": {"ctx_hooks": {"mode": "off"}}})
    )
    await RequestFlow().before_choice(Request("openai-chat", {"model": "gpt", "messages": [], "metadata": {}}))
    end()
    assert [event.scopes for event in heard] == [{"defaults": 1, "request": 1}]


@pytest.mark.parametrize(("decided", "attempt", "bill", "prices", "expected"), [
    (ABOVE, SENT, BILL, PRICES, (True, 0, 0.0)), (RETRIED, replace(SENT, to=RETRY), BILL, PRICES, (True, 0, 0.0)),
    (replace(RETRIED, local_tokens_after=9_000), replace(WHOLE, to=RETRY), BILL, PRICES, (True, 0, 0.0)),
    (replace(ABOVE, decision="fits", local_tokens_after=9_000), WHOLE, BILL, PRICES, (False, 0, 0.0)),
    (UNCOUNTED, replace(SENT, sent_tokens=None), BILL, PRICES, (False, 0, 0.0)),
    (DECISION, SENT, None, PRICES, (False, None, None)), (DECISION, SENT, BILL, None, (False, 5_500, None)),
    (replace(DECISION, mode="observe", local_tokens_after=4_500), OBSERVED, Billed(9_900), PRICES, (False, 4_950, 0.00495)),
    (replace(ABOVE, mode="observe", local_tokens_after=4_500), OBSERVED, Billed(9_900), PRICES, (False, 4_950, 0.00495)),
], ids=["from above the window: rescued", "retried: rescued", "retried with less output: rescued",
        "answered as it came, whatever its estimate", "not counted", "without a bill", "without a price",
        "observed: of its bill the part that was to be cut", "observed and answered: no rescue"])  # fmt: skip
def test_rescued_request_saves_nothing(decided, attempt, bill, prices, expected):
    event = answer_event(decided, priced(attempt, prices), Answer(bill))
    beyond_window, tokens, dollars = expected
    assert saved(event) == (beyond_window, tokens, dollars and pytest.approx(dollars))
    assert event.mode == decided.mode


@pytest.mark.parametrize(("prices", "bill", "known"), [
    (PRICES, BILL, False), (PRICES, Billed(4_400, 400), True), (replace(PRICES, cache_read=PRICES.plain), BILL, True),
], ids=["no cache shown", "a cache shown", "a cache that is no cheaper"])  # fmt: skip
def test_unknown_cache_means_unknown_dollars(prices, bill, known):
    rewritten = priced(replace(SENT, seen_tokens=8_500, rewrites=True), prices)
    event = answer_event(DECISION, rewritten, Answer(bill))
    assert (event.dollars_saved is not None) is known
    assert (notes_of(event, prices)[1] is not None) is known


@pytest.fixture
def heard():
    events = []
    ends = [on(name, events.append) for name in ("decision", "answer", "failure")]
    yield events
    for end in ends:
        end()


def to(window_tokens=12_000, **fields):
    return Target("openai/gpt-4o", "d", Window(window_tokens, "policy"), Policy(), "request", prices=PRICES, **fields)


async def decided(recorder, runner, request, target):
    decision = await runner.deciding.decide(request, target)
    state = runner.running.open("request")
    recorder.decided(state, request, target, decision, state.attempts.last())
    return decision


@pytest.mark.parametrize("fmt", ["openai-chat", "anthropic", "openai-responses", "gemini"])
async def test_rescue_reports_size_before_early_fit(fmt):
    runner, metadata = RequestFlow(), {"user_api_key": "hash"}
    recorder = Recorder()
    request = Request(fmt, {**agent_session(fmt, turns=40), "metadata": metadata, "litellm_metadata": metadata})
    first = await decided(recorder, runner, request, to())
    state = runner.running.of("request")
    state.before_choice = state.decided, state.attempts.last()
    fitted = Request(fmt, {**request.fields, **first.changes})
    await decided(recorder, runner, fitted, to())
    await runner.failed("request", Overflow("input", "x", 4_000, first.figures.tokens_after))
    rescued = await decided(recorder, runner, fitted, to(attempt=1))
    assert rescued.figures.tokens_after < first.figures.tokens_after < first.figures.tokens_before
    headers, logged = runner.running.of("request").headers, metadata["spend_logs_metadata"]["ctx_hooks"]
    whole, sent = first.figures.tokens_before, rescued.figures.tokens_after
    assert headers["x-ctx-hooks"] == f"retried; before={whole}; after={sent}"
    assert logged["tokens_before"] == whole


async def test_translated_retry_is_logged_once(heard):
    runner, metadata = RequestFlow(), {"user_api_key": "hash"}
    recorder = Recorder()
    fields = {**agent_session("openai-chat", turns=40), "metadata": metadata}
    await decided(recorder, runner, Request("openai-chat", fields), to(200_000))
    await runner.failed("request", Overflow("input", "x", 10_000, 26_000))
    await decided(recorder, runner, Request("openai-chat", fields), to(200_000, attempt=1))
    translated = {**agent_session("openai-responses", turns=2), "metadata": metadata}
    await decided(recorder, runner, Request("openai-responses", translated), to(200_000))
    logged = metadata["spend_logs_metadata"]["ctx_hooks"]
    assert (logged["decision"], logged["attempt"]) == ("retried", 1)
    assert [event.attempt for event in heard] == [0, 1]


async def test_request_left_to_fallback_exceeds_budget(heard):
    request = Request("openai-chat", {**agent_session("openai-chat", turns=40), "metadata": {"user_api_key": "hash"}})
    target = replace(to(defers=True), policy=Policy(mode="observe"))
    await decided(Recorder(), RequestFlow(), request, target)
    assert [(event.decision, event.trigger) for event in heard] == [("fallback", "budget")]


async def test_unmarked_retry_is_recorded_as_retry(heard):
    flow = RequestFlow(Settings())
    fields = with_request_id(agent_session("openai-chat", turns=40))
    target = replace(to(200_000), request_id=Call(fields).request_id)
    await flow.before_attempt(Request("openai-chat", fields), target)
    await flow.failed(target.request_id, Overflow("input", "x", 10_000, 26_000))
    await flow.before_attempt(Request("openai-chat", fields), target)
    assert [(e.attempt, e.decision, e.trigger) for e in heard] == [(0, "fits", "none"), (1, "retried", "overflow")]


@pytest.mark.parametrize(("window_tokens", "error", "expected"), [
    (12_000, litellm.BadRequestError("messages.3: tool_use ids must be unique", "m", "p"), [("compressed", "400")]),
    (200_000, litellm.BadRequestError("messages.3: tool_use ids must be unique", "m", "p"), []),
    (12_000, litellm.RateLimitError("slow down", "m", "p"), []),
    (12_000, litellm.ContextWindowExceededError("prompt is too long: 9000 tokens > 8000 maximum", "m", "p"), []),
], ids=["changed", "unchanged", "rate limit", "too long"])  # fmt: skip
async def test_invalid_changed_request_is_recorded(window_tokens, error, expected, monkeypatch):
    monkeypatch.setattr("ctx_hooks.flow.request_flow.passed_pre_call_hook", lambda _call: True)
    rejections, flow = [], RequestFlow(Settings())
    end = on("rejection", rejections.append)
    fields = with_request_id(agent_session("openai-chat", turns=40))
    await flow.before_attempt(Request("openai-chat", fields), replace(to(window_tokens), request_id=Call(fields).request_id))
    await flow.note_failure(fields, error)
    await flow.note_failure(fields, error)
    end()
    assert [(event.decision, event.status) for event in rejections] == expected


async def test_fallback_counts_for_requested_group(heard):
    flow = RequestFlow(Settings())
    fields = with_request_id(agent_session("openai-chat", turns=1))
    target = replace(to(200_000, group="big"), request_id=Call(fields).request_id)
    state = flow.running.open(target.request_id)
    state.requested = to(8_000, group="small")
    await flow.before_attempt(Request("openai-chat", fields), target)
    flow.recorder.failed(state, Call(fields))
    assert [(event.name, event.call.model_group) for event in heard] == [("decision", "small"), ("failure", "small")]


async def test_request_ends_in_one_failure_event(heard):
    """The provider refuses every attempt, and the Router asks for two more retries than can be made smaller."""
    flow = RequestFlow(Settings())
    fields = with_request_id(agent_session("openai-chat", turns=40))
    target = replace(to(200_000), request_id=Call(fields).request_id)
    sent, not_retried = 0, 0
    while not_retried < 2:
        try:
            await flow.before_attempt(Request("openai-chat", fields), replace(target, attempt=sent + not_retried))
        except litellm.ContextWindowExceededError:
            not_retried += 1
        else:
            sent += 1
            await flow.failed(target.request_id, Overflow("input", "x", 60, None))
    for _ in range(2):
        flow.recorder.failed(flow.running.of(target.request_id), Call(fields))
    words = [(type(event).__name__, event.decision) for event in heard]
    retries = [("DecisionEvent", "retried")] * (sent - 1)
    assert words == [("DecisionEvent", "fits"), *retries, ("DecisionEvent", "failed"), ("FailureEvent", "failed")]
    assert sent > 1
    assert heard[-1].attempts == sent
    assert flow.running.of(target.request_id).headers["x-ctx-hooks-decision"] == "failed"
