"""The log says what was decided, what it did to the tokens, and what it saved, and holds no text of the request."""

from dataclasses import replace

import pytest
from litellm.proxy.spend_tracking.compression_savings import extract_compression_saved_tokens
from told_events import ANSWER, DECISION

from ctx_hooks.compaction.cost import Prices
from ctx_hooks.telemetry.litellm_sinks import figures_of, notes_of


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


def test_an_answer_without_usage_tells_no_figure_that_is_not_known():
    assert notes_of(UNKNOWN, PRICES)[0] == {"beyond_window": False}
