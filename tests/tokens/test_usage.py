"""The usage of answers is read and raised in every format, and nothing else of an answer changes."""

import copy
import json

import pytest
from litellm.types.llms.openai import ResponseCompletedEvent, ResponsesAPIResponse
from litellm.types.utils import ModelResponse, ModelResponseStream, PromptTokensDetailsWrapper, ServerToolUse, Usage

from ctx_hooks.tokens.usage import LONGEST_LINE_BYTES, grown, unfinished_line, used_hosted_tools

CHAT = {
    "prompt_tokens": 1_000,
    "completion_tokens": 7,
    "total_tokens": 1_007,
    "prompt_tokens_details": {"cached_tokens": 900},
}
ANTHROPIC = {"input_tokens": 60, "cache_read_input_tokens": 900, "cache_creation_input_tokens": 40, "output_tokens": 7}
RESPONSES = {
    "input_tokens": 1_000,
    "input_tokens_details": {"cached_tokens": 900},
    "output_tokens": 7,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 1_007,
}
GEMINI = {"promptTokenCount": 1_000, "candidatesTokenCount": 7, "totalTokenCount": 1_007, "cachedContentTokenCount": 900}
RAISED = {
    "chat": (CHAT, {"prompt_tokens": 2_500, "total_tokens": 2_507}),
    "anthropic": (ANTHROPIC, {"input_tokens": 1_560}),
    "responses": (RESPONSES, {"input_tokens": 2_500, "total_tokens": 2_507}),
    "gemini": (GEMINI, {"promptTokenCount": 2_500, "totalTokenCount": 2_507}),
}
HELD = {
    "whole": lambda usage: {"id": "an answer", "usage": usage, "output": [{"text": "said"}]},
    "google": lambda usage: {"candidates": [{"content": {"parts": [{"text": "said"}]}}], "usageMetadata": usage},
    "start": lambda usage: {"type": "message_start", "message": {"role": "assistant", "usage": usage}},
    "end": lambda usage: {"type": "response.completed", "response": {"output": [], "usage": usage}},
}
every_format = pytest.mark.parametrize("name", RAISED)


@every_format
@pytest.mark.parametrize("holder", HELD.values(), ids=HELD)
def test_input_and_total_grow_by_the_same_and_the_rest_stays_as_billed(name, holder):
    usage, raised = RAISED[name]
    given = holder(usage)
    before = copy.deepcopy(given)
    assert grown(given, 2.5) == holder({**usage, **raised})
    assert given == before, "the answer is LiteLLM's to log"


@every_format
def test_an_event_of_a_byte_stream_grows_as_the_same_event_does(name):
    usage, _ = RAISED[name]
    event = HELD["start"](usage)
    content = b'event: content_block_delta\ndata: {"type": "content_block_delta", "delta": {"text": "said"}}\n\n'
    lines = b"event: message_start\r\ndata: " + json.dumps(event).encode() + b"\r\n\r\n" + content
    first, told, *rest = grown(lines, 2.5).splitlines(keepends=True)
    assert first == b"event: message_start\r\n"
    assert json.loads(told.removeprefix(b"data: ")) == grown(event, 2.5)
    assert told.endswith(b"\r\n")
    assert b"".join(rest) == b"\r\n" + content


@pytest.mark.parametrize("answer", [
    None, "text", {"usage": None}, {"usage": {"output_tokens": 7}}, {"usage": {"prompt_tokens": 0, "total_tokens": 0}},
    {"usage": {"prompt_tokens": "many"}}, {"usage": {"prompt_tokens": True}}, {"usage": [1]},
    {"message": "text", "response": None}, b'data: {"usage": 3}\n', b'data: ["usage"]\n', b"data: [DONE]\n\n",
])  # fmt: skip
def test_what_states_no_input_is_returned_as_it_is(answer):
    assert grown(answer, 2.5) == answer
    assert isinstance(answer, bytes) or grown(answer, 2.5) is answer


@every_format
def test_an_input_that_was_not_cut_leaves_the_object_as_it_is(name):
    answer = {"usage": RAISED[name][0]}
    assert grown(answer, 1.0) is answer


def test_an_input_that_the_cache_served_as_a_whole_grows_too():
    served = {"usage": {"input_tokens": 0, "cache_read_input_tokens": 1_000, "output_tokens": 7}}
    assert grown(served, 2.5)["usage"] == {**served["usage"], "input_tokens": 1_500}


def test_a_text_that_speaks_of_usage_is_no_usage():
    event = {"type": "content_block_delta", "delta": {"usage": {"input_tokens": 5}, "text": 'data: {"usage"'}}
    assert grown(event, 2.5) is event


@pytest.mark.parametrize("kind", [ModelResponse, ModelResponseStream])
def test_litellms_objects_are_copied_with_what_they_hide(kind):
    given = kind(choices=[], usage=Usage(**CHAT), model="a-model")
    given._hidden_params = {"response_cost": 0.5}  # noqa: SLF001 - where LiteLLM keeps it
    before = given.model_dump_json()
    changed = grown(given, 2.5)
    assert (changed.usage.prompt_tokens, changed.usage.total_tokens) == (2_500, 2_507)
    assert changed.usage.prompt_tokens_details.cached_tokens == 900
    assert changed._hidden_params == {"response_cost": 0.5}  # noqa: SLF001
    assert type(changed) is kind
    assert given.model_dump_json() == before
    assert json.loads(changed.model_dump_json(exclude_unset=True))["usage"]["prompt_tokens"] == 2_500


def test_the_last_event_of_a_responses_stream_is_copied_down_to_its_usage():
    response = ResponsesAPIResponse(id="resp_1", created_at=1, output=[], usage=RESPONSES)
    event = ResponseCompletedEvent(type="response.completed", response=response)
    changed = grown(event, 2.5)
    assert (changed.response.usage.input_tokens, changed.response.usage.total_tokens) == (2_500, 2_507)
    assert event.response.usage.input_tokens == response.usage.input_tokens == 1_000


def test_only_a_line_that_may_be_an_event_of_usage_is_waited_for():
    assert unfinished_line(b"data: a\n\n") == b""
    assert unfinished_line(b"data: a\ndata") == b"data"
    long = b"x" * (LONGEST_LINE_BYTES + 1)
    assert unfinished_line(b"data: a\n" + long) == b""


def test_a_line_that_is_too_long_to_read_at_once_goes_on_as_it_is():
    event = {"usageMetadata": GEMINI, "image": "x" * LONGEST_LINE_BYTES}
    line = b"data: " + json.dumps(event).encode() + b"\n\n"
    assert grown(line, 2.5) == line


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
def test_the_use_of_a_tool_that_the_provider_runs_is_seen(answer):
    assert used_hosted_tools(answer)


@pytest.mark.parametrize("answer", [
    responses({"type": "function_call", "id": "f", "call_id": "c", "name": "n", "arguments": "{}", "status": "completed"}),
    {"output": [{"type": "custom_tool_call"}, {"type": "local_shell_call"}]},
    {"content": [{"type": "tool_use", "name": "f"}], "usage": {"server_tool_use": {"web_search_requests": 0}}},
    {"content": [], "usage": {"input_tokens": 9, "server_tool_use": None}},
    ModelResponse(usage=Usage(prompt_tokens=9, completion_tokens=1)), chat(annotations=[]),
    {"candidates": [{"groundingMetadata": {}}]}, None, "text",
], ids=range(9))  # fmt: skip
def test_its_offer_is_no_use(answer):
    assert not used_hosted_tools(answer)
