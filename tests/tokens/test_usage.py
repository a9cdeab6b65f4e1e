"""An answer of any format says whether the provider ran a tool for it."""

import pytest
from litellm.types.llms.openai import ResponsesAPIResponse
from litellm.types.utils import ModelResponse, PromptTokensDetailsWrapper, ServerToolUse, Usage

from ctx_hooks.tokens.usage import used_hosted_tools


def responses(*items):
    return ResponsesAPIResponse(id="r", created_at=1, output=list(items))


def chat(**message):
    return ModelResponse(choices=[{"message": {"role": "assistant", "content": "found", **message}}])


SEARCH = {"type": "web_search_call", "id": "ws", "status": "completed", "action": {"type": "search", "query": "q"}}
CITED = {"type": "url_citation", "url_citation": {"url": "u", "title": "t", "start_index": 0, "end_index": 1}}
SEARCHED = Usage(prompt_tokens=9, completion_tokens=1, server_tool_use=ServerToolUse(web_search_requests=2))
DETAILED = Usage(
    prompt_tokens=9, completion_tokens=1, prompt_tokens_details=PromptTokensDetailsWrapper(web_search_requests=1)
)


@pytest.mark.parametrize("answer", [
    responses(SEARCH), {"output": [{"type": "code_interpreter_call"}]},
    {"content": [{"type": "text", "text": "t"}, {"type": "server_tool_use", "name": "web_search"}]},
    {"content": [], "usage": {"input_tokens": 9, "server_tool_use": {"web_search_requests": 1}}},
    ModelResponse(usage=SEARCHED), ModelResponse(usage=DETAILED), chat(annotations=[CITED]),
    {"candidates": [{"groundingMetadata": {"webSearchQueries": ["q"]}}]},
    {"candidates": [], "usageMetadata": {"toolUsePromptTokenCount": 400}},
], ids=range(9))  # fmt: skip
def test_use_of_a_hosted_tool_is_seen(answer):
    assert used_hosted_tools(answer)


@pytest.mark.parametrize("answer", [
    responses({"type": "function_call", "id": "f", "call_id": "c", "name": "n", "arguments": "{}", "status": "completed"}),
    {"output": [{"type": "custom_tool_call"}, {"type": "local_shell_call"}]},
    {"content": [{"type": "tool_use", "name": "f"}], "usage": {"server_tool_use": {"web_search_requests": 0}}},
    {"content": [], "usage": {"input_tokens": 9, "server_tool_use": None}},
    ModelResponse(usage=Usage(prompt_tokens=9, completion_tokens=1)), chat(annotations=[]),
    {"candidates": [{"groundingMetadata": {}}]}, None, "text",
], ids=range(9))  # fmt: skip
def test_offer_of_a_hosted_tool_is_no_use(answer):
    assert not used_hosted_tools(answer)
