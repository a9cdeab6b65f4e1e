"""Older results are edited until the deadline, where that is worth a recount."""

import pytest

from ctx_hooks.compaction.steps import log_runs
from ctx_hooks.compaction.tool_results import call_names, with_text
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


PROSE = "".join(f"{chr(103 + n % 19)} went on\n" for n in range(200))
LOG = "".join(f"worker {n} took {n * 7} ms\n" for n in range(50))


def folded(conversation, deadline=None):
    return log_runs.STEP.apply(conversation, budget_of(deadline))


def test_only_older_results_are_edited():
    conversation = talk(result(LOG))
    waiting = conversation.with_messages(conversation.messages[:-1])
    edited = folded(conversation).messages[2].results[0]
    assert len(edited.text) < len(LOG) / 5
    assert (edited.is_cut, edited.original_text) == (False, LOG)
    assert folded(waiting) is waiting


@pytest.mark.parametrize("unchanged", [result(PROSE), result(LOG, is_cut=True), result(LOG[:140] + PROSE)])
def test_a_result_stays_that_has_no_run_or_a_small_one_or_was_cut(unchanged):
    conversation = talk(unchanged)
    assert folded(conversation) is conversation


def test_editing_stops_at_the_deadline():
    deadline = Deadline()
    deadline.stop()
    with pytest.raises(CompressionTimeoutError):
        folded(talk(result(LOG)), deadline)


def test_a_cut_result_keeps_its_media_and_knows_what_it_came_with():
    image = Media("image", 9)
    cut = with_text(ToolResult("a", (Text("first"), image, Text("second"))), "short")
    assert cut.parts == (Text("short"), image)
    assert cut.is_cut
    assert cut.original_text == "first\nsecond"


def test_a_result_belongs_to_the_nearest_call_before_it_with_its_id():
    messages = (
        Message("assistant", (ToolCall("a", "read", "1"),)),
        Message("tool", (result("x"), ToolResult("a", ()))),
        Message("assistant", (ToolCall("a", "write", "2"),)),
        Message("tool", (ToolResult("a", ()),)),
    )
    assert call_names(messages) == {(1, 0): ("", ""), (1, 1): ("read", "1"), (3, 0): ("write", "2")}
