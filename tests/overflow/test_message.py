"""The readable error claims nothing that was not done, keeps the provider's words, and opens as clients expect."""

import re
from dataclasses import replace

import pytest
from engine_requests import attempted
from hypothesis import given
from hypothesis import strategies as st

from ctx_hooks.overflow.message import Facts, readable_error, small_window
from ctx_hooks.overflow.recognise import Overflow, recognise_overflow
from ctx_hooks.policy.settings import Policy
from ctx_hooks.serving.attempt_ends import facts_of

ENGLISH = Policy()
CHINESE = Policy(language="zh")
FORMATS = ("openai-chat", "openai-responses", "anthropic", "gemini")
SAID = "prompt is too long: 61004 tokens > 60000 maximum"
OVERFLOW = recognise_overflow(SAID)
ATTEMPT = attempted(60_000, 30_000, received_tokens=50_000, factor=1.5, number=3, overflow=OVERFLOW)

tokens = st.none() | st.integers(1, 2_000_000)
overflows = st.none() | st.builds(
    Overflow,
    kind=st.sampled_from(("input", "input_plus_output", "output_limit")),
    pattern=st.sampled_from(("anthropic_prompt", "rate_too_large")),
    limit_tokens=tokens,
    input_tokens=tokens,
    sentence=st.sampled_from(("", SAID)),
)
facts_strategy = st.builds(
    Facts, attempts=st.none() | st.integers(1, 4), received_tokens=tokens, sent_tokens=tokens, window_tokens=tokens,
    lowered_output=st.booleans(),
    not_retried=st.sampled_from((None, "switched_off", "cannot_shrink", "stored_history")), overflow=overflows,
)  # fmt: skip


@given(facts_strategy, st.sampled_from(FORMATS))
def test_no_figure_is_made_up(facts, fmt):
    """Every number in the error is one of the facts, or stands in the provider's sentence."""
    known = {facts.attempts, facts.received_tokens, facts.sent_tokens, facts.window_tokens}
    if facts.overflow:
        known |= {facts.overflow.limit_tokens, facts.overflow.input_tokens}
        known |= {int(n) for n in re.findall(r"\d+", facts.overflow.sentence)}
    for policy in (ENGLISH, CHINESE):
        assert {int(n) for n in re.findall(r"\d+", readable_error(fmt, facts, policy))} <= known


@given(facts_strategy, st.sampled_from(FORMATS))
def test_what_was_not_done_is_not_claimed(facts, fmt):
    english, chinese = (readable_error(fmt, facts, policy) for policy in (ENGLISH, CHINESE))
    compressed = bool(facts.attempts and facts.compressed)
    assert ("was compressed from" in english) == ("压缩到" in chinese) == compressed
    assert ("attempts were refused" in english) == ("次尝试" in chinese) == bool(facts.attempts and facts.attempts > 1)
    assert ("was lowered" in english) == bool(facts.attempts and facts.lowered_output)
    if facts.attempts and facts.attempts > 1:
        assert "not retried" not in english
        assert "没有重试" not in chinese


@given(facts_strategy, st.sampled_from(FORMATS))
def test_the_error_is_one_line_with_the_providers_own_sentence(facts, fmt):
    for policy in (ENGLISH, CHINESE):
        text = readable_error(fmt, facts, policy)
        assert text.isprintable()
        assert "None" not in text
        if facts.overflow and facts.overflow.sentence:
            assert SAID in text


@given(facts_strategy)
def test_the_opening_that_anthropics_clients_know_has_figures_only_where_they_say_too_long(facts):
    text = readable_error("anthropic", facts, ENGLISH)
    if facts.overflow and facts.overflow.kind == "output_limit":
        assert text.startswith("max_tokens is too large")
        return
    assert text.startswith("prompt is too long")
    figures = re.match(r"prompt is too long: (\d+) tokens > (\d+) maximum\. ", text)
    if figures:
        assert int(figures[1]) > int(figures[2])
    else:
        assert text.startswith("prompt is too long. ")


