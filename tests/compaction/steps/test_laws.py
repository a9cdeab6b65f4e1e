"""The laws of every step, over generated conversations of all formats."""

import copy
import os
import subprocess
import sys
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import FIELDS, every_format, items_of, payloads

from ctx_hooks import message_rules
from ctx_hooks.compaction.pipeline import STEPS, compress
from ctx_hooks.conversation.model import Reasoning
from ctx_hooks.formats import WIRE_FORMATS
from ctx_hooks.testing import agent_session
from ctx_hooks.tokens.budget import Budget
from ctx_hooks.tokens.counter import Counter

every_step = pytest.mark.parametrize("step", STEPS, ids=lambda s: s.name)
thorough = settings(max_examples=5)
goals = st.integers(20, 2_000)


def budget_of(goal: int) -> Budget:
    return Budget(goal, window_tokens=max(goal, 4_000), counter=Counter("cl100k_base"))


def broken(conversation):
    """Return what breaks a rule, also the one that has no repair: Anthropic wants a tool loop's thinking to come first."""
    loop = conversation.messages[conversation.newest_request :] if conversation.format == "anthropic" else ()
    kinds = [[isinstance(part, Reasoning) for part in m.parts] for m in loop if m.role == "assistant"]
    return [*message_rules.repair(conversation)[1], *(found for found in kinds if True in found and not found[0])]


@every_step
@every_format
@thorough
@given(data=st.data(), goal=goals)
def test_a_step_grows_nothing_breaks_no_rule_leaves_its_input_and_is_done_at_once(step, fmt, data, goal):
    messages = data.draw(payloads(fmt))
    before = copy.deepcopy(messages)
    codec, budget = WIRE_FORMATS[fmt], budget_of(goal)
    conversation = codec.read(messages)
    assert not broken(conversation)
    outcome = compress(conversation, budget, (step,))
    assert outcome.tokens_after <= outcome.tokens_before
    assert not broken(outcome.conversation)
    assert messages == before
    written = codec.write(outcome.conversation)
    again = codec.read(written)
    assert not broken(again)
    assert codec.write(compress(again, budget, (step,)).conversation) == written


@every_format
@pytest.mark.parametrize("spare_tokens", [1_500, 6_000])
def test_what_has_settled_stays_to_the_byte_before_all_else(fmt, spare_tokens):
    """The larger room shortens results; the smaller one removes exchanges, and a summary stands behind what has settled."""
    conversation = WIRE_FORMATS[fmt].read(items_of(agent_session(fmt, turns=30)))
    settled = conversation.exchanges[10][-1] + 1
    budget = budget_of(0)
    held_tokens = budget.counter.conversation(conversation.with_messages(conversation.messages[:settled]))
    outcome = compress(replace(conversation, settled=settled), replace(budget, goal_tokens=held_tokens + spare_tokens))
    assert outcome.fits
    assert outcome.steps
    sent = outcome.conversation.messages
    assert all(a is b for a, b in zip(conversation.messages[:settled], sent[:settled], strict=True))
    assert sent[settled].text.startswith("[ctx_hooks]") == (len(sent) < len(conversation.messages))


@every_format
@thorough
@given(data=st.data(), goal=goals)
def test_all_steps_together_keep_the_newest_request_and_the_rules(fmt, data, goal):
    """A summary may stand in the newest request, where no other is left before it: before or behind the user's words."""
    conversation = WIRE_FORMATS[fmt].read(data.draw(payloads(fmt)))
    outcome = compress(conversation, budget_of(goal))
    newest = conversation.messages[conversation.newest_request]
    sent = outcome.conversation.messages[outcome.conversation.newest_request]
    mark = "[ctx_hooks]"
    is_behind = sent.text.startswith(mark) and sent.text.endswith(f"\n{newest.text}")
    assert sent == newest or is_behind or sent.text.startswith(f"{newest.text}\n\n{mark}")
    assert not broken(outcome.conversation)


PROGRAM = """
import hashlib, json, sys
import ctx_hooks
from ctx_hooks.testing import agent_session
for fmt, field in FIELDS:
    for _ in range(2):
        messages = agent_session(fmt, turns=30, result_chars=3000)[field]
        result = ctx_hooks.compress(messages, format=fmt, budget_tokens=6000)
        print(fmt, hashlib.sha256(json.dumps(result.messages).encode()).hexdigest())
"""


def test_the_same_request_becomes_the_same_bytes_in_every_process():
    """Neither the order of sets nor what was computed before, in the same process, may show."""
    printed = {
        subprocess.run(
            [sys.executable, "-c", PROGRAM.replace("FIELDS", repr(tuple(FIELDS.items())))],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "77")
    }
    assert len({line for text in printed for line in text.splitlines()}) == len(FIELDS)
