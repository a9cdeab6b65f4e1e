"""No text that we write advises a model to call a tool again, unless the call is known to change nothing."""

import json
from dataclasses import replace
from itertools import chain

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from strategies import spoken, tool_round

import ctx_hooks
from ctx_hooks.compaction.summary.actions import changes_nothing
from ctx_hooks.conversation.model import ToolCall
from ctx_hooks.conversation.placeholders import MARK
from ctx_hooks.formats import WIRE_FORMATS

ADVICE = ("repeat the call", "call the tool again", "重新调用")
REPEATABLE = [
    ("Read", {"file_path": "src/a.py", "offset": 10, "limit": 200}),
    ("read_file", {"path": "src/a.py"}),
    ("mcp__files__list_directory", {"path": "src"}),
    ("search_files", {"pattern": "cache", "paths": ["src", "docs"]}),
    ("Grep", {"pattern": "def cut"}),
]
OTHERS = [
    ("create_announcement", {"course": 1, "title": "Exam"}),
    ("enroll_user", {"user": 7}),
    ("upload_file", {"path": "a.pdf"}),
    ("SendMessage", {"to": "lead", "text": "done"}),
    ("get_next_ticket", {"queue": "support"}),
    ("find_or_create_user", {"name": "Ann"}),
    ("search_flights_and_hold", {"to": "LIS"}),
    ("listThenPurge", {"folder": "spam"}),
    ("read_email", {"id": 5}),
    ("list", {"action": "delete", "id": 3}),
    ("find", {"delete": True, "path": "src"}),
    ("mcp__delete__list", {"id": 3}),
    ("删除_list", {"id": 3}),
    ("search", {"query": "DELETE FROM users"}),
    ("search", {"request": {"method": "POST"}}),
    ("read_file", {"path": "a.py", "command": "rm a.py"}),
    ("fetch", {"url": "https://shop/pay", "method": "POST"}),
    ("bash", {"command": "cat a.py"}),
    ("shell", {"command": ["bash", "-lc", "awk '{print > \"b\"}' a"]}),
    ("run", {}),
    ("", {"path": "a.py"}),
    ("view", ["a.py"]),
]
made_calls = st.lists(st.tuples(st.sampled_from(OTHERS + REPEATABLE), st.integers(1, 40)), min_size=2, max_size=8)


def compressed(fmt, calls, budget=3_000, target=None, language="en"):
    """Return the messages sent of a session of `calls` with long results, between a task and a question."""
    messages = [spoken(fmt, "user", "Begin.")]
    for n, ((name, arguments), size) in enumerate(calls):
        text = "\n".join(f"row {n}.{k}: value {k * 7919 % 1000}" for k in range(60 * size))
        messages += tool_round(fmt, [(f"c{n}", text)], name=name, arguments=arguments)
    messages += [spoken(fmt, "assistant", "Done so far."), spoken(fmt, "user", "And now?")]
    policy = ctx_hooks.Policy(tool_results={"max_chars": 2_000}, language=language)
    sent = ctx_hooks.compress(messages, format=fmt, budget_tokens=budget, target_tokens=target, policy=policy)
    return WIRE_FORMATS[fmt].read(sent.messages).messages


def ours_by_call(messages):
    """Return our lines in each sent result, by the call's number."""
    results = {int(r.call_id[1:]): r.text for m in messages for r in m.results}
    return {n: [line for line in text.splitlines() if line.startswith(MARK)] for n, text in results.items()}


@pytest.mark.parametrize("fmt", ["openai-chat", "anthropic", "openai-responses"])  # Google's calls have no ids here
@settings(max_examples=30, deadline=None)
@example(calls=[(call, 40) for call in OTHERS[:5]], budget=3_000, language="en", target=None)
@given(
    calls=made_calls,
    budget=st.integers(600, 12_000),
    language=st.sampled_from(["en", "zh"]),
    target=st.sampled_from([None, "auto"]),
)
def test_only_harmless_calls_get_advice(fmt, calls, budget, language, target):
    sent = compressed(fmt, calls, budget, target, language)
    harmless = {n for n, (call, _) in enumerate(calls) if call in REPEATABLE}
    for n, lines in ours_by_call(sent).items():
        assert n in harmless or not any(word in line for line in lines for word in ADVICE)
    assert not any(word in message.text for message in sent for word in ADVICE)


def test_calls_that_surely_change_nothing_are_harmless():
    calls = [ToolCall("c", name, json.dumps(arguments)) for name, arguments in REPEATABLE + OTHERS]
    assert [changes_nothing(call) for call in calls] == [True] * len(REPEATABLE) + [False] * len(OTHERS)
    assert not any(changes_nothing(replace(call, arguments="not JSON")) for call in calls)


@pytest.mark.parametrize(("language", "advice"), [("en", "call"), ("zh", "重新调用")])
def test_harmless_call_gets_advice(language, advice):
    lines = ours_by_call(compressed("openai-chat", [(call, 40) for call in REPEATABLE[:2]], language=language))
    assert any(advice in line for line in chain(*lines.values()))
