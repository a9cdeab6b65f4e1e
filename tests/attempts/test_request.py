"""A request's size bound is one, in both vocabularies and for any JSON; what is fixed beside the messages is counted."""

import base64
import json
import random
import struct
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import CALL_TYPES, FIELDS, every_format, spoken
from work import lines_run

from ctx_hooks.attempts.request import LEAST_THINKING_TOKENS, Request, format_of, request_of
from ctx_hooks.compaction.history import message_stats
from ctx_hooks.errors import MalformedConversationError
from ctx_hooks.testing import agent_session
from ctx_hooks.tokens.counter import Counter


def image(width: int, height: int) -> str:
    header = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + b"IHDR" + struct.pack(">II", width, height) + b"\x08\x02\0\0\0"
    return base64.b64encode(header + random.Random(width).randbytes(900)).decode()


NAMES = (
    "type", "role", "content", "text", "name", "id", "call_id", "tool_use_id", "tool_call_id", "arguments", "input",
    "output", "tool_calls", "function", "function_call", "custom", "source", "data", "image_url", "image", "thinking",
    "reasoning_content", "thinking_blocks", "encrypted_content", "signature", "action", "parameters", "parts",
    "functionCall", "functionResponse", "response", "inlineData", "inline_data", "fileData", "thoughtSignature", "x",
)  # fmt: skip
KINDS = (
    "text", "input_text", "message", "function", "tool_use", "tool_result", "thinking", "redacted_thinking", "image",
    "document", "input_image", "file", "function_call", "function_call_output", "custom_tool_call", "reasoning",
    "computer_call_output", "user", "assistant", "system", "tool", "base64", "audio", "of_tomorrow",
)  # fmt: skip
texts = st.one_of(
    st.sampled_from(KINDS),
    st.text(max_size=60),
    st.text(st.characters(max_codepoint=0x20), max_size=60),
    st.text('"\\\n\x00\x7fé読🙂नเ\ud800', max_size=60),
    st.just("data:image/png;base64,"),
    st.sampled_from(["data:image/png;base64," + image(9_000, 9_000), image(9_000, 6_000), image(3, 8_000)]),
    st.builds(lambda unit, n: unit * n, st.sampled_from(["a-", "読", "\x01", "nä", "0 "]), st.sampled_from([1, 50, 2_000])),
)
numbers = st.integers() | st.floats() | st.integers(min_value=2**300, max_value=2**400)
values = st.recursive(
    texts | numbers | st.none() | st.booleans() | st.lists(st.floats(), max_size=30),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.sampled_from(NAMES) | st.text(max_size=30), inner, max_size=6)
        | st.builds(
            lambda kind, rest: {**rest, "type": kind}, st.sampled_from(KINDS), st.dictionaries(st.sampled_from(NAMES), inner)
        )
    ),
    max_leaves=20,
)
mappings = st.dictionaries(st.sampled_from(NAMES), values, max_size=8)
FIXED = ("tools", "system", "instructions", "functions", "response_format", "text", "systemInstruction", "config")
bodies = st.fixed_dictionaries(
    {"messages": st.lists(mappings, min_size=1, max_size=5)}, optional=dict.fromkeys(FIXED, values)
)


def counted(request, vocabulary):
    counter = Counter(vocabulary)
    index = message_stats(request.messages, counter)
    return sum(m.tokens for m in index) + sum(counter.text(t) for t in request.messages.preamble)


def said(fmt, block):
    return {"role": "user", ("parts" if fmt == "gemini" else "content"): [block]}


def request_with(fmt, body):
    request = request_of(CALL_TYPES[fmt], {**body, FIELDS[fmt]: body["messages"]})
    assert request is not None
    return request


@every_format
@settings(max_examples=12)
@given(body=bodies)
def test_no_request_exceeds_its_bound(fmt, body):
    request = request_with(fmt, body)
    try:
        tokens = max(counted(request, name) for name in ("cl100k_base", "o200k_base"))
    except MalformedConversationError:
        return
    assert request.bound.tokens >= tokens


@every_format
@pytest.mark.parametrize("block", [
    {"type": "of_tomorrow", "data": "\x01" * 5_000},
    {"type": "of_tomorrow", "data": [image(9_000, n) for n in range(6_000, 6_010)]},
    {"type": "of_tomorrow", "data": [{"type": "image", "source": {}}] * 20},
    {"type": "of_tomorrow", "data": [-2.2250738585072014e-308] * 500}, {"type": "of_tomorrow", "data": 2**14_000},
    {"type": "of_tomorrow", "\x01" * 5_000: 1},
    {"functionResponse": {"name": "f", "parts": [{"fileData": {"mimeType": "image/png", "fileUri": "u"}}] * 20}},
], ids=["escapes", "images", "references", "floats", "a long number", "a long name", "Google's references"])  # fmt: skip
def test_bound_covers_costly_characters(fmt, block):
    request = request_with(fmt, {"messages": [said(fmt, block)]})
    assert request.bound.tokens >= counted(request, "cl100k_base")


