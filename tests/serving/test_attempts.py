"""A retry finds the attempt before it, and no other request's."""

from engine_requests import attempted

from ctx_hooks.litellm_compat.call import DeploymentName
from ctx_hooks.overflow.recognise import Overflow
from ctx_hooks.serving.running import Attempts

ATTEMPT = attempted(8_000, 4_000, received_tokens=5_000)


def at(deployment, sent):
    return attempted(8_000, sent, deployment=deployment)


def test_the_first_attempts_size_is_kept_through_all_others():
    attempts = Attempts()
    attempts.sent(ATTEMPT)
    attempts.failed(None)
    attempts.sent(attempted(8_000, 2_000, number=1))
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
    assert attempted(8_000, 4_000, factor=1.25).sent_provider_tokens == 5_000
    assert attempted(8_000, factor=1.25).sent_provider_tokens == 0


MAIN = at("m:openai/gpt", 30_000)
SHADOW = at("s:openai/gpt", 3_000)


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
    assert failed.to.deployment == "m:openai/gpt"
    assert attempts.last("m:openai/gpt").failed
    assert not attempts.last("s:openai/gpt").failed
    assert attempts.are_running
    assert attempts.done(DeploymentName("s", "gpt")).first_tokens == 3_000
    assert not attempts.are_running


def test_models_behind_one_id_are_told_apart_by_their_names():
    attempts = Attempts()
    attempts.sent(at("w:openai/large", 30_000))
    attempts.sent(at("w:openai/small", 3_000))
    assert attempts.done(DeploymentName("w", "large")).sent_tokens == 30_000


def test_a_retry_elsewhere_follows_the_attempt_that_failed():
    attempts = Attempts()
    attempts.sent(MAIN)
    attempts.sent(SHADOW)
    attempts.failed(Overflow("input", "x"), "", DeploymentName("m", "gpt"))
    assert attempts.last("other:model").to.deployment == "m:openai/gpt"
