"""A retry finds the attempt before it, and no other request's."""

from dataclasses import replace

from ctx_hooks.learning import attempts as attempts_module
from ctx_hooks.learning.attempts import Attempt, Attempts, DeploymentName
from ctx_hooks.overflow.recognise import Overflow
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
    overflow = Overflow("input", "x", 3_000)
    told = attempts.failed("request", overflow, "too long")
    assert attempts.failed("request", None, "again") is None
    assert attempts.last("request") == told
    assert (told.failed, told.overflow, told.refusal) == (True, overflow, "too long")


def test_the_failure_of_an_unknown_request_is_no_attempts():
    assert Attempts().failed("never sent", Overflow("input", "x")) is None


def test_the_requests_that_were_quiet_for_longest_are_forgotten_first(monkeypatch):
    """A retry is no new request, and keeps its request remembered."""
    monkeypatch.setattr(attempts_module, "RUNNING_REQUESTS", 3)
    attempts = Attempts()
    for request_id in ("first", "second", "third", "first", "fourth"):
        attempts.sent(request_id, ATTEMPT)
    assert [r for r in ("first", "second", "third", "fourth") if attempts.last(r)] == ["first", "third", "fourth"]


def test_what_was_sent_is_known_in_the_providers_tokens():
    assert replace(ATTEMPT, factor=1.25).sent_provider_tokens == 5_000
    assert replace(ATTEMPT, factor=1.25, sent_tokens=None).sent_provider_tokens == 0


MAIN = replace(ATTEMPT, deployment="m:openai/gpt", sent_tokens=30_000)
SHADOW = replace(ATTEMPT, deployment="s:openai/gpt", sent_tokens=3_000)


def test_each_of_two_attempts_at_once_is_found_by_the_deployment_that_answers():
    attempts = Attempts()
    attempts.sent("request", MAIN)
    attempts.sent("request", SHADOW)
    assert attempts.done("request", DeploymentName("m", "gpt")).sent_tokens == 30_000
    assert attempts.done("request", DeploymentName("m", "gpt")) is None
    assert attempts.last("request") is None, "an answer of no known attempt leaves nothing to learn from"


def test_the_failure_of_one_of_two_attempts_leaves_the_other_running():
    attempts = Attempts()
    attempts.sent("request", MAIN)
    attempts.sent("request", SHADOW)
    assert (
        attempts.failed("request", Overflow("input", "x"), "too long", DeploymentName("m", "gpt")).deployment
        == "m:openai/gpt"
    )
    assert attempts.last("request", "m:openai/gpt").failed
    assert not attempts.last("request", "s:openai/gpt").failed
    assert attempts.done("request", DeploymentName("s", "gpt")).first_tokens == 3_000


def test_models_behind_one_id_are_told_apart_by_their_names():
    attempts = Attempts()
    attempts.sent("request", replace(MAIN, deployment="w:openai/large"))
    attempts.sent("request", replace(SHADOW, deployment="w:openai/small"))
    assert attempts.done("request", DeploymentName("w", "large")).sent_tokens == 30_000


def test_a_retry_elsewhere_follows_the_attempt_that_failed():
    attempts = Attempts()
    attempts.sent("request", MAIN)
    attempts.sent("request", SHADOW)
    attempts.failed("request", Overflow("input", "x"), "", DeploymentName("m", "gpt"))
    assert attempts.last("request", "other:model").deployment == "m:openai/gpt"