@pytest.mark.parametrize("text", ["a-" * 700_000, "読" * 1_100_000, "word " * 300_000], ids=["dashes", "CJK", "words"])
def test_bound_covers_estimated_texts(text):
    request = request_with("openai-chat", {"messages": [spoken("openai-chat", "user", text)]})
    assert request.bound.tokens >= counted(request, "o200k_base")


@every_format
def test_bound_of_session_is_near_its_bytes(fmt):
    payload = agent_session(fmt, turns=30, result_chars=2_000)
    request = request_with(fmt, {**payload, "messages": payload[FIELDS[fmt]]})
    assert request.bound.tokens <= 1.5 * len(json.dumps(payload))


HUGE = {
    "one text": {"messages": [{"role": "user", "content": "x" * 1_000_001}]},
    "many messages": {"messages": [{"role": "user", "content": "hi"}] * 100_000},
    "many numbers": {"messages": [{"role": "user", "content": [{"type": "x", "v": [1.5] * 3_000_000}]}]},
    "tools": {"messages": [{"role": "user", "content": "hi"}], "tools": [{"name": "t", "description": "d" * 50_000}] * 600},
}


@pytest.mark.parametrize("body", HUGE.values(), ids=HUGE)
def test_huge_request_is_bounded_quickly(body):
    request = request_with("openai-chat", body)
    assert lines_run(lambda: request.bound) < 200_000  # it looks at 5,000 values
    assert request.bound.tokens > 10_485_760  # the largest window in LiteLLM's list


class Slow:
    """A content that is copied once its event is set."""

    def __init__(self):
        self.goes_on = Event()

    def __deepcopy__(self, _):
        assert self.goes_on.wait(10)
        return "hi"


def test_requests_are_read_beside_each_other():
    slow = Slow()
    waiting, other = (request_with("openai-chat", {"messages": [{"role": "user", "content": x}]}) for x in (slow, "hi"))
    with ThreadPoolExecutor() as threads:
        read = [threads.submit(lambda request=request: request.messages) for request in (waiting, other)]
        assert read[1].result(5).items == [{"role": "user", "content": "hi"}]
        slow.goes_on.set()
    assert read[0].result().items == read[1].result().items


@pytest.mark.parametrize(("messages", "expected"), [
    ([{"content": "x" * 33_000_000}], True), ([{"content": "hi"}] * 200_001, True),
    ([{"role": "user", "content": [{"type": "text", "text": "go on"}]}] * 2_000, False),
    ([{"role": "user", "content": "go on \ud83d"}], False), ([{"role": "user", "content": "go on", "x": 2**70}], False),
], ids=["bytes", "messages", "short messages", "a lone surrogate", "a long number"])  # fmt: skip
def test_only_huge_requests_are_too_large(messages, expected):
    assert request_with("openai-chat", {"messages": messages}).is_too_large == expected


@every_format
def test_response_schemas_are_counted(fmt):
    body = {"messages": [spoken(fmt, "user", "hi")]}
    schema = {"type": "json_schema", "json_schema": {"name": "order", "schema": {"description": "word " * 1_000}}}
    beside = {"generationConfig": {"responseJsonSchema": schema}} if fmt == "gemini" else {"response_format": schema}
    more = counted(request_with(fmt, {**body, **beside}), "o200k_base")
    assert more >= counted(request_with(fmt, body), "o200k_base") + 1_000


def test_tools_are_the_preamble():
    tools = [{"type": "function", "function": {"name": f"tool_{n}", "description": "d"}} for n in range(50)]
    request = request_with("openai-chat", {"messages": [{"role": "user", "content": "hi"}], "tools": tools})
    assert [json.loads(text) for text in request.messages.preamble] == tools
    assert request.messages is request.messages
    assert request.messages.conversation().preamble == request.messages.preamble


def test_endlessly_nested_tools_are_malformed():
    deep: list = []
    for _ in range(100_000):
        deep = [deep]
    request = request_with("openai-chat", {"messages": [{"role": "user", "content": "hi"}], "tools": [{"x": deep}]})
    with pytest.raises(MalformedConversationError):
        request.messages.conversation()


HELLO = {"messages": [{"role": "user", "content": "hi"}]}


