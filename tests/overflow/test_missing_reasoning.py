"""A refusal that wants reasoning back is recognised in the servers' own words, and is no overflow."""

import json

import litellm
import pytest

from ctx_hooks.overflow.recognise import misses_reasoning, recognise_overflow

DEEPSEEK = "The `reasoning_content` in the thinking mode must be passed back to the API."
MOONSHOT = "thinking is enabled but reasoning_content is missing in assistant tool call message at index 19"
WORDINGS = [
    DEEPSEEK,
    "The reasoning content in the thinking mode must be passed back to the API.",
    "The `content[].thinking` in the thinking mode must be passed back to the API.",
    MOONSHOT,
    f"{MOONSHOT} (request id: 202604230913188261227178268d9d624DV4QBl)",
    "Missing `reasoning_content` field in the assistant message at message index 2. For more information, see https://api.example",
    "messages[51]: assistant message with tool_calls must include reasoning_content",
    f"Error from provider (Console): Upstream request failed: [invalid_request_error] {DEEPSEEK}",
    "`reasoning_content` 必须返回给 API",
    {"error": {"code": "400", "message": "Param Incorrect", "param": DEEPSEEK, "type": ""}},
    {"code": 20015, "message": MOONSHOT, "data": None},
    {"type": "error", "error": {"type": "invalid_request_error", "message": MOONSHOT}},
    {
        "error": {
            "message": "Provider returned error",
            "code": 400,
            "metadata": {"raw": json.dumps({"error": {"message": DEEPSEEK}}), "provider_name": "DeepSeek"},
        }
    },
]
OTHERS = [
    "Unsupported parameter: reasoning_content is not supported in messages; remove it.",
    "reasoning_content must not be included in the input messages",
    "This model's maximum context length is 65536 tokens. However, you requested 70000 tokens.",
    "Expected `thinking` or `redacted_thinking`, but found `tool_use`.",
    "messages.3.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified",
    "Invalid value for 'content': expected a string, got null.",
    "",
    {"error": {"message": "Internal error", "input": MOONSHOT}},
]


@pytest.mark.parametrize("said", WORDINGS, ids=str)
def test_wording_is_recognised_and_no_overflow(said):
    text = said if isinstance(said, str) else json.dumps(said)
    error = litellm.BadRequestError(f"OpenAIException - {text}", "m", "openai")
    assert misses_reasoning(said)
    assert misses_reasoning(error)
    assert recognise_overflow(error, status=400) is None


@pytest.mark.parametrize("said", OTHERS, ids=str)
def test_other_refusals_are_left_alone(said):
    assert not misses_reasoning(said)
