"""Where each format wants results: one that stands there stays, one that does not is moved there."""

import json

import pytest
from strategies import every_format, spoken, tool_round

import ctx_hooks
from ctx_hooks.conversation.model import REMOVED_MESSAGE
from ctx_hooks.conversation.placeholders import MISSING_RESULT
from ctx_hooks.formats import WIRE_FORMATS
from ctx_hooks.message_rules.alternation import kept
from ctx_hooks.policy.settings import Policy

ASKED = {"role": "user", "content": "go"}


def chat_call(*ids):
    calls = [{"id": i, "type": "function", "function": {"name": "f", "arguments": "{}"}} for i in ids]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def chat_result(call_id, text="found"):
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def uses(*ids):
    return {"role": "assistant", "content": [{"type": "tool_use", "id": i, "name": "f", "input": {}} for i in ids]}


def use_results(*ids, behind=()):
    results = [{"type": "tool_result", "tool_use_id": i, "content": "found"} for i in ids]
    return {"role": "user", "content": [*results, *({"type": "text", "text": t} for t in behind)]}


def item(call_id):
    return {"type": "function_call", "call_id": call_id, "name": "f", "arguments": "{}"}


def output(call_id):
    return {"type": "function_call_output", "call_id": call_id, "output": "found"}


CHAT, ANTHROPIC, RESPONSES = "openai-chat", "anthropic", "openai-responses"
SYSTEM = {"role": "system", "content": "A reminder."}
IN_PLACE = {
    "chat: directly behind": (CHAT, [ASKED, chat_call("a"), chat_result("a")]),
    "chat: in another order": (CHAT, [ASKED, chat_call("a", "b"), chat_result("b"), chat_result("a")]),
    "anthropic: first in the next user message": (ANTHROPIC, [ASKED, uses("a"), use_results("a", behind=["and?"])]),
    "anthropic: behind a system message": (ANTHROPIC, [ASKED, uses("a"), SYSTEM, use_results("a")]),
    "responses: directly behind": (RESPONSES, [ASKED, item("a"), output("a")]),
    "responses: behind other items": (RESPONSES, [ASKED, item("a"), ASKED, output("a")]),
}
MOVED = {
    "chat: behind a user message": (
        [ASKED, chat_call("a"), ASKED, chat_result("a")], CHAT, [ASKED, chat_call("a"), chat_result("a"), ASKED],
    ),
    "chat: before its call": ([chat_result("a"), ASKED, chat_call("a")], CHAT, [ASKED, chat_call("a"), chat_result("a")]),
    "anthropic: behind text": (
        [ASKED, uses("a"), {"role": "user", "content": [{"type": "text", "text": "and?"}, *use_results("a")["content"]]}],
        ANTHROPIC, [ASKED, uses("a"), use_results("a", behind=["and?"])],
    ),
    "responses: before its call": ([ASKED, output("a"), item("a")], RESPONSES, [ASKED, item("a"), output("a")]),
}  # fmt: skip


@pytest.mark.parametrize("case", IN_PLACE)
def test_result_in_its_place_stays(case):
    fmt, messages = IN_PLACE[case]
    done = ctx_hooks.repair(messages, format=fmt)
    assert (done.messages, done.changed) == (messages, False)


@pytest.mark.parametrize("case", MOVED)
def test_misplaced_result_moves_to_its_place(case):
    messages, fmt, expected = MOVED[case]
    done = ctx_hooks.repair(messages, format=fmt)
    assert (done.messages, len(done.repairs)) == (expected, 1)


@pytest.mark.parametrize("target_tokens", [None, "auto"])
@pytest.mark.parametrize("language", ["en", "zh"])
@every_format
def test_added_texts_are_in_the_policys_language(fmt, language, target_tokens):
    old = [message for n in range(30) for message in tool_round(fmt, [(f"c{n}", "old line\n" * 60)], f"And {n}?")]
    messages = [spoken(fmt, "user", "Look."), *old, *tool_round(fmt, [("last", None)]), spoken(fmt, "user", "Go on.")]
    policy = Policy(language=language)
    done = ctx_hooks.compress(messages, format=fmt, budget_tokens=1_000, target_tokens=target_tokens, policy=policy)
    assert MISSING_RESULT[language] in json.dumps(done.messages, ensure_ascii=False)
    before = [spoken(fmt, "user", "Look."), spoken(fmt, "assistant", "Here."), spoken(fmt, "user", "Go on.")]
    filled = kept(WIRE_FORMATS[fmt].read(before), WIRE_FORMATS[fmt].read(before[::2]), language)
    if fmt != "gemini":  # its turns need not alternate
        assert [m.text for m in filled.messages][1] == REMOVED_MESSAGE[language]
