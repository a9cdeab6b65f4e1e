"""What is sent where a compression would take too long keeps the provider's rules and the budget, by estimate."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import broken_payloads, every_format, items_of, payloads

from ctx_hooks import message_rules
from ctx_hooks.compaction import last_resort, pipeline
from ctx_hooks.conversation.model import is_request
from ctx_hooks.conversation.placeholders import MARK, line
from ctx_hooks.formats import WIRE_FORMATS
from ctx_hooks.testing import agent_session
from ctx_hooks.tokens.budget import Budget
from ctx_hooks.tokens.counter import Counter

many = settings(max_examples=15)


class _NeverCounts(Counter):
    def text(self, text):
        raise AssertionError(f"counted {text[:40]!r}")


def budget_of(goal_tokens, **fields):
    return Budget(goal_tokens, goal_tokens, _NeverCounts("cl100k_base"), **fields)


@every_format
@many
@given(data=st.data(), goal=st.integers(50, 4_000))
def test_its_laws(fmt, data, goal):
    conversation = WIRE_FORMATS[fmt].read(data.draw(st.one_of(payloads(fmt), broken_payloads(fmt))))
    outcome = last_resort.compress(conversation, budget_of(goal))
    sent = outcome.conversation
    assert outcome.fits == (outcome.tokens_after <= goal)
    assert outcome.fits or outcome.reason
    assert outcome.tokens_after == last_resort.ESTIMATE.conversation(sent)
    assert outcome.tokens_before > goal or sent is conversation
    if sent is conversation:
        assert outcome.tokens_after == outcome.tokens_before
        assert not outcome.steps
        return
    assert not message_rules.repair(sent)[1]
    kept = [m.text for m in sent.messages]
    newest = conversation.newest_request
    asked = conversation.messages[newest].text if newest is not None else None
    told = [f"{line('end', 'en')}\n\n{asked}", f"{asked}\n\n{MARK}"]
    assert asked is None or asked in kept or any(words in text for text in kept for words in told)
    assert all(m in sent.messages for m in conversation.messages if m.role == "system")
    assert last_resort.compress(conversation, budget_of(goal)) == outcome


def skimmed_outcome(fmt, items, goal):
    wire = WIRE_FORMATS[fmt]
    skimmed = last_resort.skim(items, wire, goal)
    return last_resort.compress(wire.read([items[i] for i in skimmed.kept]), budget_of(goal), skimmed=skimmed)


@every_format
@many
@given(data=st.data(), goal=st.integers(20, 1_000))
def test_skimming_changes_no_valid_conversation(fmt, data, goal):
    items = data.draw(payloads(fmt))
    whole, skimmed = last_resort.compress(WIRE_FORMATS[fmt].read(items), budget_of(goal)), skimmed_outcome(fmt, items, goal)
    assert skimmed == whole
    assert [m.raw for m in skimmed.conversation.messages] == [m.raw for m in whole.conversation.messages]


@every_format
@many
@given(data=st.data(), goal=st.integers(20, 1_000))
def test_skimming_keeps_broken_conversations_legal(fmt, data, goal):
    items = data.draw(broken_payloads(fmt))
    sent = skimmed_outcome(fmt, items, goal).conversation
    whole = WIRE_FORMATS[fmt].read(items)
    assert not message_rules.repair(sent)[1] or sent.messages == whole.messages
    assert all(m in sent.messages for m in whole.messages if m.role == "system")
    asked = whole.messages[whole.newest_request].text if whole.newest_request is not None else ""
    assert any(asked in m.text for m in sent.messages)


@every_format
@many
@given(data=st.data(), most_tokens=st.integers(1, 600))
def test_skimming_divides_no_exchange(fmt, data, most_tokens):
    items = data.draw(payloads(fmt))
    kept = set(last_resort.skim(items, WIRE_FORMATS[fmt], most_tokens).kept)
    for exchange in WIRE_FORMATS[fmt].read(items).exchanges:
        assert kept.isdisjoint(exchange) or kept.issuperset(exchange)


@every_format
def test_the_newest_exchanges_stay_with_the_newest_question_and_the_budget_is_met(fmt):
    payload = agent_session(fmt, turns=60)
    conversation = WIRE_FORMATS[fmt].read(items_of(payload), tools=payload["tools"])
    for goal in (3_000, 8_000, 20_000):
        outcome = last_resort.compress(conversation, budget_of(goal))
        assert outcome.fits
        assert goal - 3_000 < outcome.tokens_after
        skimmed = skimmed_outcome(fmt, items_of(payload), goal - sum(map(last_resort.ESTIMATE.text, conversation.preamble)))
        assert [m.raw for m in skimmed.conversation.messages] == [m.raw for m in outcome.conversation.messages]
        assert [m.text for m in skimmed.conversation.messages] == [m.text for m in outcome.conversation.messages]
        assert skimmed.steps[0].messages_touched == outcome.steps[0].messages_touched
        assert Counter("cl100k_base").conversation(outcome.conversation) <= outcome.tokens_after
        kept = outcome.conversation.messages
        place = next(i for i, m in enumerate(kept) if MARK in m.text)
        assert all(m.role == "system" for m in kept[:place])
        gone = len(conversation.messages) - len(kept)
        told = f"{MARK} {gone} messages were removed here to fit the context window."
        assert kept[place].text == f"Review project 0 and note every risk.\n\n{told}"
        assert kept[place + 1 :] == conversation.messages[-len(kept[place + 1 :]) :]


@every_format
def test_results_of_the_newest_loop_are_cut_where_they_alone_are_too_large(fmt):
    items = items_of(agent_session(fmt, turns=3, result_chars=90_000))[:-1]
    conversation = WIRE_FORMATS[fmt].read(items)
    outcome = last_resort.compress(conversation, budget_of(5_000))
    assert outcome.fits
    assert not message_rules.repair(outcome.conversation)[1]
    assert any(is_request(m) for m in outcome.conversation.messages)
    spared = last_resort.compress(conversation, budget_of(5_000, cut_newest=False))
    assert not spared.fits
    assert spared.conversation.messages[-1] is conversation.messages[-1]


PREFILLS = {
    "openai-chat": {"role": "assistant", "content": "{"},
    "anthropic": {"role": "assistant", "content": "{"},
    "openai-responses": {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "{"}]},
    "gemini": {"role": "model", "parts": [{"text": "{"}]},
}


@every_format
@pytest.mark.parametrize("compress", [last_resort.compress, pipeline.compress])
def test_a_prefill_stays_with_the_results_that_it_follows(fmt, compress):
    items = [*items_of(agent_session(fmt, turns=30, result_chars=2_000))[:-1], PREFILLS[fmt]]
    conversation = WIRE_FORMATS[fmt].read(items)
    outcome = compress(conversation, Budget(300, 300, Counter("cl100k_base"), cut_newest=False))
    assert outcome.steps
    assert outcome.conversation.messages[-2:] == conversation.messages[-2:]
    assert outcome.conversation.messages[-2].results


def test_what_stands_for_a_removed_message_is_not_taken_for_the_users_request():
    """A stray result between two answers becomes a user message of one mark, and the question before it stays."""
    question = {"role": "user", "content": "What is in the log? " * 3}
    items = [
        {"role": "system", "content": "You are careful."},
        question,
        {"role": "assistant", "content": "I will look. " * 200},
        {"role": "tool", "tool_call_id": "nobody", "content": "stray"},
        {"role": "assistant", "content": "I have looked. " * 200},
    ]
    sent = last_resort.compress(WIRE_FORMATS["openai-chat"].read(items), budget_of(300)).conversation
    assert any(m.text.startswith(question["content"]) for m in sent.messages)
    assert sent.messages[sent.newest_request].text.startswith(question["content"])
