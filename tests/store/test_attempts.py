"""A retry finds the attempt before it, and no other request's."""

from __future__ import annotations

from ctx_hooks.store.attempts import Attempt, Attempts
from ctx_hooks.tokens.window import Window

ATTEMPT = Attempt("deployment", "openai-chat", 5_000, 4_000, Window(8_000, "policy"), 1.0)


def test_the_first_attempts_size_is_kept_through_all_others():
    attempts = Attempts()
    attempts.sent("call", ATTEMPT)
    attempts.failed("call", None)
    attempts.sent("call", Attempt("deployment", "openai-chat", 5_000, 2_000, Window(8_000, "policy"), 1.0, number=1))
    last = attempts.last("call")
    assert last is not None
    assert (last.first_tokens, last.sent_tokens, last.failed) == (4_000, 2_000, False)
    assert attempts.done("call") == last
    assert attempts.last("call") is None


def test_requests_without_an_id_are_not_taken_for_one_another():
    attempts = Attempts()
    attempts.sent("", ATTEMPT)
    assert attempts.last("") is None
