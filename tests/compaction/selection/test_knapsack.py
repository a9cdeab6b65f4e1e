"""A selection pays for what it takes: never more than its room, and nothing is paid for that adds nothing."""

from __future__ import annotations

import pytest

from ctx_hooks.compaction.selection.bm25 import rarity
from ctx_hooks.compaction.selection.knapsack import SEEN_VALUE, USED_VALUE, valued_items_of
from ctx_hooks.compaction.selection.scoring import items_of
from ctx_hooks.compaction.selection.select import Selector
from ctx_hooks.compaction.steps import live_results, oldest_turns
from ctx_hooks.formats import CODECS
from ctx_hooks.testing import agent_session
from ctx_hooks.tokens.budget import Budget
from ctx_hooks.tokens.counter import Counter

FORMATS = ("openai-chat", "anthropic", "openai-responses")
every_format = pytest.mark.parametrize("fmt", FORMATS)
COUNTER = Counter("cl100k_base")


def session(fmt, turns=30):
    payload = agent_session(fmt, turns=turns, result_chars=2_000)
    return CODECS[fmt].read(payload.get("messages") or payload["input"])


def budget_of(goal_tokens):
    return Budget(goal_tokens, 2 * goal_tokens, COUNTER)


def tokens_of(conversation, selector, selection):
    """Return what a selection keeps of whole exchanges and of lines of others, counted exactly, without frames."""
    whole = [conversation.messages[i] for e in selection.whole for i in e]
    lines = sum(
        COUNTER.text(source.text[slice(*source.segments.spans[n])])
        for item in selector.items
        for source in item.sources
        for n in selection.lines.get(source.position, ())
        if item.messages in selection.shortened
    )
    return COUNTER.messages(whole, conversation.format) + lines


@every_format
@pytest.mark.parametrize("room_tokens", [0, 50, 500, 2_000, 8_000])
def test_what_is_taken_has_room(fmt, room_tokens):
    conversation = session(fmt)
    selector = Selector(conversation, budget_of(8_000))
    selection = selector.select(room_tokens, may_remove=True)
    assert tokens_of(conversation, selector, selection) <= room_tokens
    assert selection.whole.isdisjoint(selection.shortened)


@every_format
def test_room_for_everything_keeps_everything(fmt):
    conversation = session(fmt)
    selector = Selector(conversation, budget_of(8_000))
    everything = sum(item.whole_tokens for item in selector.items)
    assert selector.select(everything, may_remove=True).whole == {item.messages for item in selector.items}


@every_format
def test_where_nothing_may_go_each_exchange_keeps_its_frame(fmt):
    conversation = session(fmt)
    selector = Selector(conversation, budget_of(8_000))
    selection = selector.select(0, may_remove=False)
    assert selection.whole | selection.shortened == {item.messages for item in selector.items}


@every_format
def test_a_selection_is_the_same_however_often_it_is_asked_for(fmt):
    selector = Selector(session(fmt), budget_of(8_000))
    first = selector.select(2_000, may_remove=True)
    selector.select(500, may_remove=True)
    assert selector.select(2_000, may_remove=True) == first


def test_an_identifier_that_the_assistant_has_used_has_more_value():
    items = items_of(session("openai-chat"), budget_of(8_000))
    name = next(source.segments.identifiers[0] for item in items for source in item.sources)
    assert valued_items_of(items, set()).values[name] == SEEN_VALUE
    assert valued_items_of(items, {name}).values[name] == USED_VALUE


@every_format
@pytest.mark.parametrize(
    ("step", "goal_tokens"), [(live_results, 9_000), (live_results, 14_000), (oldest_turns, 5_000), (oldest_turns, 14_000)]
)
def test_a_fit_is_within_the_goal_and_not_far_below_it(fmt, step, goal_tokens):
    conversation = session(fmt)
    fitted = step.STEP.apply(conversation, budget_of(goal_tokens))
    assert 0.8 * goal_tokens <= COUNTER.conversation(fitted) <= goal_tokens


def test_the_rarer_a_word_is_the_more_weight_it_has():
    weights = [rarity(holding, 1_000) for holding in (0, 1, 10, 500, 1_000)]
    assert weights == sorted(weights, reverse=True)
    assert min(weights) > 0
