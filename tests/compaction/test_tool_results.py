"""Older results are rewritten where that is worth a recount, by nobody's leave but their message's, until the deadline."""

import pytest

from ctx_hooks.compaction.tool_results import call_names, rewrite_older_results, with_text, with_texts
from ctx_hooks.conversation.model import Conversation, Media, Message, Text, ToolCall, ToolResult
from ctx_hooks.runtime.deadline import CompressionTimeoutError, Deadline
from ctx_hooks.tokens.budget import Budget
from ctx_hooks.tokens.counter import Counter

LONG = "a line that says little\n" * 50


def budget_of(deadline=None):
    return Budget(1_000, 8_000, Counter("cl100k_base", deadline))


def talk(*results):
    messages = [Message("user", (Text("Look."),))]
    for n, result in enumerate(results):
        messages += [Message("assistant", (ToolCall(f"c{n}", "read", "{}"),)), Message("tool", (result,))]
    return Conversation("openai-chat", (*messages, Message("user", (Text("Go on."),))))


def result(text=LONG, **fields):
    return ToolResult("c0", (Text(text),), **fields)


def half(text):
    return text[: len(text) // 2]


def test_only_older_results_are_rewritten():
    conversation = talk(result())
    waiting = conversation.with_messages(conversation.messages[:-1])
    assert rewrite_older_results(conversation, budget_of(), half).messages[2].results[0].text == half(LONG)
    assert rewrite_older_results(waiting, budget_of(), half) is waiting


def test_a_rewrite_that_saves_little_is_not_made():
    conversation = talk(result())
    assert rewrite_older_results(conversation, budget_of(), lambda text: text[:-20]) is conversation


def test_what_a_step_has_cut_is_left():
    conversation = talk(result(is_cut=True))
    assert rewrite_older_results(conversation, budget_of(), half) is conversation


def test_rewriting_stops_at_the_deadline():
    deadline = Deadline()
    deadline.stop()
    with pytest.raises(CompressionTimeoutError):
        rewrite_older_results(talk(result()), budget_of(deadline), half)


def test_a_cut_result_keeps_its_media_and_knows_what_it_came_with():
    image = Media("image", 9)
    cut = with_text(ToolResult("a", (Text("first"), image, Text("second"))), "short")
    assert cut.parts == (Text("short"), image)
    assert cut.is_cut
    assert cut.original_text == "first\nsecond"


def test_a_rewritten_result_is_not_cut_and_an_unchanged_one_is_itself():
    rewritten = with_texts(result(), half)
    assert not rewritten.is_cut
    assert rewritten.original_text == LONG
    same = result()
    assert with_texts(same, lambda text: text) is same


def test_a_result_belongs_to_the_nearest_call_before_it_with_its_id():
    messages = (
        Message("assistant", (ToolCall("a", "read", "1"),)),
        Message("tool", (result("x"), ToolResult("a", ()))),
        Message("assistant", (ToolCall("a", "write", "2"),)),
        Message("tool", (ToolResult("a", ()),)),
    )
    assert call_names(messages) == {(1, 0): ("", ""), (1, 1): ("read", "1"), (3, 0): ("write", "2")}