def test_a_count_of_the_provider_is_given_as_it_is_and_an_estimate_as_one():
    uncompressed = Facts(1, 50_000, 50_000, 60_000, overflow=OVERFLOW)
    assert readable_error("openai-chat", uncompressed, ENGLISH).startswith(
        "This model's maximum context length is 60000 tokens. However, your messages resulted in 61004 tokens. Nothing was"
    )
    compressed = Facts(2, 75_000, 50_000, 60_000, overflow=OVERFLOW)
    assert "resulted in about 75000 tokens" in readable_error("openai-chat", compressed, ENGLISH)
    assert readable_error("anthropic", compressed, ENGLISH).startswith("prompt is too long: 75000 tokens > 60000 maximum. ")


def test_a_window_that_did_not_refuse_the_request_is_not_named():
    facts = Facts(1, 50_000, 50_000, 200_000, overflow=recognise_overflow("Prompt exceeds max length"))
    assert "200000" not in readable_error("openai-chat", facts, ENGLISH)


@pytest.mark.parametrize("fmt", FORMATS)
def test_a_window_that_the_request_exceeds_is_named_where_the_provider_names_none(fmt):
    facts = Facts(1, 250_000, 250_000, 200_000, overflow=recognise_overflow("Prompt exceeds max length"))
    text = readable_error(fmt, facts, ENGLISH)
    assert "200000" in text
    assert "250000" in text


@pytest.mark.parametrize(("limit", "said"), [(4_096, "supports at most 4096 output"), (None, "supports fewer output")])
def test_who_asked_for_too_long_an_answer_is_told_to_ask_for_a_shorter_one(limit, said):
    text = readable_error("openai-chat", Facts(1, overflow=Overflow("output_limit", "x", limit)), ENGLISH)
    assert said in text
    assert text.endswith("Ask for a shorter answer.")
    assert not readable_error("openai-chat", Facts(1, overflow=OVERFLOW), ENGLISH).endswith("Ask for a shorter answer.")


def test_a_rate_limit_is_not_called_a_context_length():
    facts = Facts(1, 250_000, 250_000, 400_000, overflow=Overflow("input", "rate_too_large", 200_000))
    text = readable_error("openai-chat", facts, ENGLISH)
    assert text.startswith("The request alone is above the provider's rate limit of 200000 tokens.")
    assert "context length" not in text


@pytest.mark.parametrize(
    ("reason", "english", "chinese"),
    [
        ("switched_off", "since retries are switched off", "重试已关闭"),
        ("cannot_shrink", "no more of it may be compressed", "没有更多内容可以压缩"),
    ],
)
def test_the_reason_why_nothing_was_retried_is_told(reason, english, chinese):
    facts = Facts(1, 50_000, 50_000, not_retried=reason)
    assert english in readable_error("openai-chat", facts, ENGLISH)
    assert chinese in readable_error("openai-chat", facts, CHINESE)


def test_the_last_attempt_gives_the_facts_in_the_providers_tokens():
    facts = facts_of(ATTEMPT, None, ENGLISH)
    assert (facts.attempts, facts.received_tokens, facts.sent_tokens, facts.compressed) == (4, 75_000, 45_000, True)
    assert facts.overflow is OVERFLOW
    assert facts.not_retried is None
    assert facts.window_tokens == 60_000
    uncounted = facts_of(replace(ATTEMPT, received_tokens=None, sent_tokens=None, overflow=None), OVERFLOW, ENGLISH)
    assert (uncounted.received_tokens, uncounted.sent_tokens, uncounted.overflow) == (None, None, OVERFLOW)
    assert facts_of(ATTEMPT, None, Policy(rescue_attempts=0)).not_retried == "switched_off"


def test_of_a_request_that_was_never_fitted_only_the_providers_words_are_told():
    facts = facts_of(None, OVERFLOW, ENGLISH)
    text = readable_error("openai-chat", facts, ENGLISH)
    assert SAID in text
    assert "compress" not in text
    assert "retried" not in text


@pytest.mark.parametrize("fmt", FORMATS)
def test_the_operators_own_words_stand_behind_the_opening(fmt):
    facts = facts_of(ATTEMPT, None, ENGLISH)
    own = readable_error(fmt, facts, Policy(error_text="Ask the help desk."))
    assert own.endswith(". Ask the help desk.")
    assert readable_error(fmt, facts, ENGLISH).startswith(own.removesuffix("Ask the help desk."))


def test_a_small_window_names_both_figures():
    assert "512" in small_window(512, 4_096)
    assert "4096" in small_window(512, 4_096)
