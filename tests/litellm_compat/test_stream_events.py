"""What the first events of a stream say, in each form in which LiteLLM hands them on."""

import json

import pytest
from litellm.llms.openai.responses.transformation import OpenAIResponsesAPIConfig

from ctx_hooks.litellm_compat.stream_events import EXCEEDED, error_before_content, refusal_of

MESSAGE = "prompt is too long: 9000 tokens > 8000 maximum"
NESTED = {"type": "error", "error": {"type": "invalid_request_error", "code": "none", "message": MESSAGE}}
FLAT = {"type": "error", "code": "none", "message": MESSAGE, "param": None, "sequence_number": 2}
FAILED = {"type": "response.failed", "response": {"error": {"code": "none", "message": MESSAGE}}}


def sent(*events):
    return b"".join(f"event: {e['type']}\ndata: {json.dumps(e)}\n\n".encode() for e in events)


def from_litellm(event):
    return OpenAIResponsesAPIConfig().transform_streaming_response("model", event, None)


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
    assert MESSAGE in str(error_before_content(chunks))


ERRORS = [
    {"error_type": "context_length_exceeded", "error_message": MESSAGE},
    {"code": "InvalidParameter", "message": MESSAGE, "request_id": "r"},
    {"object": "error", "message": MESSAGE, "type": "BadRequestError", "param": None, "code": 400},
    *({name: MESSAGE} for name in ("error", "detail", "message", "error_msg")),
    {"errors": [{"code": 7009, "message": MESSAGE}], "result": None, "success": False},
    {"detail": [{"loc": ["body"], "msg": MESSAGE}]},
    {"id": "1", "choices": None, "base_resp": {"status_code": 2013, "status_msg": MESSAGE}},
    {"choices": [{"delta": {"content": ""}, "finish_reason": "error"}], "error": {"message": MESSAGE}},
    {"object": "response", "status": "failed", "output": [], "text": {"format": 1}, "error": {"message": MESSAGE}},
]
ENDED = [
    {"choices": [{"index": 0, "message": {"role": "assistant", "content": ""}, "finish_reason": EXCEEDED}]},
    {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop", "native_finish_reason": EXCEEDED}]},
    {"type": "message", "role": "assistant", "content": [{"type": "text", "text": ""}], "stop_reason": EXCEEDED},
    {"type": "message_delta", "delta": {"stop_reason": EXCEEDED, "stop_sequence": None}, "usage": {"output_tokens": 0}},
    {"output": {"message": {"role": "assistant", "content": []}}, "stopReason": EXCEEDED},
    {"object": "response", "status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}, "output": []},
    {"type": "response.incomplete", "response": {"status": "incomplete", "output": [], "max_output_tokens": 9}},
]
CUT = {"object": "response", "status": "incomplete", "output": []}
ANSWERS = [
    {"content": [{"type": "thinking", "thinking": "", "signature": "s"}], "stop_reason": EXCEEDED, "type": "message"},
    {"output": {"message": {"content": [{"type": "tool_use", "id": "t", "input": {}}]}}, "stopReason": EXCEEDED},
    *({"choices": [{"delta": {"content": json.dumps(error)}, "finish_reason": EXCEEDED}]} for error in ERRORS),
    {"choices": [{"delta": {"reasoning_content": "a"}, "finish_reason": EXCEEDED}]},
    {"choices": [{"delta": {"tool_calls": [{"index": 0, "type": "function", "function": {}}]}}], "error": "none"},
    {"choices": [{"text": "a", "finish_reason": "stop"}], "detail": "fast"},
    {"choices": [{"delta": {}, "finish_reason": "length"}], "usage": {"completion_tokens": 0}},
    {"choices": None, "base_resp": {"status_code": 0, "status_msg": "success"}},
    {"code": 0, "message": "success", "request_id": "r"}, {"status": "processing", "message": "queued"},
    {"message": {"role": "assistant", "content": "a"}, "error": "none", "done": False},
    {**CUT, "output": [{"type": "reasoning", "summary": []}]}, {**CUT, "incomplete_details": {"reason": "content_filter"}},
    {**CUT, "max_output_tokens": 9, "usage": {"output_tokens": 9}},
    {"type": "response.output_text.delta", "delta": "a", "error": None},
]  # fmt: skip


def as_whole(event):
    return json.dumps(event, indent=1).encode()


def as_list(event):
    return json.dumps([event, event]).encode()


def as_data(event):
    return b": keep-alive\r\n\r\ndata:" + json.dumps(event).encode() + b"\r\n\r\n"


FORMS = pytest.mark.parametrize("form", [dict, as_whole, as_list, as_data], ids=["mapping", "JSON", "list", "event"])


@FORMS
@pytest.mark.parametrize("event", [*ERRORS, *ENDED], ids=str)
def test_an_event_without_an_answer_is_an_error(event, form):
    told = error_before_content([form(event)])
    assert told is not None
    status, body = refusal_of(told, is_overflow=event in ENDED)
    assert status in range(400, 600)
    assert (EXCEEDED if event in ENDED else MESSAGE) in body["error"]["message"]


@FORMS
@pytest.mark.parametrize("event", ANSWERS, ids=str)
def test_an_answer_is_no_error_whatever_it_says(event, form):
    assert error_before_content([form(event)]) is None


@pytest.mark.parametrize("data", [json.dumps({"code": "Throttling", "message": MESSAGE}), MESSAGE], ids=["JSON", "text"])
def test_an_event_named_error_is_one(data):
    told = error_before_content([f"id:1\nevent:error\n:HTTP_STATUS/429\ndata: {data}\n\n".encode()])
    assert told is not None
    assert MESSAGE in refusal_of(told, is_overflow=False)[1]["error"]["message"]


@pytest.mark.parametrize(("event", "status"), [
    ({"error": {"message": "no", "code": 403}}, 403), ({"error": {"message": "no", "code": 7}}, 500),
], ids=str)  # fmt: skip
def test_an_error_has_the_status_that_it_states(event, status):
    told = error_before_content([event])
    assert refusal_of(told, is_overflow=False)[0] == status
    assert refusal_of(told, is_overflow=True)[0] == 400
