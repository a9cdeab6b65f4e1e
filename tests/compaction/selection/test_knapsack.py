"""A selection pays for what it takes: never more than its room, and nothing is paid for that adds nothing."""

from itertools import accumulate, pairwise

import pytest
from strategies import every_format
from strategies import items_of as messages_of

from ctx_hooks.compaction.selection.apply import Shortener
from ctx_hooks.compaction.selection.bm25 import rarity
from ctx_hooks.compaction.selection.knapsack import MOST_VALUATIONS, Knapsack
from ctx_hooks.compaction.selection.scoring import Item, Source, items_of
from ctx_hooks.compaction.selection.segments import with_cover
from ctx_hooks.compaction.selection.select import Selector
from ctx_hooks.compaction.steps import oldest_turns
from ctx_hooks.formats import WIRE_FORMATS
from ctx_hooks.testing import agent_session
from ctx_hooks.texts.identifiers import identifiers
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
    selection = selector.within(room_tokens, room_tokens)
    assert tokens_of(conversation, selector, selection) <= room_tokens
    assert selection.whole.isdisjoint(selection.shortened)


@every_format
def test_room_for_everything_keeps_everything(fmt):
    conversation = session(fmt)
    selector = Selector(conversation, budget_of(8_000))
    everything = sum(item.whole_tokens for item in selector.items)
    assert selector.within(everything, everything).whole == {item.messages for item in selector.items}


def items_with(*exchanges):
    """Return items whose frame has ten tokens and no identifier, each with one text of the given lines."""
    items = []
    for n, lines in enumerate(exchanges):
        text = "".join(f"{line}\n" for line in lines)
        ends = list(accumulate(len(line) + 1 for line in lines))
        found = with_cover(list(pairwise((0, *ends))), [set(identifiers(line)) for line in lines])
        source = Source((n, 0), text, found, 0.25, {})
        items.append(Item(range(n, n + 1), 10.0, 10.0 + len(text) / 4, (), (source,), spoken=False))
    return tuple(items)


def in_order(items, room_tokens=1e9, used=()):
    """Return what a room holds of the items in order: the number of the item, and the line's own number."""
    numbered = dict(enumerate(items))
    rows, left_tokens = Knapsack(numbered, {*used}, set(), set()).within(room_tokens, numbered)
    assert sum(row.tokens for row in rows) <= room_tokens - left_tokens + 1e-6
    return [(row.item, row.segment) for row in rows]


def test_an_identifier_counts_for_one_line_alone():
    items = items_with(["a_10 b_20 c_30", "a_10 and so on"], ["b_20 c_30 and so on", "d_40"])
    assert in_order(items) == [(0, 0), (1, 1)]


def test_an_identifier_that_the_assistant_has_used_has_more_value():
    items = items_with(["a_10 b_20 c_30"], ["d_40 and so on, for some words more than there"])
    assert in_order(items) == [(0, 0), (1, 0)]
    assert in_order(items, used={"d_40"}) == [(1, 0), (0, 0)]


@every_format
def test_exchanges_that_keep_a_frame_are_the_newest_but_for_answers(fmt):
    conversation = session(fmt, turns=60)
    selector = Selector(conversation, budget_of(8_000))
    for room_tokens in (4_000, 6_000, 8_000):
        selection = selector.within(room_tokens, 6_000)
        items = [item for item in selector.items if not item.is_answer]
        stays = [item.messages in selection.whole | selection.shortened for item in items]
        assert stays == sorted(stays)
        assert 0 < sum(stays) < len(stays)


@pytest.mark.parametrize("room_tokens", [0, 30, 100, 400, 10_000])
def test_a_room_holds_rows_in_order_of_opened_exchanges_whatever_room_was_asked_for_before(room_tokens):
    items = items_of(session("openai-chat"), budget_of(8_000), {})
    knapsack = Knapsack(dict(enumerate(items)), set(), set(), set())
    knapsack.within(2_000, range(len(items)))
    rows = [(row.item, row.segment) for row in knapsack.within(room_tokens, range(len(items)))[0]]
    assert rows == in_order(items, room_tokens)
    assert [row for row in in_order(items) if row in set(rows)] == rows
    assert {row.item for row in knapsack.within(room_tokens, {3, 4})[0]} <= {3, 4}


def test_what_the_room_does_not_hold_is_passed_over():
    items = items_with(["a_10 b_20 c_30 d_40 e_50 " + "x_60 " * 10], ["f_70"])
    used = {"a_10", "b_20", "c_30"}
    assert in_order(items, used=used)[0] == (0, 0)
    assert {n for n, _ in in_order(items, 14.0, used)} == {1}


class Counted(Knapsack):
    times = 0

    def _density(self, row):
        self.times += 1
        return super()._density(row)


def test_rows_that_share_something_each_with_each_are_valued_a_bounded_number_of_times():
    def names(n):
        return " ".join(f"a_{min(n, other)}_{max(n, other)}" for other in range(150) if other != n)

    items = items_with(*([names(n)] for n in range(150)))
    knapsack = Counted(dict(enumerate(items)), set(), set(), set())
    rows, _ = knapsack.within(1e9, range(150))
    assert len(rows) >= 149
    assert knapsack.times <= (MOST_VALUATIONS + 2) * 150


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
    tried = [selector.within(room_tokens, 8_000) for room_tokens in (3_000, 6_000, 4_000, 3_000)]
    forms = [shortener.messages(selection, {}) for selection in tried]
    alone = [Shortener(conversation, selector.items, budget).messages(selection, {}) for selection in tried]
    assert forms == alone
    assert forms[0] != forms[1]
    again = forms[3]
    assert all(again[i] is form for i, form in forms[0].items())
