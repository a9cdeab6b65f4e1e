"""What a selection leaves of a message follows from that selection alone."""

import pytest
from strategies import items_of

from ctx_hooks.compaction.selection.apply import Shortener
from ctx_hooks.compaction.selection.select import Selector
from ctx_hooks.formats import CODECS
from ctx_hooks.testing import agent_session
from ctx_hooks.tokens.budget import Budget
from ctx_hooks.tokens.counter import Counter

GOAL_TOKENS = 8_000


@pytest.mark.parametrize("fmt", ["openai-chat", "anthropic", "openai-responses", "gemini"])
def test_what_was_tried_before_changes_nothing(fmt):
    conversation = CODECS[fmt].read(items_of(agent_session(fmt, turns=30, result_chars=2_000)))
    budget = Budget(GOAL_TOKENS, 2 * GOAL_TOKENS, Counter("cl100k_base"))
    selector = Selector(conversation, budget)
    shortener = Shortener(conversation, selector.items, budget)
    order = selector.order(GOAL_TOKENS, may_remove=False)
    tried = [order.within(room_tokens) for room_tokens in (3_000, 6_000, 4_000, 3_000)]
    forms = [shortener.messages(selection) for selection in tried]
    alone = [Shortener(conversation, selector.items, budget).messages(selection) for selection in tried]
    assert forms == alone
    assert forms[0] != forms[1]
    again = forms[3]
    assert all(again[i] is form for i, form in forms[0].items())
