"""A selection pays for what it takes: never more than its room, and nothing is paid for that adds nothing."""

from functools import partial
from itertools import accumulate

import pytest
from strategies import every_format
from strategies import items_of as messages_of

from ctx_hooks.compaction.selection.apply import Shortener
from ctx_hooks.compaction.selection.bm25 import rarity
from ctx_hooks.compaction.selection.scoring import Item, Source, rows_of
from ctx_hooks.compaction.selection.segments import segments_at
from ctx_hooks.compaction.selection.select import Selector
from ctx_hooks.compaction.steps import oldest_turns
from ctx_hooks.formats import WIRE_FORMATS
from ctx_hooks.testing import agent_session
from ctx_hooks.tokens.budget import Budget
from ctx_hooks.tokens.counter import Counter

COUNTER = Counter("cl100k_base")


def session(fmt, turns=30):
    return WIRE_FORMATS[fmt].read(messages_of(agent_session(fmt, turns=turns, result_chars=2_000)))


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
    selection = selector.within(room_tokens)
    assert tokens_of(conversation, selector, selection) <= room_tokens
    assert selection.whole.isdisjoint(selection.shortened)


@every_format
def test_room_for_everything_keeps_everything(fmt):
    conversation = session(fmt)
    selector = Selector(conversation, budget_of(8_000))
    everything = sum(item.whole_tokens for item in selector.items)
    assert selector.within(everything).whole == {item.messages for item in selector.items}


def items_with(*exchanges):
    """Return items whose frame has ten tokens and no identifier, each with one text of the given lines."""
    items = []
    for n, lines in enumerate(exchanges):
        text = "".join(f"{line}\n" for line in lines)
        ends = [*accumulate(len(line) + 1 for line in lines)]
        source = Source((n, 0), text, 0.25, partial(segments_at, ends))
        items.append(Item(range(n, n + 1), 10.0, 10.0 + len(text) / 4, (source,), spoken=False))
    return tuple(items)


def in_order(items, used=()):
    """Return the rows of the items in order: the number of the item, and the line's own number."""
    return [(row.item, row.segment) for row in rows_of(enumerate(items), used)]


def test_names_that_few_lines_have_are_worth_more():
    items = items_with(["a_10 b_20 c_30", "a_10 and so on"], ["b_20 c_30 and so on", "d_40"])
    assert in_order(items) == [(1, 1), (0, 0), (1, 0), (0, 1)]


def test_used_names_are_worth_more():
    items = items_with(["a_10"], ["d_40 and so on, for some words more than there"], ["d_40 and so on, for some words"])
    assert in_order(items)[0] == (0, 0)
    assert in_order(items, used=["d_40"])[0] == (2, 0)


@every_format
def test_exchanges_that_keep_a_frame_are_the_newest_but_for_answers(fmt):
    conversation = session(fmt, turns=120)
    selector = Selector(conversation, budget_of(8_000))
    for room_tokens in (4_000, 6_000, 8_000):
        selection = selector.within(room_tokens)
        items = [item for item in selector.items if not item.is_answer]
        stays = [item.messages in selection.whole | selection.shortened for item in items]
        assert stays == sorted(stays)
        assert 0 < sum(stays) < len(stays)


@every_format
@pytest.mark.parametrize("goal_tokens", [5_000, 9_000, 14_000])
def test_a_fit_is_within_the_goal_and_not_far_below_it(fmt, goal_tokens):
    conversation = session(fmt)
    fitted = oldest_turns.STEP.apply(conversation, budget_of(goal_tokens))
    assert 0.8 * goal_tokens <= COUNTER.conversation(fitted) <= goal_tokens


def test_the_rarer_a_word_is_the_more_weight_it_has():
    weights = [rarity(holding, 1_000) for holding in (0, 1, 10, 500, 1_000)]
    assert weights == sorted(weights, reverse=True)
    assert min(weights) > 0


@every_format
def test_what_was_tried_before_changes_nothing(fmt):
    """What a selection leaves of a message follows from that selection alone."""
    conversation, budget = session(fmt), budget_of(8_000)
    selector = Selector(conversation, budget)
    shortener = Shortener(conversation, selector.items, budget)
    tried = [selector.within(room_tokens) for room_tokens in (3_000, 6_000, 4_000, 3_000)]
    forms = [shortener.messages(selection.shortened, selection.lines) for selection in tried]
    alone = [Shortener(conversation, selector.items, budget).messages(s.shortened, s.lines) for s in tried]
    assert forms == alone
    assert forms[0] != forms[1]
    again = forms[3]
    assert all(again[i] is form for i, form in forms[0].items())
