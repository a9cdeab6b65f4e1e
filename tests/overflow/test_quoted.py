"""A caller's own words in an error are no overflow, however quoted; a refusal that a conversation tells of is one."""

import html
import json

import litellm
import pytest
from error_wordings import WORDINGS as UNWRITTEN
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from ctx_hooks.litellm_compat.errors import overflow_of
from ctx_hooks.overflow.quoted import LEAST_WORDS, MOST_CHARS, PIECE_CHARS
from ctx_hooks.overflow.recognise import recognise_overflow
from ctx_hooks.testing.behaviour import WORDINGS

REPORTED = "This model's maximum context length is 1200 tokens. However, your messages resulted in 3000 tokens."
FIGURES = {"limit": 1_200, "input": 3_000, "output": 500, "total": 3_500, "excess": 1_800}
SAID = (
    REPORTED,
    *(w.text.format(**FIGURES) for w in WORDINGS.values()),
    *(text for texts in UNWRITTEN.values() for text in texts),
    "prompt is too long", "the input is too long for this model", "The prompt does not fit into the context window.",
    "max_tokens is too large: 20000. This model supports at most 4096 completion tokens, whereas you provided 20000.",
    "Request too large for gpt-5 on tokens per min (TPM): Limit 1200, Requested 3000.",
    "Range of input length should be [1, 1200]", "输入长度超过模型的上下文长度 1200 tokens",
    "n_ctx: 1200 is smaller than prompt tokens 3000",
    "x' This model's maximum context length is 1200 tokens. However, your messages resulted in 3000 tokens. 'y",
)  # fmt: skip


def invalid(said, code="invalid_value", message="Invalid value: '{}'. Supported values are: 'auto', 'default'."):
    return {"error": {"message": message.format(said), "type": "invalid_request_error", "param": "f", "code": code}}


def plain(message, **beside):
    return lambda said: {"error": {"message": message.format(said), **beside}}


def escaped(said):
    return json.dumps(said)[1:-1]


def detail(said, message):
    return {"detail": [{"type": "value_error", "loc": ["body", "f"], "msg": message.format(said), "input": said}]}


WAYS = {
    "OpenAI's": invalid,
    "without quotes": plain("Field f cannot be {} here, choose auto or default", code=400, type="BadRequestError"),
    "in backticks": plain("Unknown variant `{}`, expected `auto` or `default`"),
    "repr": lambda said: {"error": {"message": f"Unexpected value {said!r} for f"}},
    "JSON in JSON": lambda said: {"error": {"message": f"Bad field: {json.dumps({'f': said})} was refused"}},
    "escaped twice": lambda said: {"error": {"message": f"upstream said: {escaped(escaped(said))} is no value of f"}},
    "HTML": lambda said: {"error": {"message": f"<p>{html.escape(said)} is not a value of f</p>"}},
    "upper case": lambda said: {"error": {"message": f"F MAY NOT BE {said.upper()} BUT AUTO"}},
    "the end is missing": lambda said: {"error": {"message": f"f: {said[:-4]}... is none of auto, default"}},
    "pydantic's": lambda said: f"1 validation error for Body\nf\n  Input should be 'auto' [type=x, input_value={said!r}]",
    "FastAPI's": lambda said: detail(said, "Input should be 'auto' or 'default'"),
    "the parameter": lambda said: {"error": {"message": "Unknown parameter.", "param": said, "code": 400}},
    "a model that is missing": plain("The model `{}` does not exist or is not yours.", code="model_not_found"),
}  # fmt: skip
FIELDS = {
    "service_tier": lambda said: {"service_tier": said},
    "a stop": lambda said: {"stop": ["END", said]},
    "a name in metadata": lambda said: {"metadata": {said: 1}},
    "a tool's enum": lambda said: {"tools": [{"name": "t", "input_schema": {"properties": {"a": {"enum": [said]}}}}]},
    "a role": lambda said: {"messages": [{"role": said, "content": "hi"}]},
    "a text": lambda said: {"messages": [{"role": "user", "content": [{"type": "text", "text": f"so {said} it was"}]}]},
    "arguments": lambda said: {"input": [{"type": "function_call", "arguments": json.dumps({"a": said})}]},
    "a header": lambda said: {"headers": {"anthropic-beta": said}},
}
PARTLY_QUOTED = ("a text", "arguments")
RAISED = {
    "of its body": lambda text, body: litellm.BadRequestError(f"OpenAIException - {text}", "gpt", "openai", body=body),
    "of its text": lambda _, body: litellm.BadRequestError(f"VllmException - {json.dumps(body)}", "gpt", "hosted_vllm"),
    "as LiteLLM's overflow": lambda text, body: litellm.ContextWindowExceededError(
        f"ContextWindowExceededError: XException - {text if isinstance(body, str) else json.dumps(body)}", "gpt", "x"
    ),
}  # fmt: skip


