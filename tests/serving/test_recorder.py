"""What is recorded of an answer: saved is what the bill would have been higher by, rescued what would have had none."""

from __future__ import annotations

from dataclasses import replace

import pytest
from told_events import DECISION

from ctx_hooks.compaction.cost import Prices
from ctx_hooks.learning.attempts import Attempt
from ctx_hooks.serving.attempt_runner import Answered
from ctx_hooks.serving.recorder import answer_event
from ctx_hooks.tokens.usage import Billed
from ctx_hooks.tokens.window import Window

PRICES = Prices(plain=1e-6, cache_read=1e-7, cache_write=1e-6)
SENT = Attempt("id:model", "model", "", "openai-chat", 9_000, 4_000, Window(10_000, "model_info"), 1.1)
BILL = Billed(4_400)


def saved(event):
    return event.rescued, event.provider_tokens_saved, event.dollars_saved


def test_a_compressed_request_saves_what_the_rest_of_it_would_have_cost():
    event = answer_event(DECISION, Answered(SENT, BILL), PRICES)
    assert saved(event) == (False, 5_500, pytest.approx(0.0055))
    assert (event.decision, event.trigger, event.attempts, event.billed) == ("compressed", "budget", 1, BILL)


@pytest.mark.parametrize(
    ("decided", "attempt"),
    [
        (replace(DECISION, provider_tokens_before=10_001), SENT),
        (replace(DECISION, decision="rescued", trigger="overflow"), replace(SENT, number=1)),
    ],
    ids=["compressed from above the window", "retried"],
)
def test_what_would_have_had_no_answer_saves_nothing_and_is_rescued(decided, attempt):
    assert saved(answer_event(decided, Answered(attempt, BILL), PRICES)) == (True, 0, 0.0)


def test_what_was_answered_as_it_came_is_not_rescued_whatever_its_estimate():
    decided = replace(DECISION, decision="untouched", local_tokens_after=9_000, provider_tokens_before=10_001)
    assert saved(answer_event(decided, Answered(replace(SENT, sent_tokens=9_000), BILL), PRICES)) == (False, 0, 0.0)


def test_what_was_not_counted_saves_nothing():
    decided = replace(DECISION, local_tokens_before=None, local_tokens_after=None, provider_tokens_before=None)
    assert saved(answer_event(decided, Answered(replace(SENT, sent_tokens=None), BILL), PRICES)) == (False, 0, 0.0)


def test_without_a_bill_or_a_price_nobody_knows():
    assert saved(answer_event(DECISION, Answered(SENT, None), PRICES)) == (False, None, None)
    assert saved(answer_event(DECISION, Answered(SENT, BILL), None)) == (False, 5_500, None)


def test_an_observed_request_would_have_saved_the_part_of_its_bill_that_was_to_be_cut():
    observed = replace(SENT, sent_tokens=9_000, decided_tokens=4_500, observed=True)
    event = answer_event(
        replace(DECISION, mode="observe", local_tokens_after=4_500), Answered(observed, Billed(9_900)), PRICES
    )
    assert saved(event) == (False, 4_950, pytest.approx(0.00495))
    assert event.mode == "observe"


def test_an_observed_request_that_was_answered_needed_no_rescue_whatever_its_estimate():
    observed = replace(SENT, sent_tokens=9_000, decided_tokens=4_500, observed=True)
    decided = replace(DECISION, mode="observe", local_tokens_after=4_500, provider_tokens_before=10_001)
    assert saved(answer_event(decided, Answered(observed, Billed(9_900)), PRICES)) == (False, 4_950, pytest.approx(0.00495))
