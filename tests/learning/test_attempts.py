"""A retry finds the attempt before it, and no other request's."""

from dataclasses import replace

from ctx_hooks.learning.attempts import Attempt, Attempts, DeploymentName
from ctx_hooks.overflow.recognise import Overflow
from ctx_hooks.tokens.window import Window

ATTEMPT = Attempt("deployment", "model", "tenant", "openai-chat", 5_000, 4_000, Window(8_000, "policy"), 1.0)


def test_the_first_attempts_size_is_kept_through_all_others():
    attempts = Attempts()
    attempts.sent(ATTEMPT)
    attempts.failed(None)
    attempts.sent(replace(ATTEMPT, sent_tokens=2_000, number=1))
    last = attempts.last()
    assert last is not None
    assert (last.first_tokens, last.sent_tokens, last.failed) == (4_000, 2_000, False)
    assert attempts.done() == last
    assert attempts.last() is None


def test_an_attempt_fails_once():
    attempts = Attempts()
    attempts.sent(ATTEMPT)
    overflow = Overflow("input", "x", 3_000)
    told = attempts.failed(overflow, "too long")
    assert attempts.failed(None, "again") is None
    assert attempts.last() == told
    assert (told.failed, told.overflow, told.refusal) == (True, overflow, "too long")


def test_the_failure_of_an_unknown_request_is_no_attempts():
    assert Attempts().failed(Overflow("input", "x")) is None


def test_what_was_sent_is_known_in_the_providers_tokens():
    assert replace(ATTEMPT, factor=1.25).sent_provider_tokens == 5_000
    assert replace(ATTEMPT, factor=1.25, sent_tokens=None).sent_provider_tokens == 0


MAIN = replace(ATTEMPT, deployment="m:openai/gpt", sent_tokens=30_000)
SHADOW = replace(ATTEMPT, deployment="s:openai/gpt", sent_tokens=3_000)


def test_each_of_two_attempts_at_once_is_found_by_the_deployment_that_answers():
    attempts = Attempts()
    attempts.sent(MAIN)
    attempts.sent(SHADOW)
    assert attempts.done(DeploymentName("m", "gpt")).sent_tokens == 30_000
    assert attempts.done(DeploymentName("m", "gpt")) is None
    assert attempts.last() is None, "an answer of no known attempt leaves nothing to learn from"


def test_the_failure_of_one_of_two_attempts_leaves_the_other_running():
    attempts = Attempts()
    attempts.sent(MAIN)
    attempts.sent(SHADOW)
    failed = attempts.failed(Overflow("input", "x"), "too long", DeploymentName("m", "gpt"))
    assert failed.deployment == "m:openai/gpt"
    assert attempts.last("m:openai/gpt").failed
    assert not attempts.last("s:openai/gpt").failed
    assert attempts.are_running
    assert attempts.done(DeploymentName("s", "gpt")).first_tokens == 3_000
    assert not attempts.are_running


def test_models_behind_one_id_are_told_apart_by_their_names():
    attempts = Attempts()
    attempts.sent(replace(MAIN, deployment="w:openai/large"))
    attempts.sent(replace(SHADOW, deployment="w:openai/small"))
    assert attempts.done(DeploymentName("w", "large")).sent_tokens == 30_000


def test_a_retry_elsewhere_follows_the_attempt_that_failed():
    attempts = Attempts()
    attempts.sent(MAIN)
    attempts.sent(SHADOW)
    attempts.failed(Overflow("input", "x"), "", DeploymentName("m", "gpt"))
    assert attempts.last("other:model").deployment == "m:openai/gpt"
