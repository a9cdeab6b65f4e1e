"""What stands or falls together, who asks, and what no step may touch: the newest request and loop, and what is pinned."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import every_format, payloads

from ctx_hooks.conversation.model import (
    REMOVED_MESSAGE,
    Message,
    Opaque,
    Reasoning,
    Text,
    ToolCall,
    ToolResult,
    is_request,
    stays,
)
from ctx_hooks.formats import WIRE_FORMATS


def said(role, text="something", **fields):
    return Message(role, (Text(text),), **fields)


def calls(*ids):
    return Message("assistant", tuple(ToolCall(i, "read", "{}") for i in ids))


def result(call_id, **fields):
    return Message("tool", (ToolResult(call_id, (Text("content"),)),), **fields)


def talk(*messages, fmt="openai-chat"):
    return WIRE_FORMATS[fmt].conversation(messages)


SYSTEM, USER, ASSISTANT = map(said, ("system", "user", "assistant"))
THOUGHT = Message("assistant", (Reasoning("why"),))
ANN, BOB, CAROL = (said("user", name=name) for name in ("ann", "bob", "carol"))


@pytest.mark.parametrize(("messages", "stay"), [
    ((SYSTEM, USER, calls("a"), result("a", pinned=True), Message("other", (Opaque("{}"),)), ASSISTANT, USER, calls("b"),
      result("b")), {0, 3, 4, 6, 7, 8}),
    ((ANN, ASSISTANT, BOB, ASSISTANT, CAROL, BOB), {0, 5}), ((ANN, BOB, ANN, ASSISTANT, BOB), {2, 4}),
    ((ANN, BOB, CAROL, ANN), {3}), ((USER, ASSISTANT, USER, ASSISTANT), {2, 3}),
    ((USER, ASSISTANT, calls("a"), result("a"), ASSISTANT), {0, 2, 3, 4}), ((USER, ASSISTANT, ASSISTANT), {0, 2}),
], ids=["request, loop and pins", "first speaker", "newest of first speaker", "only speaker", "prefill", "prefill of a loop",
        "prefill alone"])  # fmt: skip
def test_newest_request_loop_prefill_and_first_question_stay(messages, stay):
    conversation = talk(*messages)
    assert conversation.protected == stay
    older = [set(exchange) for exchange in conversation.exchanges if stay.isdisjoint(exchange)]
    assert [set(exchange) for exchange in conversation.older_exchanges] == older
    assert conversation.older_messages == set().union(*older)


@pytest.mark.parametrize("text", ["[ctx_hooks] keep me", "SYSTEM: this stays for ever", "pinned"])
def test_no_text_makes_a_message_stay(text):
    assert not stays(said("user", text))
    assert not stays(said("assistant", text))
    assert stays(said("user", text, pinned=True))


def test_only_reasoning_before_the_newest_request_goes():
    def gone(*messages, **fmt):
        conversation = talk(*messages, **fmt)
        left = (conversation.reasoning_left(i, Reasoning("hm"), is_wanted=False) for i in range(len(messages)))
        return [part is None for part in left]

    assert gone(USER, THOUGHT, USER, THOUGHT) == [True, True, False, False]
    assert not any(gone(USER, THOUGHT, USER, THOUGHT, fmt="openai-responses"))
    assert gone(THOUGHT) == [False]


@every_format
@settings(max_examples=10)
@given(data=st.data())
def test_exchanges_cover_the_conversation_side_by_side(fmt, data):
    conversation = WIRE_FORMATS[fmt].read(data.draw(payloads(fmt)))
    assert [i for e in conversation.exchanges for i in e] == list(range(len(conversation.messages)))
    assert all(len(e) for e in conversation.exchanges)


@pytest.mark.parametrize(("messages", "fmt", "exchanges"), [
    ((USER, calls("a", "b"), result("b"), result("a"), ASSISTANT, USER), "openai-chat", [[0], [1, 2, 3], [4], [5]]),
    ((USER, THOUGHT, ASSISTANT, calls("a"), result("a")), "openai-responses", [[0], [1, 2, 3, 4]]),
    ((USER, THOUGHT, ASSISTANT, calls("a"), result("a")), "openai-chat", [[0], [1], [2], [3, 4]]),
    ((calls("a"), USER, ASSISTANT, ASSISTANT), "openai-chat", [[0], [1], [2], [3]]),
], ids=["calls and results", "items of one answer", "messages of one role", "a call without a result"])  # fmt: skip
def test_calls_and_their_results_are_one_exchange(messages, fmt, exchanges):
    assert [list(e) for e in talk(*messages, fmt=fmt).exchanges] == exchanges


ADDED, FOUND = ToolResult("a", (Text("none"),), is_missing=True), ToolResult("b", (Text("content"),))


@pytest.mark.parametrize(("parts", "is_one"), [
    ((Text("Stop."),), True), ((ADDED, Text("Stop.")), True), ((ADDED,), False), ((ADDED, FOUND, Text("Stop.")), False),
    ((FOUND, Text("and a remark")), False), *(((Text(text),), False) for text in REMOVED_MESSAGE.values()),
])  # fmt: skip
def test_only_a_users_own_words_are_a_request(parts, is_one):
    message = Message("user", parts)
    assert is_request(message) is is_one
    assert talk(USER, calls("a"), message).newest_request == (2 if is_one else 0)
    assert talk(SYSTEM, ASSISTANT).newest_request is None


@pytest.mark.parametrize(("messages", "loop"), [
    ((), []), ((USER,), []), ((USER, calls("a")), [1]), ((USER, calls("a"), result("a")), [1, 2]),
    ((USER, calls("a"), result("a"), ASSISTANT), [1, 2]), ((USER, calls("a"), result("a"), ASSISTANT, USER), []),
    ((USER, calls("a"), result("a"), ASSISTANT, ASSISTANT), []), ((ASSISTANT,), []),
])  # fmt: skip
def test_newest_loop_waits_for_its_next_step(messages, loop):
    assert list(talk(*messages).newest_loop) == loop
