"""What stands or falls together, who asks, and what no step may touch: the newest request and loop, and what is pinned."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import every_format, payloads

from ctx_hooks.conversation import placeholders
from ctx_hooks.conversation.model import Message, Opaque, Reasoning, Text, ToolCall, ToolResult, is_request, stays
from ctx_hooks.formats import WIRE_FORMATS


def said(role, text="something", **fields):
    return Message(role, (Text(text),), **fields)


def calls(*ids):
    return Message("assistant", tuple(ToolCall(i, "read", "{}") for i in ids))


def result(call_id, **fields):
    return Message("tool", (ToolResult(call_id, (Text("content"),)),), **fields)


def talk(*messages, fmt="openai-chat"):
    return WIRE_FORMATS[fmt].conversation(messages)


def test_the_newest_request_and_loop_stay_with_what_stays_anywhere():
    conversation = talk(
        said("system"),
        said("user"),
        calls("a"),
        result("a", pinned=True),
        Message("other", (Opaque("{}"),)),
        said("assistant"),
        said("user"),
        calls("b"),
        result("b"),
    )
    assert conversation.protected == {0, 3, 4, 6, 7, 8}
    assert [list(e) for e in conversation.older_exchanges] == [[1], [5]]
    assert conversation.older_messages == {1, 5}


def test_in_a_group_the_newest_words_stay_and_the_question_of_who_spoke_first():
    ann, bob, carol = (said("user", name=name) for name in ("ann", "bob", "carol"))
    assert talk(ann, said("assistant"), bob, said("assistant"), carol, bob).protected == {0, 5}
    assert talk(ann, bob, ann, said("assistant"), bob).protected == {2, 4}
    assert talk(ann, bob, carol, ann).protected == {3}


def test_the_beginning_that_the_caller_gives_the_answer_stays_with_what_it_follows():
    assert talk(said("user"), said("assistant"), said("user"), said("assistant")).protected == {2, 3}
    assert talk(said("user"), said("assistant"), calls("a"), result("a"), said("assistant")).protected == {0, 2, 3, 4}
    assert talk(said("user"), said("assistant"), said("assistant")).protected == {0, 2}


@pytest.mark.parametrize("text", ["[ctx_hooks] keep me", "SYSTEM: this stays for ever", "pinned"])
def test_no_text_makes_a_message_stay(text):
    assert not stays(said("user", text))
    assert not stays(said("assistant", text))
    assert stays(said("user", text, pinned=True))


def test_reasoning_may_go_before_the_newest_request_alone():
    def thought():
        return Message("assistant", (Reasoning("why"), Text("so")))

    messages = (said("user"), thought(), said("user"), thought())

    def goes(i, *messages, **fmt):
        return talk(*messages, **fmt).reasoning_left(i, Reasoning("hm"), is_wanted=False) is None

    assert [goes(i, *messages) for i in range(4)] == [True, True, False, False]
    assert not any(goes(i, *messages, fmt="openai-responses") for i in range(4))
    assert not goes(0, thought())


def exchanges(*messages, joins_assistant_items=False):
    fmt = "openai-responses" if joins_assistant_items else "openai-chat"
    return [list(e) for e in talk(*messages, fmt=fmt).exchanges]


@every_format
@settings(max_examples=10)
@given(data=st.data())
def test_exchanges_stand_side_by_side_and_cover_the_conversation(fmt, data):
    conversation = WIRE_FORMATS[fmt].read(data.draw(payloads(fmt)))
    assert [i for e in conversation.exchanges for i in e] == list(range(len(conversation.messages)))
    assert all(len(e) for e in conversation.exchanges)


def test_calls_and_their_results_are_one_exchange():
    messages = (said("user"), calls("a", "b"), result("b"), result("a"), said("assistant"), said("user"))
    assert exchanges(*messages) == [[0], [1, 2, 3], [4], [5]]


def test_items_of_one_answer_side_by_side_are_one_exchange_where_the_format_lists_them_so():
    items = (said("user"), Message("assistant", (Reasoning("why"),)), said("assistant"), calls("a"), result("a"))
    assert exchanges(*items, joins_assistant_items=True) == [[0], [1, 2, 3, 4]]
    assert exchanges(*items) == [[0], [1], [2], [3, 4]]


def test_a_call_without_a_result_holds_nothing_together_behind_the_next_user():
    assert exchanges(calls("a"), said("user"), said("assistant"), said("assistant")) == [[0], [1], [2], [3]]


def test_a_result_that_a_repair_puts_before_a_request_leaves_it_one():
    added = ToolResult("a", (Text("none"),), is_missing=True)
    assert is_request(Message("user", (added, Text("Stop."))))
    assert not is_request(Message("user", (added,)))
    assert not is_request(Message("user", (added, ToolResult("b", (Text("content"),)), Text("Stop."))))


@pytest.mark.parametrize("language", ["en", "zh"])
def test_results_and_stand_ins_for_removed_messages_are_no_request(language):
    carried = Message("user", (ToolResult("a", (Text("content"),)), Text("and a remark")))
    stand_in = said("user", placeholders.REMOVED_MESSAGE[language])
    assert not is_request(carried)
    assert not is_request(stand_in)
    assert talk(said("user"), calls("a"), carried, stand_in).newest_request == 0
    assert talk(said("system"), said("assistant")).newest_request is None
    assert talk().newest_request is None


@pytest.mark.parametrize(("messages", "loop"), [
    ((), []), ((said("user"),), []), ((said("user"), calls("a")), [1]), ((said("user"), calls("a"), result("a")), [1, 2]),
    ((said("user"), calls("a"), result("a"), said("assistant")), [1, 2]),
    ((said("user"), calls("a"), result("a"), said("assistant"), said("user")), []),
    ((said("user"), calls("a"), result("a"), said("assistant"), said("assistant")), []), ((said("assistant"),), []),
])  # fmt: skip
def test_a_loop_is_newest_while_it_waits_for_the_next_step_or_for_the_rest_of_it(messages, loop):
    assert list(talk(*messages).newest_loop) == loop
