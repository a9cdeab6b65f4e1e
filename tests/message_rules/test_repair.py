"""Whatever was broken, the repaired conversation passes the rules, and what was whole is left alone."""

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import FIELDS, broken_payloads, every_format, payloads, spoken

import ctx_hooks
from ctx_hooks import message_rules
from ctx_hooks.formats import WIRE_FORMATS
from ctx_hooks.testing import violations as refused

thorough = settings(max_examples=15)


def request(fmt, messages):
    return {FIELDS[fmt]: messages, "tools": [{"name": "read_file"}]}


@every_format
@thorough
@given(data=st.data())
def test_valid_conversation_is_the_same_object(fmt, data):
    conversation = WIRE_FORMATS[fmt].read(data.draw(payloads(fmt)))
    repaired, repairs = message_rules.repair(conversation)
    assert repaired is conversation
    assert repairs == ()


@every_format
@thorough
@given(data=st.data())
def test_repaired_conversation_needs_no_second_repair(fmt, data):
    codec = WIRE_FORMATS[fmt]
    repaired, _ = message_rules.repair(codec.read(data.draw(broken_payloads(fmt))))
    again = codec.read(codec.write(repaired))
    assert message_rules.repair(again) == (again, ())


@pytest.mark.parametrize("fmt", ["openai-chat", "openai-responses", "gemini"])
@thorough
@given(data=st.data())
def test_independent_judge_accepts_repaired_messages(fmt, data):
    messages = data.draw(broken_payloads(fmt))
    repaired = ctx_hooks.repair(messages, format=fmt).messages
    assert repaired == [] or refused(fmt, request(fmt, repaired)) == []


def test_doubles_and_orphans_go_missing_results_come():
    uses = [{"type": "tool_use", "id": i, "name": "f", "input": {}} for i in ("a", "b")]
    result = {"type": "tool_result", "tool_use_id": "a", "content": "1"}
    messages = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": uses},
        {"role": "user", "content": [result, {**result, "content": "2"}, {**result, "tool_use_id": "z"}]},
    ]
    done = ctx_hooks.repair(messages, format="anthropic")
    results = done.messages[2]["content"]
    assert [r["tool_use_id"] for r in results] == ["a", "b"]
    assert results[0]["content"] == "1"
    assert results[1]["is_error"] is True
    found = ["a call without a result", "a result without a call", "a second result for a call"]
    assert [repair.what for repair in done.repairs] == found


def test_output_of_a_stored_call_stays():
    items = [{"type": "function_call_output", "call_id": "c", "output": "o"}, {"role": "user", "content": "and?"}]
    conversation = WIRE_FORMATS["openai-responses"].read(items)
    assert message_rules.repair(conversation, continues=True)[0] is conversation
    assert len(message_rules.repair(conversation)[0].messages) == 1


ASKED = {"role": "user", "content": "q"}
TOLD = {"role": "tool", "tool_call_id": "c", "content": "r"}


@pytest.mark.parametrize(("fmt", "messages", "kept"), [
    ("openai-chat", [{"role": "user", "content": None}], [{"role": "user", "content": ""}]),
    (
        "openai-chat", [ASKED, {"role": "assistant", "content": "a", "tool_calls": []}],
        [ASKED, {"role": "assistant", "content": "a"}],
    ),
    (
        "openai-chat", [ASKED, {"role": "assistant", "content": "a", "tool_calls": [{"id": "c", "function": {}}]}, TOLD],
        [ASKED, {"role": "assistant", "content": "a", "tool_calls": [{"id": "c", "function": {"arguments": "null"}}]}, TOLD],
    ),
    ("openai-responses", [ASKED, {"type": "reasoning", "id": "rs", "summary": []}], [ASKED]),
], ids=["null content", "empty calls", "a call without arguments", "reasoning without its item"])  # fmt: skip
def test_content_is_made_acceptable(fmt, messages, kept):
    assert ctx_hooks.repair(messages, format=fmt).messages == kept


def test_anthropic_content_loses_blanks_and_surplus_markers():
    block = {"type": "text", "text": "t", "cache_control": {"type": "ephemeral"}}
    messages = [
        {"role": "assistant", "content": "hello"},
        {"role": "user", "content": [block] * 5 + [{"type": "text", "text": "  "}]},
        {"role": "assistant", "content": "so "},
    ]
    done = ctx_hooks.repair(messages, format="anthropic").messages
    assert done[0]["role"] == "user"
    assert ["cache_control" in b for b in done[2]["content"]] == [False, True, True, True, True]
    assert done[3]["content"] == "so"


def test_texts_that_quote_markers_do_not_count():
    marker = {"cache_control": {"type": "ephemeral"}}
    block = {"type": "text", "text": "t", **marker}
    messages = [{"role": "user", "content": [block] * 4}]
    quoting = [{"type": "text", "text": json.dumps(marker, separators=(",", ":")) * 3}]
    for system, tools, surplus in [
        (quoting[0]["text"], None, 0),
        (quoting, [{"name": "t", "description": quoting[0]["text"]}], 0),
        ([block], None, 1),
        ([block], [{"name": "t", **marker}, {"name": "u", "cache_control": None}], 2),
    ]:
        conversation = WIRE_FORMATS["anthropic"].read(messages, system=system, tools=tools)
        assert len(message_rules.repair(conversation)[1]) == surplus


def test_google_content_loses_empty_texts():
    said, empty = {"text": "hello"}, {"text": ""}
    contents = [spoken("gemini", role, "") for role in ("user", "assistant", "user")]
    contents[0]["parts"], contents[2]["parts"] = [said, empty], [said]
    done = ctx_hooks.repair(contents, format="gemini")
    assert [content["parts"] for content in done.messages[::2]] == [[said], [said]]
    assert {"text": ""} not in done.messages[1]["parts"], "a notice keeps the turns alternating"
    assert [repair.message_index for repair in done.repairs] == [0, 1, 0]
