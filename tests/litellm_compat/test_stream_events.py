"""What the first events of a stream say, in each form in which LiteLLM hands them on."""

import json

import pytest
from litellm.llms.openai.responses.transformation import OpenAIResponsesAPIConfig
from litellm.types.utils import Delta, ModelResponseStream, StreamingChoices

from ctx_hooks.litellm_compat.stream_events import error_before_content, flat_error, is_opening

MESSAGE = "prompt is too long: 9000 tokens > 8000 maximum"
NESTED = {"type": "error", "error": {"type": "invalid_request_error", "code": "none", "message": MESSAGE}}
FLAT = {"type": "error", "code": "none", "message": MESSAGE, "param": None, "sequence_number": 2}
FAILED = {"type": "response.failed", "response": {"error": {"code": "none", "message": MESSAGE}}}


def sent(*events):
    return b"".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in events)


def from_litellm(event):
    return OpenAIResponsesAPIConfig().transform_streaming_response("model", event, None)


def chat_chunk(**delta):
    return ModelResponseStream(choices=[StreamingChoices(delta=Delta(**delta))])


@pytest.mark.parametrize("form", [dict, from_litellm, sent], ids=["mapping", "object", "bytes"])
@pytest.mark.parametrize("error", [NESTED, FLAT, FAILED], ids=["nested", "flat", "failed"])
def test_an_error_is_seen_in_every_form_first_and_behind_the_opening(error, form):
    created = {"type": "response.created", "response": {}}
    for chunks in ([form(error)], [form(created), form(error)]):
        told = error_before_content(chunks)
        assert told is not None
        assert MESSAGE in str(told)
    assert error_before_content([form({"type": "response.output_text.delta", "delta": "a"}), form(error)]) is None


@pytest.mark.parametrize("size", [1, 7, 40, 1_000])
def test_events_are_read_wherever_the_network_cuts_them(size):
    text = sent({"type": "message_start"}, {"type": "ping"}, NESTED)
    chunks = [text[i : i + size] for i in range(0, len(text), size)]
    assert is_opening(chunks[:1]) is (len(chunks) > 1)
    assert MESSAGE in str(error_before_content(chunks))


def test_a_chunk_of_chat_is_content_as_soon_as_it_holds_more_than_the_role():
    assert is_opening([chat_chunk(role="assistant", content="")])
    assert is_opening([{"choices": [], "prompt_filter_results": []}])
    assert not is_opening([chat_chunk(role="assistant", content="a")])
    assert not is_opening([chat_chunk(role="assistant", reasoning_content="a")])
    call = {"index": 0, "id": "call", "function": {"name": "read", "arguments": ""}, "type": "function"}
    assert not is_opening([chat_chunk(role="assistant", tool_calls=[call])])
    assert not is_opening([{"choices": [{"delta": {}, "finish_reason": "stop"}]}])


def test_only_a_flat_error_is_called_flat():
    assert flat_error(FLAT) == {"code": "none", "message": MESSAGE, "param": None}
    assert flat_error(from_litellm(FLAT)) == {"code": "none", "message": MESSAGE, "param": None}
    assert not any(map(flat_error, [NESTED, from_litellm(NESTED), FAILED, {"type": "error"}, None]))


def test_googles_error_is_an_event_of_its_own_without_a_type():
    error = {"error": {"code": 400, "message": "The input token count exceeds", "status": "INVALID_ARGUMENT"}}
    told = error_before_content([f"data: {json.dumps(error)}\n\n".encode()])
    assert told is not None
    assert told.body == error
    content = {"candidates": [{"content": {"parts": [{"text": "a"}]}}]}
    assert error_before_content([f"data: {json.dumps(content)}\n\n".encode()]) is None
    assert error_before_content([f"data: {json.dumps({**content, **error})}\n\n".encode()]) is None
