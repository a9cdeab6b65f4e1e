"""What stands or falls together, who asks, and which tool loop waits for its next step."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import payloads

from ctx_hooks.conversation import placeholders
from ctx_hooks.conversation.exchanges import (
    exchanges_of,
    is_request,
    newest_loop_of,
    newest_request_of,
    request_of_first_speaker,
)
from ctx_hooks.conversation.model import Message, Reasoning, Text, ToolCall, ToolResult
from ctx_hooks.formats import CODECS

FORMATS = ("openai-chat", "anthropic", "openai-responses")
every_format = pytest.mark.parametrize("fmt", FORMATS)


def said(role, text="something", name=None):
    return Message(role, (Text(text),), name=name)


def calls(*ids):
    return Message("assistant", tuple(ToolCall(i, "read", "{}") for i in ids))


def result(call_id):
    return Message("tool", (ToolResult(call_id, (Text("content"),)),))


def exchanges(*messages, joins_assistant_items=False):
    return [list(e) for e in exchanges_of(messages, joins_assistant_items=joins_assistant_items)]


@every_format
@settings(max_examples=10)
@given(data=st.data())
def test_exchanges_stand_side_by_side_and_cover_the_conversation(fmt, data):
    conversation = CODECS[fmt].read(data.draw(payloads(fmt)))
    assert [i for e in conversation.exchanges for i in e] == list(range(len(conversation.messages)))
    assert all(len(e) for e in conversation.exchanges)


def test_calls_and_their_results_are_one_exchange():
    messages = (said("user"), calls("a", "b"), result("b"), result("a"), said("assistant"), said("user"))
    assert exchanges(*messages) == [[0], [1, 2, 3], [4], [5]]


def test_an_answer_between_a_call_and_its_result_belongs_to_them():
    assert exchanges(calls("a"), said("assistant"), result("a")) == [[0, 1, 2]]


def test_items_of_one_answer_side_by_side_are_one_exchange_where_the_format_lists_them_so():
    items = (said("user"), Message("assistant", (Reasoning("why"),)), said("assistant"), calls("a"), result("a"))
    assert exchanges(*items, joins_assistant_items=True) == [[0], [1, 2, 3, 4]]
    assert exchanges(*items) == [[0], [1], [2], [3, 4]]


def test_a_call_without_a_result_holds_nothing_together_behind_the_next_user():
    assert exchanges(calls("a"), said("user"), said("assistant"), said("assistant")) == [[0], [1], [2], [3]]


def test_a_result_at_the_very_start_is_an_exchange_of_its_own():
    assert exchanges(result("lost"), said("user")) == [[0], [1]]
    assert exchanges() == []


def test_whoever_speaks_last_has_the_newest_request():
    agents = (said("user", name="human"), said("user", name="coder"), said("user", name="tester"))
    assert newest_request_of(agents) == 2
    assert newest_request_of((*agents, said("user"), said("assistant"))) == 3
    assert newest_request_of((*agents, said("user", name="human"))) == 3


def test_the_request_of_who_spoke_first_is_known_among_those_of_others():
    agents = (said("user", name="human"), said("user", name="coder"), said("user", name="tester"))
    assert request_of_first_speaker(agents) == 0
    assert request_of_first_speaker((*agents, said("user"), said("assistant"))) == 3
    assert request_of_first_speaker((*agents, said("user", name="human"), said("user", name="coder"))) == 3
    assert request_of_first_speaker((said("system"), said("assistant"))) is None


def test_a_result_that_a_repair_puts_before_a_request_leaves_it_one():
    added = ToolResult("a", (Text("none"),), is_missing=True)
    assert is_request(Message("user", (added, Text("Stop."))))
    assert not is_request(Message("user", (added,)))
    assert not is_request(Message("user", (added, ToolResult("b", (Text("content"),)), Text("Stop."))))


def test_results_and_stand_ins_for_removed_messages_are_no_request():
    carried = Message("user", (ToolResult("a", (Text("content"),)), Text("and a remark")))
    stand_in = said("user", placeholders.REMOVED_MESSAGE)
    assert not is_request(carried)
    assert not is_request(stand_in)
    assert newest_request_of((said("user"), calls("a"), carried, stand_in)) == 0
    assert newest_request_of((said("system"), said("assistant"))) is None
    assert newest_request_of(()) is None


@pytest.mark.parametrize(("messages", "loop"), [
    ((), []), ((said("user"),), []), ((said("user"), calls("a")), [1]), ((said("user"), calls("a"), result("a")), [1, 2]),
    ((said("user"), calls("a"), result("a"), said("assistant")), [1, 2]),
    ((said("user"), calls("a"), result("a"), said("assistant"), said("user")), []),
    ((said("user"), calls("a"), result("a"), said("assistant"), said("assistant")), []), ((said("assistant"),), []),
])  # fmt: skip
def test_a_loop_is_newest_while_it_waits_for_the_next_step_or_for_the_rest_of_it(messages, loop):
    assert list(newest_loop_of(messages, exchanges_of(messages, joins_assistant_items=False))) == loop
