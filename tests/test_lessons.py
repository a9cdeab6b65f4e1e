"""What a refusal or an answer teaches holds for the deployment, and nothing else is concluded from it."""

from __future__ import annotations

from dataclasses import replace

from ctx_hooks import lessons
from ctx_hooks.overflow.recognise import recognise_overflow
from ctx_hooks.store.attempts import Attempt
from ctx_hooks.store.learned import LearnedFigures
from ctx_hooks.tokens.window import Window

NOW = 1_000_000.0
NOTHING = LearnedFigures()
COUNTED = Attempt("deployment", "openai-chat", 50_000, 50_000, Window(200_000, "model_info"), 1.0, output_tokens=8_000)
UNCOUNTED = Attempt("deployment", "openai-chat", None, None, Window(200_000, "model_info"), 1.0, output_tokens=8_000)


def test_an_answer_teaches_the_ratio_and_what_was_accepted():
    figures = lessons.of_answer(NOTHING, COUNTED, 60_000, NOW)
    assert figures.calibration.ratios == (1.2,)
    assert figures.accepted_tokens == 68_000
    assert figures.limit_at(NOW) is None


def test_a_request_that_was_not_counted_teaches_no_ratio():
    figures = lessons.of_answer(NOTHING, UNCOUNTED, 60_000, NOW)
    assert figures.calibration.ratios == ()
    assert figures.accepted_tokens == 68_000


def test_an_answer_to_a_fraction_of_the_request_teaches_a_limit_and_no_ratio():
    figures = lessons.of_answer(NOTHING, COUNTED, 4_096, NOW)
    assert figures.limit_at(NOW) == 4_096
    assert figures.calibration.ratios == ()


def test_what_is_mostly_guessed_teaches_neither_a_limit_nor_a_ratio():
    """A scanned document of five megabytes may be billed at a tenth of what its size suggests."""
    document = replace(COUNTED, guessed_tokens=48_000)
    assert lessons.truncation(document, 6_000) is None
    assert lessons.of_answer(NOTHING, document, 6_000, NOW) == NOTHING.accepted(14_000)


def test_what_should_have_been_refused_and_was_not_is_told():
    part = lessons.truncation(COUNTED, 4_096)
    assert part is not None
    assert (part.sent_tokens, part.read_tokens, part.window_tokens) == (50_000, 4_096, 200_000)
    assert lessons.truncation(COUNTED, 210_000) is not None
    assert lessons.truncation(COUNTED, 49_000) is None
    learned = replace(COUNTED, window=Window(45_000, "learned"))
    assert lessons.truncation(learned, 50_000) is None, "a learned limit may have been too small"


def test_a_refusal_teaches_its_limit_and_its_count():
    overflow = recognise_overflow("prompt is too long: 61004 tokens > 60000 maximum")
    assert overflow is not None
    figures = lessons.of_refusal(NOTHING, COUNTED, overflow, NOW)
    assert figures.limit_at(NOW) == 60_000
    assert figures.calibration.ratios == (round(61_004 / 50_000, 4),)
    assert figures.holds_output is None


def test_a_refused_output_teaches_the_cap_and_no_window():
    text = "max_tokens is too large: 20000. This model supports at most 4096 completion tokens, whereas you provided 20000."
    overflow = recognise_overflow(text, status=400)
    assert overflow is not None
    figures = lessons.of_refusal(NOTHING, COUNTED, overflow, NOW)
    assert (figures.output_limit_tokens, figures.limit_at(NOW)) == (4_096, None)
