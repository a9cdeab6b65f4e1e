"""A retry finds the attempt before it, and no other request's."""

from __future__ import annotations

from dataclasses import replace

from ctx_hooks.learning.attempts import Attempt, Attempts
from ctx_hooks.tokens.window import Window

ATTEMPT = Attempt("deployment", "model", "tenant", "openai-chat", 5_000, 4_000, Window(8_000, "policy"), 1.0)


def test_the_first_attempts_size_is_kept_through_all_others():
    attempts = Attempts()
    attempts.sent("request", ATTEMPT)
    attempts.failed("request", None)
    attempts.sent("request", replace(ATTEMPT, sent_tokens=2_000, number=1))
    last = attempts.last("request")
    assert last is not None
    assert (last.first_tokens, last.sent_tokens, last.failed) == (4_000, 2_000, False)
    assert attempts.done("request") == last
    assert attempts.last("request") is None


def test_requests_without_an_id_are_not_taken_for_one_another():
    attempts = Attempts()
    attempts.sent("", ATTEMPT)
    assert attempts.last("") is None


def test_an_attempt_fails_once():
    attempts = Attempts()
    attempts.sent("request", ATTEMPT)
    assert attempts.failed("request", None, "too long") is not None
    assert attempts.failed("request", None, "again") is None
    assert attempts.last("request").refusal == "too long"
