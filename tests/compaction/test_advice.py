"""No text that we write advises a model to call a tool again, unless the call is known to change nothing."""

import json

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

import ctx_hooks
from ctx_hooks.compaction.summary.actions import changes_nothing
from ctx_hooks.conversation.handles import CutTexts, Retrievable
from ctx_hooks.conversation.model import ToolCall

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


def conversation(fmt, calls):
    """Return a session of `calls` with long results, between a task and a question."""
    messages = [{"role": "user", "content": "Begin."}]
    for n, ((name, given_), size) in enumerate(calls):
        text = "\n".join(f"row {n}.{k}: value {k * 7919 % 1000}" for k in range(60 * size))
        if fmt == "openai-chat":
            function = {"name": name, "arguments": json.dumps(given_)}
            messages.append(
                {
                    "role": "assistant",
                    "content": None,
                    "tool_calls": [{"id": f"c{n}", "type": "function", "function": function}],
                }
            )
            messages.append({"role": "tool", "tool_call_id": f"c{n}", "content": text})
        else:
            messages.append(
                {"role": "assistant", "content": [{"type": "tool_use", "id": f"c{n}", "name": name, "input": given_}]}
            )
            result = {"type": "tool_result", "tool_use_id": f"c{n}", "content": text}
            messages.append({"role": "user", "content": [result]})
    return [*messages, {"role": "assistant", "content": "Done so far."}, {"role": "user", "content": "And now?"}]


def results_of(fmt, messages):
    """Yield the call's number and the sent text of each result."""
    for message in messages:
        if fmt == "openai-chat" and message["role"] == "tool":
            yield int(message["tool_call_id"][1:]), message["content"]
        elif fmt == "anthropic" and isinstance(message["content"], list):
            for block in message["content"]:
                if block["type"] == "tool_result":
                    text = block["content"]
                    yield int(block["tool_use_id"][1:]), text if isinstance(text, str) else text[0]["text"]


@pytest.mark.parametrize("fmt", ["openai-chat", "anthropic"])
@settings(max_examples=60, deadline=None)
@example(
    calls=[((name, given_), 40) for name, given_ in OTHERS[:5]],
    budget=3_000,
    language="en",
    target=None,
)
@given(
    calls=made_calls,
    budget=st.integers(600, 12_000),
    language=st.sampled_from(["en", "zh"]),
    target=st.sampled_from([None, "auto"]),
)
def test_only_harmless_calls_get_advice(fmt, calls, budget, language, target):
    policy = ctx_hooks.Policy(tool_results={"max_chars": 2_000}, language=language)
    sent = ctx_hooks.compress(
        conversation(fmt, calls), format=fmt, budget_tokens=budget, target_tokens=target, policy=policy
    ).messages
    harmless = {n for n, (call, _) in enumerate(calls) if call in REPEATABLE}
    shown = dict(results_of(fmt, sent))
    for n, text in shown.items():
        ours = "\n".join(line for line in text.splitlines() if line.startswith("[ctx_hooks]"))
        assert n in harmless or not any(word in ours for word in ADVICE)
    others = json.dumps([m for m in sent if m.get("role") == "user"], ensure_ascii=False)
    for text in shown.values():
        others = others.replace(json.dumps(text, ensure_ascii=False), "")
    assert not any(word in others for word in ADVICE)


@pytest.mark.parametrize(("name", "given_"), REPEATABLE)
def test_reading_calls_are_harmless(name, given_):
    assert changes_nothing(ToolCall("c", name, json.dumps(given_)))


@pytest.mark.parametrize(("name", "given_"), OTHERS)
def test_doubtful_calls_are_not_harmless(name, given_):
    assert not changes_nothing(ToolCall("c", name, json.dumps(given_)))
    assert not changes_nothing(ToolCall("c", name, "not JSON"))


@pytest.mark.parametrize(("language", "advice"), [("en", "call"), ("zh", "重新调用")])
def test_harmless_call_gets_advice(language, advice):
    calls = [(REPEATABLE[0], 40), (REPEATABLE[1], 40)]
    policy = ctx_hooks.Policy(tool_results={"max_chars": 2_000}, language=language)
    sent = ctx_hooks.compress(conversation("openai-chat", calls), format="openai-chat", budget_tokens=3_000, policy=policy)
    lines = [line for _, text in results_of("openai-chat", sent.messages) for line in text.splitlines()]
    assert any(line.startswith("[ctx_hooks]") and advice in line for line in lines)


def test_offered_retrieval_replaces_advice():
    from ctx_hooks.conversation import placeholders

    reference = CutTexts(Retrievable(b"tenant", 7, {"name": "ctx_retrieve"}, print)).reference("a text")
    for language in ("en", "zh"):
        for text in (
            placeholders.line("oversized", language, reference, may_repeat=True, kept=2_000, total=9_000),
            placeholders.line("lines", language, reference, may_repeat=True),
            placeholders.line("removed", language, reference, may_repeat=True, call="read(a.py)", total=900),
        ):
            assert not any(word in text for word in ADVICE)
            assert reference.handle in text
