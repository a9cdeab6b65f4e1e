"""What refusals and answers teach about a deployment: pure functions from its figures to its figures."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from ctx_hooks.extensions import TruncationEvent
from ctx_hooks.overflow.ladder import limit_shown

if TYPE_CHECKING:
    from ctx_hooks.overflow.recognise import Overflow
    from ctx_hooks.store.attempts import Attempt
    from ctx_hooks.store.learned import LearnedFigures

LEAST_TRUNCATED_TOKENS = 1_024
USUAL_TOKEN_BYTES = 8
"""Few texts have more bytes a token; an image as base64 has, and then a request is counted for nothing."""
TRUNCATED_FRACTION = 0.45
"""No tokenizer is so far off: below this share of our estimate something was cut away."""

MOST_GUESSED_FRACTION = 0.2
"""A request of which more is images, files or sealed reasoning says nothing of how its text is billed."""


def may_be_truncated(attempt: Attempt, billed_tokens: int) -> bool:
    """Return whether an answer bills little for the size of a request that was not counted: the next one had better be."""
    return billed_tokens >= LEAST_TRUNCATED_TOKENS and billed_tokens * USUAL_TOKEN_BYTES < attempt.most_tokens


def truncation(attempt: Attempt, billed_tokens: int) -> TruncationEvent | None:
    """Return the event when an answer's own figure shows that the request was too long and was not refused.

    Either only a part of it was read, as Ollama does in silence, or more was read than the window is configured to hold,
    which an overflow error should have told.
    """
    sent = int((attempt.sent_tokens or 0) * attempt.factor)
    exceeds = attempt.window.source != "learned" and billed_tokens > attempt.window.tokens
    if not exceeds and not _only_a_part(attempt, billed_tokens):
        return None
    return TruncationEvent("silent_truncation", attempt.deployment_id, sent, billed_tokens, attempt.window.tokens)


def of_answer(figures: LearnedFigures, attempt: Attempt, billed_tokens: int, now: float) -> LearnedFigures:
    """Return the figures after an answer that billed so many input tokens."""
    if _only_a_part(attempt, billed_tokens):
        return figures.limited(billed_tokens, now)
    figures = figures.accepted(billed_tokens + (attempt.output_tokens or 0))
    if attempt.sent_tokens is None or attempt.guessed_tokens > MOST_GUESSED_FRACTION * attempt.sent_tokens:
        return figures
    return figures.billed(attempt.sent_tokens, billed_tokens, now)


def of_refusal(figures: LearnedFigures, attempt: Attempt, overflow: Overflow, now: float) -> LearnedFigures:
    """Return the figures after an overflow: the limit that it names or shows, and what it says of counting."""
    counted = attempt.sent_tokens
    if counted is None:
        return figures
    if overflow.input_tokens and not overflow.at_least:
        figures = replace(figures, calibration=figures.calibration.observe(counted, overflow.input_tokens))
    if overflow.kind == "output_limit":
        return replace(figures, output_limit_tokens=overflow.limit_tokens)
    if overflow.kind == "input_plus_output":
        figures = replace(figures, holds_output=True)
    sent, first = (int(tokens * attempt.factor) for tokens in (counted, attempt.first_tokens or counted))
    return figures.limited(limit_shown(overflow, sent, first, attempt.number + 1), now)


def _only_a_part(attempt: Attempt, billed_tokens: int) -> bool:
    expected = ((attempt.sent_tokens or 0) - attempt.guessed_tokens) * attempt.factor
    return LEAST_TRUNCATED_TOKENS <= billed_tokens < TRUNCATED_FRACTION * expected
