"""Whoever spoke last is heard: tool results give way before the newest words of a user, in every form of a request."""

import json
import random
from dataclasses import replace

import pytest
from engine_requests import MODEL, decided, sent, to
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from strategies import FIELDS, every_format, spoken, tool_round

from ctx_hooks.attempts.attempt import Limits
from ctx_hooks.attempts.request import Request
from ctx_hooks.flow import engine
from ctx_hooks.flow.decision import NotRetried
from ctx_hooks.overflow.recognise import Overflow
from ctx_hooks.testing import agent_session, violations
from ctx_hooks.testing.conversations import source_text

ASKED = "QUESTION-ZEBRA: which of them reads the ledger?"
SOURCE = source_text(random.Random(0), 40_000)


def loop(fmt, name, calls, chars, said=""):
    """Return a round of tool calls with results of about `chars` each, and what the user says beside or behind them."""
    return tool_round(fmt, [(f"round_{name}_{n}", SOURCE[n * 1_000 :][:chars]) for n in range(calls)], said)


def sent_forms(request, target):
    """Yield the request as it is prepared, as each retry after a refusal without figures, and by the last resort."""
    previous = None
    for attempt in range(4):
        where = replace(target, attempt=attempt)
        decision, made = decided(request, where, Limits(target.window, previous=previous))
        if isinstance(decision, NotRetried):
            break
        yield sent(request, decision)
        previous = replace(made, failed=True, overflow=Overflow("input", "x"))
    for cut_newest in (0, 3):
        where = replace(target, attempt=cut_newest)
        refused = Limits(target.window, previous=previous if cut_newest else None)
        decision = engine.decide_by_last_resort(request, where, refused).decision
        if not isinstance(decision, NotRetried):
            yield sent(request, decision)


@every_format
@pytest.mark.parametrize("beside", [False, True])
@settings(max_examples=8, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    window=st.sampled_from([1_500, 2_000, 4_000, 8_000]),
    turns=st.integers(1, 6),
    calls=st.sampled_from([1, 3, 14]),
    chars=st.sampled_from([100, 900, 4_000]),
    rounds=st.integers(1, 2),
    policy=st.sampled_from([{}, {"keep_recent": "50%"}]),
)
def test_tool_results_give_way_before_newest_words(fmt, beside, window, turns, calls, chars, rounds, policy):
    """Anthropic's and Google's clients put what is typed while tools run beside the results."""
    begun = agent_session(fmt, turns=turns, result_chars=1_000, model=MODEL)
    asked = loop(fmt, "asked", 2, chars, ASKED) if beside else [spoken(fmt, "user", ASKED)]
    items = [*begun[FIELDS[fmt]], *asked, *(message for n in range(rounds) for message in loop(fmt, n, calls, chars))]
    request = Request(fmt, {**begun, FIELDS[fmt]: items})
    for form in sent_forms(request, to(window, **policy)):
        assert ASKED in json.dumps(form.items)
        assert not violations(fmt, form.fields)
