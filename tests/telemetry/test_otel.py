"""A span of LiteLLM's carries what was decided and refused: figures and names, no text of the request."""

from dataclasses import replace

import pytest
import told_events

from ctx_hooks.compaction.steps import StepReport
from ctx_hooks.telemetry import litellm_sinks
from ctx_hooks.telemetry.events import OverflowEvent

trace = pytest.importorskip("opentelemetry.sdk.trace", reason="the OpenTelemetry SDK is not installed")

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
    return trace.TracerProvider().get_tracer("test").start_span("Received Proxy Server Request")


def test_a_decision_is_an_event_and_the_last_one_stands_in_the_attributes(span):
    litellm_sinks.record_on(span, DECIDED)
    expected = {
        "gen_ai.request.model": "openai/gpt-4o",
        "ctx_hooks.mode": "enforce",
        "ctx_hooks.decision": "compressed",
        "ctx_hooks.trigger": "budget",
        "ctx_hooks.attempt": 0,
        "ctx_hooks.input_tokens.before": 41_000,
        "ctx_hooks.input_tokens.after": 15_400,
        "ctx_hooks.budget_tokens": 16_000,
        "ctx_hooks.window_tokens": 20_000,
        "ctx_hooks.window_source": "learned",
        "ctx_hooks.steps": "repeats,oldest_turns",
        "gen_ai.conversation.compacted": True,
    }
    assert dict(span.attributes) == expected
    (event,) = span.events
    phases = {"ctx_hooks.milliseconds.total": 31.25, "ctx_hooks.milliseconds.counting": 9.5}
    assert (event.name, dict(event.attributes)) == ("ctx_hooks.decision", expected | phases)


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
        "ctx_hooks.overflow.kind": "input",
        "ctx_hooks.overflow.limit_tokens": 20_000,
        "ctx_hooks.attempt": 0,
    }
