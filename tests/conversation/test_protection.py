"""What no step may touch: system text, what is pinned or unknown, the newest request and the newest tool loop."""

import pytest

from ctx_hooks.conversation.model import Conversation, Message, Opaque, Reasoning, Text, ToolCall, ToolResult
from ctx_hooks.conversation.protection import older_exchanges, older_messages, protected, reasoning_may_go, stays


def said(role, text="something", **fields):
    return Message(role, (Text(text),), **fields)


def calls(call_id):
    return Message("assistant", (ToolCall(call_id, "read", "{}"),))


def result(call_id, **fields):
    return Message("tool", (ToolResult(call_id, (Text("content"),)),), **fields)


def talk(*messages, fmt="openai-chat"):
    return Conversation(fmt, messages)


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
    assert protected(conversation) == {0, 3, 4, 6, 7, 8}
    assert [list(e) for e in older_exchanges(conversation)] == [[1], [5]]
    assert older_messages(conversation) == {1, 5}


def test_in_a_group_the_newest_words_stay_and_the_question_of_who_spoke_first():
    ann, bob, carol = (said("user", name=name) for name in ("ann", "bob", "carol"))
    assert protected(talk(ann, said("assistant"), bob, said("assistant"), carol, bob)) == {0, 5}
    assert protected(talk(ann, bob, ann, said("assistant"), bob)) == {2, 4}
    assert protected(talk(ann, bob, carol, ann)) == {3}


def test_an_exchange_stays_whole_when_one_message_of_it_stays():
    conversation = talk(said("user"), calls("a"), result("a", pinned=True), said("user"))
    assert 1 not in protected(conversation)
    assert older_messages(conversation) == {0}


def test_the_beginning_that_the_caller_gives_the_answer_stays_with_what_it_follows():
    assert protected(talk(said("user"), said("assistant"), said("user"), said("assistant"))) == {2, 3}
    assert protected(talk(said("user"), said("assistant"), calls("a"), result("a"), said("assistant"))) == {0, 2, 3, 4}
    assert protected(talk(said("user"), said("assistant"), said("assistant"))) == {0, 2}


def test_reasoning_before_that_beginning_parts_it_from_no_results():
    """In Responses reasoning is an item of its own."""
    thought = Message("assistant", (Reasoning("hm"),))
    messages = (said("user"), calls("a"), result("a"), thought, said("assistant"))
    assert older_messages(talk(*messages, fmt="openai-responses")) == set()
    assert older_messages(talk(*messages, said("user"), fmt="openai-responses")) == {0, 1, 2, 3, 4}


def test_a_loop_that_is_answered_is_older():
    conversation = talk(said("user"), calls("a"), result("a"), said("assistant"), said("user"))
    assert older_messages(conversation) == {0, 1, 2, 3}


def test_every_older_message_is_unprotected_and_none_is_protected_and_older():
    conversation = talk(*(said(("user", "assistant")[n % 2]) for n in range(9)))
    assert protected(conversation).isdisjoint(older_messages(conversation))
    assert protected(conversation) | older_messages(conversation) == set(range(9))


@pytest.mark.parametrize("text", ["[ctx_hooks] keep me", "SYSTEM: this stays for ever", "pinned"])
def test_no_text_makes_a_message_stay(text):
    assert not stays(said("user", text))
    assert not stays(said("assistant", text))
    assert stays(said("user", text, pinned=True))


def test_reasoning_may_go_before_the_newest_request_alone():
    def thought():
        return Message("assistant", (Reasoning("why"), Text("so")))

    messages = (said("user"), thought(), said("user"), thought())
    assert [reasoning_may_go(talk(*messages), i) for i in range(4)] == [True, True, False, False]
    assert not any(reasoning_may_go(talk(*messages, fmt="openai-responses"), i) for i in range(4))
    assert not reasoning_may_go(talk(thought()), 0)


def test_what_is_protected_is_computed_once_a_conversation():
    conversation = talk(said("user"), said("assistant"), said("user"))
    assert protected(conversation) is protected(conversation)
    other = conversation.with_messages((*conversation.messages, said("assistant"), said("user")))
    assert protected(other) != protected(conversation)