def raised(kind, body):
    text = body if isinstance(body, str) else body["error"]["message"] if "error" in body else str(body)
    return RAISED[kind](text, body)


@pytest.mark.parametrize("way", WAYS)
@settings(max_examples=40)
@given(said=st.sampled_from(SAID), field=st.sampled_from([*FIELDS]), kind=st.sampled_from([*RAISED]), padded=st.booleans())
@example(said=REPORTED, field="service_tier", kind="as LiteLLM's overflow", padded=False)
def test_quoted_field_of_caller_is_no_overflow(way, said, field, kind, padded):
    said = f"{said} abc" if padded else said
    if field in PARTLY_QUOTED or way.endswith("missing"):
        assume(len(said.split()) > LEAST_WORDS)
    request = {"messages": [{"role": "user", "content": "Hello."}], "tools": [], **FIELDS[field](said)}
    assert overflow_of(raised(kind, WAYS[way](said)), {"url": "/v1/chat/completions", "body": request}) is None


EARLIER = "This model's maximum context length is 8000 tokens. However, your messages resulted in 8123 tokens."
GENUINE = {
    name: w.text.format(limit=8_000, input=9_321, output=900, total=10_221, excess=2_221)
    for name, w in WORDINGS.items()
    if name not in ("rate_limited", "cerebras")
}
TOLD = (
    "The prompt is too long for me, and the context length is a matter of the maximum number of tokens.",
    EARLIER, *(text.replace("9321", "8123").replace("10221", "9023").replace("2221", "1023") for text in GENUINE.values()),
)  # fmt: skip


@pytest.mark.parametrize("kind", [*RAISED])
@given(name=st.sampled_from([*GENUINE]), told=st.lists(st.sampled_from(TOLD), max_size=3), repeats=st.booleans())
def test_refusal_is_believed_in_conversation_about_refusals(kind, name, told, repeats):
    told = [*told, GENUINE[name]] if repeats else told
    request = {"messages": [{"role": "user", "content": text} for text in ("Hello.", *told)]}
    error = raised(kind, {"error": {"message": GENUINE[name], "type": "invalid_request_error", "code": 400}})
    before, found = overflow_of(error), overflow_of(error, request)
    assert (found.limit_tokens, found.input_tokens) == (before.limit_tokens, before.input_tokens)
    assert found.quoted <= bool(told)


def test_value_across_pieces_of_long_text_is_quotation():
    for chars in range(PIECE_CHARS - len(REPORTED) - 1, PIECE_CHARS + 1, 7):
        request = {"messages": [{"role": "user", "content": "x" * chars + " " + REPORTED}]}
        assert overflow_of(raised("of its body", WAYS["without quotes"](REPORTED)), request) is None


def test_request_too_long_to_read_teaches_nothing():
    error = raised("of its body", {"error": {"message": EARLIER}})
    assert overflow_of(error, {"messages": ["word " * (MOST_CHARS // 5 + 1)]}).quoted
    assert not overflow_of(error, {"messages": ["word " * 1_000]}).quoted
    assert not overflow_of(error, {"metadata": {"previous_models": [EARLIER]}, "messages": []}).quoted


@pytest.mark.parametrize("code", ["invalid_value", "unsupported_parameter", "invalid_api_key", "rate_limit_exceeded",
    "content_filter", "model_not_found", "UnsupportedModel", "missing_required_parameter",
    "insufficient_quota"])  # fmt: skip
def test_code_of_another_fault_wins(code):
    assert recognise_overflow({"error": {"message": REPORTED, "code": code}}) is None


@pytest.mark.parametrize("code", ["invalid_request_error", "400", 400, None, "InvalidParameter", "BadRequest", "3051",
    "invalid_request_invalid_args", "authentication_error", "rate_limit_error", "InvalidArgument"])  # fmt: skip
def test_code_of_any_bad_request_leaves_overflow(code):
    assert recognise_overflow({"error": {"message": REPORTED, "code": code}}).limit_tokens == 1_200


def test_limit_of_output_stays_with_code_of_its_value():
    text = "max_tokens is too large: 20000. This model supports at most 4096 completion tokens, whereas you provided 20000."
    assert recognise_overflow(invalid("", message=text)).limit_tokens == 4_096
