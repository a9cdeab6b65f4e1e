"""LiteLLM's spans, log and spend columns have what was decided, refused and saved: figures and names, no text."""

from dataclasses import replace

import pytest
import told_events
from litellm.proxy.spend_tracking.compression_savings import extract_compression_saved_tokens
from told_events import ANSWER, DECISION

from ctx_hooks.compaction.cost import Prices
from ctx_hooks.compaction.steps import StepReport
from ctx_hooks.telemetry import litellm_sinks
from ctx_hooks.telemetry.events import OverflowEvent
from ctx_hooks.telemetry.litellm_sinks import figures_of, notes_of

CALL = replace(told_events.CALL, deployment="id:openai/gpt-4o", model="openai/gpt-4o")
DECIDED = replace(
    told_events.DECISION, call=CALL, provider_tokens_before=41_000, provider_tokens_after=15_400, budget_tokens=16_000,
    window_tokens=20_000, window_source="learned", sent_output_tokens=None,
    steps=(StepReport("repeats", 900, 3), StepReport("oldest_turns", 24_100, 40)),
    milliseconds={"total": 31.25, "counting": 9.5},
)  # fmt: skip
REFUSED = OverflowEvent("overflow", 0.0, CALL, "enforce", 0, "input", 20_000, None)


@pytest.fixture
def span():
    trace = pytest.importorskip("opentelemetry.sdk.trace", reason="the OpenTelemetry SDK is not installed")
    return trace.TracerProvider().get_tracer("test").start_span("Received Proxy Server Request")


def test_decision_is_an_event_and_sets_the_attributes(span):
    litellm_sinks.record_on(span, DECIDED)
    expected = {
        "gen_ai.request.model": "openai/gpt-4o",
        "gen_ai.conversation.compacted": True,
        "ctx_hooks.decision": "compressed",
        "ctx_hooks.provider_tokens_before": 41_000,
        "ctx_hooks.window_source": "learned",
        "ctx_hooks.steps": "repeats, oldest_turns",
        "ctx_hooks.milliseconds": 31.25,
    }
    (event,) = span.events
    assert event.name == "ctx_hooks.decision"
    assert dict(event.attributes) == dict(span.attributes) == {**dict(span.attributes), **expected}
    assert not [name for name in event.attributes if "call" in name or "time_seconds" in name]


@pytest.mark.parametrize(
    "change",
    [{"mode": "observe"}, {"steps": ()}, {"decision": "failed"}, {"steps": (StepReport("repair", 0, 1),)}],
    ids=["observed", "output lowered", "not sent", "repaired"],
)
def test_span_calls_no_uncompacted_request_compacted(change, span):
    litellm_sinks.record_on(span, replace(DECIDED, **change))
    assert "gen_ai.conversation.compacted" not in span.attributes


def test_an_overflow_is_an_event_with_the_figures_that_the_refusal_names(span):
    litellm_sinks.record_on(span, REFUSED)
    (event,) = span.events
    assert dict(event.attributes) == {
        "error.type": "context_window_exceeded",
        "ctx_hooks.mode": "enforce",
        "ctx_hooks.kind": "input",
        "ctx_hooks.limit_tokens": 20_000,
        "ctx_hooks.attempt": 0,
    }


def test_a_decision_is_logged_with_the_figures_that_it_has_and_the_scopes_of_its_policy():
    decided = replace(DECISION, policy={"window_tokens": "team x", "mode": "defaults", "retrieval": "defaults"}, attempt=2)
    logged = {"decision": "compressed", "attempt": 2, "window_tokens": 10_000, "policy": "defaults, team x"}
    tokens = {"tokens_before": 9_900, "tokens_after": 4_400}
    assert figures_of(decided, {"max_tokens": 900}) == {**logged, **tokens, "max_tokens": 900}
    assert figures_of(replace(decided, provider_tokens_before=None, provider_tokens_after=None), {}) == logged


PRICES = Prices(plain=2e-6, cache_read=2e-7, cache_write=2e-6)
OBSERVED = replace(ANSWER, mode="observe")
BEYOND = replace(ANSWER, beyond_window=True, provider_tokens_saved=0, dollars_saved=0.0)
UNKNOWN = replace(ANSWER, billed=None, provider_tokens_saved=None, dollars_saved=None)


def shown_tokens(event, prices=PRICES):
    return extract_compression_saved_tokens({"compression_savings": notes_of(event, prices)[1]})


@pytest.mark.parametrize("dollars", [5_500 * PRICES.plain, 0.0107, 1e-9, 0.0, -0.004])
def test_litellm_shows_the_dollars_that_were_saved_and_none_below_zero(dollars):
    event = replace(ANSWER, dollars_saved=dollars)
    assert shown_tokens(event) * PRICES.plain == pytest.approx(max(0, dollars), abs=PRICES.plain / 2)
    figures, savings, _ = notes_of(event, PRICES)
    assert savings is not None
    assert (savings["tokens_before"], savings["tokens_after"], savings["source"]) == (9_900, 4_400, "ctx_hooks")
    assert savings["tokens_saved"] >= 0
    assert figures == {"tokens_saved": 5_500, "dollars_saved": dollars, "beyond_window": False}


def test_where_no_price_is_known_the_tokens_are_shown():
    event = replace(ANSWER, dollars_saved=None)
    assert shown_tokens(event, prices=None) == 5_500
    assert "dollars_saved" not in notes_of(event, None)[0]


@pytest.mark.parametrize(
    "event", [OBSERVED, BEYOND, UNKNOWN, replace(ANSWER, provider_tokens_saved=0, dollars_saved=0.0)], ids=lambda e: e.mode
)
def test_what_is_observed_beyond_the_window_not_counted_or_not_cut_shows_no_savings(event):
    assert notes_of(event, PRICES)[1] is None


def test_what_is_only_observed_is_told_as_what_it_would_have_been():
    figures, _, tags = notes_of(OBSERVED, PRICES)
    saved = {"tokens_saved": 5_500, "dollars_saved": 0.0123, "beyond_window": False}
    assert figures == {"mode": "observe", "would_have": {"decision": "compressed", **saved}}
    assert tags == ()


@pytest.mark.parametrize(("event", "tags"), [
    (ANSWER, ("ctx_hooks:compressed",)), (BEYOND, ("ctx_hooks:compressed",)),
    (replace(BEYOND, decision="retried"), ("ctx_hooks:retried",)),
    (replace(ANSWER, decision="output_lowered"), ("ctx_hooks:output_lowered",)), (replace(ANSWER, decision="fits"), ()),
])  # fmt: skip
def test_tags_are_few_and_follow_the_decision(event, tags):
    assert notes_of(event, PRICES)[2] == tags
