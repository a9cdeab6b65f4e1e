"""The readable error claims nothing that was not done, keeps the provider's words, and opens as clients expect."""

import re
from dataclasses import replace

import pytest
from engine_requests import attempted
from hypothesis import given
from hypothesis import strategies as st

from ctx_hooks.flow.final_error import readable_error, small_window_error
from ctx_hooks.overflow.recognise import Overflow, recognise_overflow
from ctx_hooks.policy.settings import Policy

ENGLISH = Policy()
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
attempts = st.none() | st.builds(
    attempted, st.integers(1, 2_000_000), tokens, received_tokens=tokens, number=st.integers(0, 3), lowered=st.booleans(),
    spent=st.booleans(), stored=st.booleans(),
)  # fmt: skip
policies = st.builds(Policy, rescue_attempts=st.sampled_from((0, 3)), language=st.sampled_from(("en", "zh")))
ENDS = (attempts, overflows, st.sampled_from(FORMATS), policies)


def first(received, window, overflow, **fields):
    """Return the arguments of a request that was sent once, as it came."""
    return attempted(window, received, **fields), overflow


def is_compressed(attempt):
    return bool(attempt and 0 < (attempt.sent_tokens or 0) < (attempt.received_tokens or 0))


@given(*ENDS)
def test_error_makes_up_no_figure(attempt, overflow, fmt, policy):
    """Every number in the error is one of the facts, or stands in the provider's sentence."""
    known = set()
    if attempt:
        known = {attempt.to.attempt + 1, attempt.received_tokens, attempt.sent_tokens, attempt.limits.window.tokens}
    if overflow:
        known |= {overflow.limit_tokens, overflow.input_tokens, *(int(n) for n in re.findall(r"\d+", overflow.sentence))}
    assert {int(n) for n in re.findall(r"\d+", readable_error(fmt, attempt, overflow, policy))} <= known


@given(attempts, overflows, st.sampled_from(FORMATS), st.sampled_from((0, 3)))
def test_error_claims_only_what_was_done(attempt, overflow, fmt, retries):
    policies = (Policy(language=language, rescue_attempts=retries) for language in ("en", "zh"))
    english, chinese = (readable_error(fmt, attempt, overflow, policy) for policy in policies)
    retried = bool(attempt and attempt.to.attempt)
    assert ("was compressed from" in english) == ("压缩到" in chinese) == is_compressed(attempt)
    assert ("attempts were refused" in english) == ("次尝试" in chinese) == retried
    assert ("was lowered" in english) == bool(attempt and attempt.lowered)
    if retried:
        assert "not retried" not in english
        assert "没有重试" not in chinese


@given(*ENDS)
def test_error_is_one_line_with_providers_sentence(attempt, overflow, fmt, policy):
    text = readable_error(fmt, attempt, overflow, policy)
    assert text.isprintable()
    assert "None" not in text
    if overflow and overflow.sentence:
        assert SAID in text


@given(attempts, overflows)
def test_anthropics_opening_has_only_fitting_figures(attempt, overflow):
    text = readable_error("anthropic", attempt, overflow, ENGLISH)
    if overflow and overflow.kind == "output_limit":
        assert text.startswith("max_tokens is too large")
        return
    assert text.startswith("prompt is too long")
    figures = re.match(r"prompt is too long: (\d+) tokens > (\d+) maximum\. ", text)
    if figures:
        assert int(figures[1]) > int(figures[2])
    else:
        assert text.startswith("prompt is too long. ")


def test_error_names_estimates_as_such():
    uncompressed = first(50_000, 60_000, OVERFLOW)
    assert readable_error("openai-chat", *uncompressed, ENGLISH).startswith(
        "This model's maximum context length is 60000 tokens. However, your messages resulted in 61004 tokens. Nothing was"
    )
    compressed = first(50_000, 60_000, OVERFLOW, received_tokens=75_000, number=1)
    assert "resulted in about 75000 tokens" in readable_error("openai-chat", *compressed, ENGLISH)
    assert readable_error("anthropic", *compressed, ENGLISH).startswith("prompt is too long: 75000 tokens > 60000 maximum. ")


@pytest.mark.parametrize("fmt", FORMATS)
def test_error_names_window_only_if_exceeded(fmt):
    overflow = recognise_overflow("Prompt exceeds max length")
    for size in (50_000, 250_000):
        text = readable_error(fmt, *first(size, 200_000, overflow), ENGLISH)
        assert ("200000" in text) == (size > 200_000)
    assert "250000" in text


@pytest.mark.parametrize(("limit", "said"), [(4_096, "supports at most 4096 output"), (None, "supports fewer output")])
def test_too_long_output_is_named_as_such(limit, said):
    text = readable_error("openai-chat", None, Overflow("output_limit", "x", limit), ENGLISH)
    assert said in text
    assert text.endswith("Ask for a shorter answer.")
    assert not readable_error("openai-chat", None, OVERFLOW, ENGLISH).endswith("Ask for a shorter answer.")


def test_rate_limit_is_named_as_such():
    facts = first(250_000, 400_000, Overflow("input", "rate_too_large", 200_000))
    text = readable_error("openai-chat", *facts, ENGLISH)
    assert text.startswith("The request alone is above the provider's rate limit of 200000 tokens.")
    assert "context length" not in text


@pytest.mark.parametrize(("fields", "retries", "english", "chinese"), [
    ({"spent": True}, 0, "since retries are switched off", "重试已关闭"),
    ({"spent": True}, 3, "no more of it may be compressed", "没有更多内容可以压缩"),
    ({"spent": True, "stored": True}, 3, "is kept by the provider", "保存在模型服务商处"),
])  # fmt: skip
def test_error_says_why_nothing_was_retried(fields, retries, english, chinese):
    facts = first(50_000, 60_000, None, **fields)
    for language, words in (("en", english), ("zh", chinese)):
        assert words in readable_error("openai-chat", *facts, Policy(language=language, rescue_attempts=retries))


def test_error_tells_last_attempt_in_provider_tokens():
    text = readable_error("openai-chat", ATTEMPT, OVERFLOW, ENGLISH)
    assert "compressed from about 75000 to about 45000 tokens; all 4 attempts" in text
    uncounted = replace(ATTEMPT, received_tokens=None, sent_tokens=None)
    assert "Nothing was compressed; all 4 attempts" in readable_error("openai-chat", uncounted, OVERFLOW, ENGLISH)


@pytest.mark.parametrize(("language", "said", "advice"), [
    ("en", "The model's window of 9000 tokens is below the least that is served here, 16000 tokens.", "a larger window."),
    ("zh", "该模型的窗口为 9000 个 token,低于此处允许的下限 16000 个 token。", "改用窗口更大的模型。"),
])  # fmt: skip
def test_small_windows_refusal_ends_with_advice(language, said, advice):
    text = small_window_error(9_000, Policy(language=language, block_below_tokens=16_000))
    assert text.startswith(said)
    assert text.endswith(advice)
