"""What is read is written again, to the last field."""

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sessions import FILES
from strategies import broken_payloads, every_format, payloads

from ctx_hooks.errors import MalformedConversationError
from ctx_hooks.formats import WIRE_FORMATS, MessageReader
from ctx_hooks.formats.fields import unmarked

WHERE = {"gemini": "parts"}


def forced(conversation):
    """Have every message written from its parts, not from what was read."""
    return replace(conversation, messages=tuple(replace(m, edited=True) for m in conversation.messages))


@every_format
@settings(max_examples=15)
@given(data=st.data())
def test_generated_conversations_come_back_as_they_were(fmt, data):
    messages = data.draw(st.one_of(payloads(fmt), broken_payloads(fmt)))
    conversation = WIRE_FORMATS[fmt].read(messages)
    assert WIRE_FORMATS[fmt].write(conversation) == messages
    assert WIRE_FORMATS[fmt].write(forced(conversation)) == messages


@pytest.mark.parametrize("path", FILES, ids=lambda p: p.stem)
def test_real_conversations_come_back_as_they_were(path):
    for line in path.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        codec = WIRE_FORMATS[record["format"]]
        conversation = codec.read(record["messages"], system=record.get("system"), tools=record.get("tools"))
        assert json.dumps(codec.write(conversation)) == json.dumps(record["messages"])
        assert json.dumps(codec.write(forced(conversation))) == json.dumps(record["messages"])


ODD = {
    "openai-chat": [
        {"role": "developer", "content": "d", "x": 1},
        {
            "role": "user", "name": "ann",
            "content": [
                {"type": "text", "text": "t", "cache_control": {"type": "ephemeral"}},
                {"type": "input_audio", "input_audio": {"data": "UklGRg==", "format": "wav"}},
                {"type": "from_the_future", "payload": [1, {"a": None}]},
            ],
        },
        {
            "role": "assistant", "content": None, "refusal": None, "annotations": [], "reasoning_content": "r",
            "thinking_blocks": [{"type": "thinking", "thinking": "r", "signature": "s"}],
            "tool_calls": [
                {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}, "index": 0, "x": {"k": 1}},
                {"id": "b", "type": "custom", "custom": {"name": "g", "input": "raw"}},
            ],
        },
        {"role": "tool", "tool_call_id": "a", "content": [{"type": "text", "text": "r1"}], "name": "f"},
        {"role": "tool", "tool_call_id": "b", "content": ""},
        {"role": "assistant", "content": "", "function_call": {"name": "old", "arguments": "{}"}},
        {"role": "function", "name": "old", "content": "result"}, {"role": "oracle", "content": {"not": "known"}},
    ],
    "anthropic": [
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "t", "signature": "s"}, {"type": "redacted_thinking", "data": "x"},
                {"type": "text", "text": "see", "citations": [{"type": "char_location", "cited_text": "c"}]},
                {"type": "tool_use", "id": "u", "name": "f", "input": {"a": 1.10, "b": [None, True]}, "caller": {"x": 1}},
                {"type": "server_tool_use", "id": "srv", "name": "web_search", "input": {"q": "x"}},
            ],
        },
        {"role": "system", "content": "a note in the middle"},
        {
            "role": "user",
            "content": [
                {
                    "type": "tool_result", "tool_use_id": "u", "is_error": True, "cache_control": {"type": "ephemeral"},
                    "content": [{"type": "text", "text": "r"}, {"type": "image", "source": {"data": "iVBOR"}}],
                },
                {"type": "document", "source": {"type": "text", "data": "d"}, "title": "t"},
            ],
        },
    ],
    "openai-responses": [
        {"role": "user", "content": "short form"},
        {"type": "message", "role": "developer", "content": [{"type": "input_text", "text": "d"}]},
        {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": "e"},
        {"type": "function_call", "id": "fc", "call_id": "c", "name": "f", "arguments": "{}", "status": "completed"},
        {"type": "function_call_output", "call_id": "c", "output": [{"type": "input_text", "text": "o"}]},
        {"type": "custom_tool_call", "call_id": "k", "name": "patch", "input": "*** Begin"},
        {"type": "custom_tool_call_output", "call_id": "k", "output": "done"},
        {"type": "local_shell_call", "call_id": "l", "action": {"type": "exec", "command": ["ls"]}, "status": "completed"},
        {"type": "local_shell_call_output", "call_id": "l", "output": "a b"}, {"type": "item_reference", "id": "msg_1"},
        {"type": "compaction", "encrypted_content": "z"},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "a", "annotations": [1]}]},
    ],
    "gemini": [
        {"parts": [{"text": "no role"}, "a bare text"]},
        {
            "role": "user",
            "parts": [
                {"inlineData": {"mimeType": "image/png", "data": "iVBOR"}, "mediaResolution": {"level": "LOW"}},
                {"inline_data": {"mime_type": "audio/wav", "data": "UklGRg=="}},
                {"fromTheFuture": [1, {"a": None}]},
            ],
            "x": 1,
        },
        {
            "role": "model",
            "parts": [
                {"text": "hm", "thought": True}, {"text": "", "thoughtSignature": "c2ln"},
                {"executableCode": {"language": "PYTHON", "code": "print(1)"}},
                {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1"}},
                {"functionCall": {"name": "f", "args": {"a": 1.10, "b": [None, True]}}, "thoughtSignature": "c2ln"},
                {"function_call": {"id": "7", "name": "g"}, "thought_signature": "c2ln"},
            ],
        },
        {
            "role": "function",
            "parts": [
                {"functionResponse": {"name": "f", "response": {"rows": [1, 2], "note": "n"}, "willContinue": False}},
                {
                    "function_response": {
                        "id": "7", "name": "g", "response": {"error": "e"},
                        "parts": [{"inlineData": {"mimeType": "image/png", "data": "iVBOR"}}],
                    },
                },
            ],
        },
        {"role": "oracle", "parts": [{"text": "not known"}]},
    ],
}  # fmt: skip


