"""Each decision has one outcome, which headers, metrics and events report."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctx_hooks.flow.decision import (
    Compressed,
    FailedOpen,
    Figures,
    GaveUp,
    LeftToFallback,
    NotRetried,
    Untouched,
    outcome_of,
)
from ctx_hooks.formats import WIRE_FORMATS

MESSAGES = {"anthropic": {"messages": []}, "gemini": {"contents": []}}
OUTPUTS = {
    "anthropic": [{"max_tokens": 5}, {"max_tokens": 5, "thinking": {"type": "disabled"}}],
    "gemini": [{"config": {"maxOutputTokens": 5}}],
}
anthropic_or_gemini = st.sampled_from(sorted(OUTPUTS))
sizes = st.integers(1, 9_000)


def figures_of(size, budget):
    return Figures(9_000, size, budget, 10_000)


@given(size=sizes, budget=sizes, attempt=st.integers(0, 3), kind=st.sampled_from([
    (NotRetried, "failed"), (FailedOpen, "failed_open"), (LeftToFallback, "fallback"),
]))  # fmt: skip
def test_unsent_and_failed_decisions_name_themselves(size, budget, attempt, kind):
    """Whatever their size and number: a retry that is not sent has retried nothing."""
    made, outcome = kind
    assert outcome_of(made(figures=figures_of(size, budget)), attempt, WIRE_FORMATS["anthropic"]) == outcome


@given(size=sizes, budget=sizes, kind=st.sampled_from([Untouched, GaveUp]))
def test_unchanged_request_fits_or_is_over_budget(size, budget, kind):
    for budget_tokens, outcome in ((budget, "fits" if size <= budget else "over_budget"), (size, "fits")):
        assert outcome_of(kind(figures=figures_of(size, budget_tokens)), 0, WIRE_FORMATS["anthropic"]) == outcome


@given(fmt=anthropic_or_gemini, data=st.data(), kind=st.sampled_from([Compressed, GaveUp]))
def test_changed_messages_outweigh_lowered_output(fmt, data, kind):
    output = data.draw(st.sampled_from(OUTPUTS[fmt]))
    assert outcome_of(kind(output), 0, WIRE_FORMATS[fmt]) == "output_lowered"
    for changes in (MESSAGES[fmt], MESSAGES[fmt] | output):
        assert outcome_of(kind(changes), 0, WIRE_FORMATS[fmt]) == "compressed"


@pytest.mark.parametrize("decision", [Untouched(), Compressed(OUTPUTS["anthropic"][0]), GaveUp(MESSAGES["anthropic"])])
def test_sent_retry_is_retried(decision):
    for attempt in (1, 2, 3):
        assert outcome_of(decision, attempt, WIRE_FORMATS["anthropic"]) == "retried"
