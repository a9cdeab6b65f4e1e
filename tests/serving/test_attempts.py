"""A retry finds the attempt before it, and no other request's."""

import pytest
from engine_requests import attempted

from ctx_hooks.litellm_compat.call import DeploymentName
from ctx_hooks.overflow.recognise import Overflow
from ctx_hooks.serving.running import Attempts

ATTEMPT = attempted(8_000, 4_000, received_tokens=5_000)


def at(deployment, sent):
    return attempted(8_000, sent, deployment=deployment)


def test_first_attempts_size_is_kept():
    attempts = Attempts()
    attempts.sent(ATTEMPT)
    attempts.failed(None)
    attempts.sent(attempted(8_000, 2_000, number=1))
    last = attempts.last()
    assert last is not None
    assert (last.first_tokens, last.sent_tokens, last.failed) == (4_000, 2_000, False)
    assert attempts.done() == last
    assert attempts.last() is None


def test_attempt_fails_once():
    attempts = Attempts()
    assert attempts.failed(None) is None, "none was sent"
    attempts.sent(ATTEMPT)
    overflow = Overflow("input", "x", 3_000)
    told = attempts.failed(overflow, "too long")
    assert attempts.failed(None, "again") is None
    assert attempts.last() == told
    assert (told.failed, told.overflow, told.refusal) == (True, overflow, "too long")


MAIN = at("m:openai/gpt", 30_000)
SHADOW = at("s:openai/gpt", 3_000)


@pytest.fixture
def both():
    attempts = Attempts()
    attempts.sent(MAIN)
    attempts.sent(SHADOW)
    return attempts


def test_answer_finds_attempt_by_its_deployment(both):
    assert both.done(DeploymentName("m", "gpt")).sent_tokens == 30_000
    assert both.done(DeploymentName("m", "gpt")) is None
    assert both.last() is None, "an answer of no known attempt leaves nothing to learn from"


def test_failure_of_one_attempt_leaves_the_other(both):
    failed = both.failed(Overflow("input", "x"), "too long", DeploymentName("m", "gpt"))
    assert failed.to.deployment == "m:openai/gpt"
    assert both.last(MAIN.to).failed
    assert not both.last(SHADOW.to).failed
    assert both.are_running
    assert both.done(DeploymentName("s", "gpt")).first_tokens == 3_000
    assert not both.are_running


def test_attempts_differ_in_whole_id_and_model():
    """One id may begin another, and several models may have one id."""
    attempts = Attempts()
    attempts.sent(at("prod:openai/gpt", 30_000))
    attempts.sent(at("prod:openai/small", 2_000))
    attempts.sent(attempted(8_000, 3_000, deployment_id="prod:eu", deployment="prod:eu:openai/gpt"))
    assert attempts.at(DeploymentName("prod", "gpt")).sent_tokens == 30_000


def test_retry_elsewhere_follows_failed_attempt(both):
    both.failed(Overflow("input", "x"), "", DeploymentName("m", "gpt"))
    assert both.last(at("other:model", 1).to).to.deployment == "m:openai/gpt"