class TestALoweredOutput:
    """Anthropic: "`max_tokens` must be greater than `thinking.budget_tokens`", which is at least 1,024."""

    def lowered(self, tokens, fmt="anthropic", **fields):
        request = request_with(fmt, {**HELLO, **fields})
        before = json.dumps(request.fields)
        changes = request.with_output(tokens)
        assert json.dumps(request.fields) == before, "the caller's request stays as it is"
        return changes

    @given(output=st.integers(1, 200_000), budget=st.integers(1_024, 200_000))
    def test_thinking_budget_stays_below_output(self, output, budget):
        thinking = self.lowered(output, thinking={"type": "enabled", "budget_tokens": budget})["thinking"]
        if thinking == {"type": "disabled"}:
            assert output < 2 * LEAST_THINKING_TOKENS
        else:
            assert LEAST_THINKING_TOKENS <= thinking["budget_tokens"] < output
            assert thinking["budget_tokens"] <= budget, "it is never raised"

    def test_thinking_budget_stays_beside_an_answer(self):
        """A changed budget costs the prompt cache; half of the output is left for the answer."""
        large = {"type": "enabled", "budget_tokens": 32_000, "display": "summarized"}
        assert self.lowered(8_000, thinking=large)["thinking"] == {**large, "budget_tokens": 4_000}
        asked = {"type": "enabled", "budget_tokens": 6_000}
        least = Request("anthropic", {"messages": [], "thinking": asked}).least_output_tokens
        assert self.lowered(least, thinking=asked)["thinking"] == asked
        assert self.lowered(least - 1, thinking=asked)["thinking"]["budget_tokens"] < 6_000

    @pytest.mark.parametrize("thinking", [None, {"type": "disabled"}, {"type": "adaptive"}, "on"], ids=str)
    def test_thinking_without_budget_stays(self, thinking):
        fields = {} if thinking is None else {"thinking": thinking}
        assert self.lowered(1_000, **fields) == {"max_tokens": 1_000}

    @pytest.mark.parametrize(("fmt", "given", "name"), [
        ("openai-chat", {"max_completion_tokens": 9_000}, "max_completion_tokens"), ("openai-chat", {}, "max_tokens"),
        ("anthropic", {}, "max_tokens"), ("openai-responses", {}, "max_output_tokens"),
        ("gemini", {}, "config.maxOutputTokens"),
        ("gemini", {"config": {"max_output_tokens": 9_000}}, "config.max_output_tokens"),
        ("gemini", {"generationConfig": {"maxOutputTokens": 9_000}}, "generationConfig.maxOutputTokens"),
    ])  # fmt: skip
    def test_output_is_written_where_it_was_asked_for(self, fmt, given, name):
        *holder, field = name.split(".")
        wanted = {field: 1_000}
        assert self.lowered(1_000, fmt, **given) == ({holder[0]: wanted} if holder else wanted)

    def test_rest_of_configuration_stays(self):
        config = {"temperature": 0.5, "maxOutputTokens": 9_000}
        assert self.lowered(1_000, "gemini", config=config) == {"config": {"temperature": 0.5, "maxOutputTokens": 1_000}}

    @pytest.mark.parametrize(("value", "asked"), [(8_000, 8_000), (0, None), (-1, None), (True, None), ("9", None)])
    def test_requested_output_is_a_positive_number(self, value, asked):
        assert request_with("openai-chat", {**HELLO, "max_tokens": value}).max_output_tokens == asked
        config = {"config": {"maxOutputTokens": value}}
        assert request_with("gemini", {**HELLO, **config}).max_output_tokens == asked


@pytest.mark.parametrize(("fields", "fmt"), [
    ({"proxy_server_request": {"url": "http://proxy/v1/messages/?beta=true"}, "messages": []}, "anthropic"),
    ({"proxy_server_request": {"url": "http://proxy/v1/chat/completions"}, "messages": []}, "openai-chat"),
    ({"input": "hi"}, "openai-responses"),
    ({"proxy_server_request": {"url": "http://proxy/models/m:streamGenerateContent?alt=sse"}}, "gemini"),
    ({"contents": [], "proxy_server_request": {"url": "http://proxy/v1beta/models/m:generateContent"}}, "gemini"),
    ({"input": "hi", "messages": []}, "openai-chat"), ({"proxy_server_request": None}, "openai-chat"),
])  # fmt: skip
def test_route_names_the_callers_format(fields, fmt):
    assert format_of(fields) == fmt


def test_translated_google_request_is_no_second_request():
    chat = {**HELLO, "proxy_server_request": {"url": "http://proxy/v1beta/models/m:generateContent"}}
    assert request_of("acompletion", chat) is None
    assert request_of("acompletion", {**HELLO, "proxy_server_request": {"url": "http://proxy/v1/chat/completions"}})