@every_format
def test_unknown_fields_types_and_items_survive(fmt):
    conversation = WIRE_FORMATS[fmt].read(ODD[fmt])
    assert WIRE_FORMATS[fmt].write(conversation) == ODD[fmt]
    assert WIRE_FORMATS[fmt].write(forced(conversation)) == ODD[fmt]


@every_format
@pytest.mark.parametrize("messages", ["a text", None, 7, ["x"], [None], {"role": "user"}], ids=str)
def test_no_list_of_mappings_is_refused_by_name(fmt, messages):
    if (fmt, type(messages)) in {("openai-responses", str), ("gemini", dict)}:
        assert len(WIRE_FORMATS[fmt].read(messages).messages) == 1, "the format takes one for a list of one"
        return
    with pytest.raises(MalformedConversationError):
        WIRE_FORMATS[fmt].read(messages)


@every_format
def test_nesting_without_end_is_refused_by_name(fmt):
    deep: list = []
    for _ in range(5_000):
        deep = [deep]
    with pytest.raises(MalformedConversationError, match="nested too deeply"):
        MessageReader(fmt, [{"role": "user", "content": deep}])


@every_format
def test_edited_text_keeps_its_other_fields(fmt):
    kind = {"openai-responses": {"type": "input_text"}, "gemini": {}}.get(fmt, {"type": "text"})
    block = {**kind, "text": "before", "x": 1}
    raw = {"role": "user", WHERE.get(fmt, "content"): [block]}
    conversation = WIRE_FORMATS[fmt].read([raw])
    (message,) = conversation.messages
    edited = message.with_parts((replace(message.parts[0], text="after"),))
    written = WIRE_FORMATS[fmt].write(conversation.with_messages((edited,)))
    assert written == [{**raw, WHERE.get(fmt, "content"): [{**block, "text": "after"}]}]


def test_unmarked_message_equals_one_never_marked():
    mark = {"cache_control": {"type": "ephemeral"}}
    block, image = {"type": "text", "text": "Go."}, {"type": "image", "source": {}}
    for plain, marked in (("Go.", [{**block, **mark}]), ([block, image], [block, {**image, **mark}])):
        bare = {"role": "user", "content": plain}
        assert unmarked({"role": "user", "content": marked}) == bare == unmarked({**bare, **mark})
        assert unmarked(bare) is bare
