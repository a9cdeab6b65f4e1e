"""A request with anything that only the provider can count is told apart, so that its refusal teaches no limit."""

import base64
import random
import struct

import pytest
from strategies import CALL_TYPES, FIELDS

from ctx_hooks.attempts.request import Request, request_of
from ctx_hooks.attempts.sizes import HOSTED_TOOL_TOKENS, uncounted_in
from ctx_hooks.conversation.model import Media
from ctx_hooks.testing import agent_session
from ctx_hooks.tokens.counter import Counter
from ctx_hooks.tokens.media import media_tokens

PIXELS = b"\x89PNG\r\n\x1a\n" + struct.pack(">I", 13) + b"IHDR" + struct.pack(">II", 640, 480) + b"\x08\x02\0\0\0"
PNG = base64.b64encode(PIXELS + random.Random(1).randbytes(3_000)).decode()
PDF = base64.b64encode(b"%PDF-1.7" + random.Random(2).randbytes(3_000)).decode()
SEALED = base64.urlsafe_b64encode(random.Random(3).randbytes(3_000)).decode()
ANTHROPIC_TOOL = {"name": "f", "description": "d", "input_schema": {"type": "object", "title": "file_id"}}


def uncounted(fmt, fields=(), item=None):
    payload = {**agent_session(fmt, turns=2), **dict(fields)}
    name = FIELDS[fmt]
    request = request_of(CALL_TYPES[fmt], {**payload, name: [*payload[name], *([item] if item else [])]})
    return uncounted_in(request)


def said(*blocks):
    return {"role": "user", "content": list(blocks)}


def image(url):
    return {"type": "image_url", "image_url": {"url": url}}


def source(kind, **fields):
    return {"type": "base64", "media_type": kind, **fields}


@pytest.mark.parametrize("fmt", CALL_TYPES)
def test_session_of_texts_is_wholly_counted(fmt):
    assert not uncounted(fmt).holds_any


@pytest.mark.parametrize(("fmt", "fields"), [
    ("openai-responses", {"previous_response_id": "resp_1"}), ("openai-responses", {"conversation": "conv_1"}),
    ("openai-responses", {"prompt": {"id": "pmpt_1"}}),
    ("openai-responses", {"tools": [{"type": "function", "name": "f"}, {"type": "mcp", "server_url": "u"}]}),
    ("openai-chat", {"web_search_options": {}}), ("gemini", {"tools": [{"retrieval": {"vertexRagStore": {}}}]}),
    ("anthropic", {"tools": [{"type": "mcp_toolset", "mcp_server_name": "m"}]}),
    ("anthropic", {"mcp_servers": [{"type": "url", "url": "u"}]}), ("anthropic", {"container": "c"}),
    ("gemini", {"cachedContent": "cachedContents/1"}),
    ("gemini", {"systemInstruction": {"parts": [{"fileData": {"fileUri": "https://example.org/a.pdf"}}]}}),
], ids=str)  # fmt: skip
def test_stored_and_added_content_is_uncounted(fmt, fields):
    assert uncounted(fmt, fields).holds_any


@pytest.mark.parametrize(("fmt", "item"), [
    ("openai-chat", said(image("https://example.org/a.png"))),
    ("openai-chat", said({"type": "input_audio", "input_audio": {"data": PDF, "format": "wav"}})),
    ("openai-chat", said({"type": "from_the_future", "inline_data": {"mime_type": "video/mp4", "data": PDF}})),
    ("anthropic", said({"type": "image", "source": {"type": "file", "file_id": "file_1"}})),
    ("anthropic", said({"type": "document", "source": source("application/pdf", data=PDF)})),
    ("anthropic", said({"type": "tool_result", "tool_use_id": "u", "content": [{"type": "document", "source": {}}]})),
    ("openai-responses", {"type": "item_reference", "id": "msg_1"}),
    ("openai-responses", {"type": "compaction", "encrypted_content": SEALED}),
    ("openai-responses", {"type": "image_generation_call", "id": "ig", "result": PNG}),
    ("openai-responses", {"type": "web_search_call", "id": "ws", "status": "completed"}),
    ("openai-responses", said({"type": "input_file", "file_url": "https://example.org/a.pdf"})),
    ("openai-responses", {"type": "some_output", "call_id": "c", "output": {"blob": PDF}}),
    ("gemini", {"role": "user", "parts": [{"inlineData": {"mimeType": "application/pdf", "data": PDF}}]}),
    ("gemini", {"role": "user", "parts": [{"file_data": {"file_uri": "https://example.org/a.mp4"}}]}),
], ids=str)  # fmt: skip
def test_referenced_or_sealed_content_is_uncounted(fmt, item):
    assert uncounted(fmt, item=item).holds_any


@pytest.mark.parametrize(("fmt", "fields", "item"), [
    ("openai-chat", {}, said(image("data:image/png;base64," + PNG))),
    ("anthropic", {}, said({"type": "image", "source": source("image/png", data=PNG)})),
    (
        "openai-responses", {},
        {
            "type": "computer_call_output",
            "output": {"type": "computer_screenshot", "image_url": "data:image/png;base64," + PNG},
        },
    ),
    ("openai-chat", {}, said({"type": "text", "text": PDF})),
    ("anthropic", {}, said({"type": "document", "source": {"type": "text", "data": "the plan"}})),
    ("openai-responses", {}, {"type": "function_call_output", "call_id": "c", "output": PDF}),
    (
        "anthropic", {},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "u", "name": "f", "input": {"file_id": "x"}}]},
    ),
    ("anthropic", {"tools": [ANTHROPIC_TOOL, {**ANTHROPIC_TOOL, "type": "custom"}]}, None),
    ("openai-responses", {"tools": [{"type": "namespace", "name": "n", "tools": [{"type": "function"}]}]}, None),
    ("openai-chat", {"tools": [{"functionDeclarations": [{"name": "f"}]}]}, None),
    ("gemini", {}, {"role": "user", "parts": [{"inlineData": {"mimeType": "image/png", "data": PNG}}]}),
    ("gemini", {}, {"role": "model", "parts": [{"functionCall": {"name": "f"}, "thoughtSignature": SEALED}]}),
    ("anthropic", {}, {"role": "assistant", "content": [{"type": "redacted_thinking", "data": SEALED}]}),
    ("openai-responses", {}, {"type": "reasoning", "id": "rs", "summary": [], "encrypted_content": SEALED}),
], ids=str)  # fmt: skip
def test_known_sizes_are_counted(fmt, fields, item):
    """So is sealed reasoning, as a guess; else no overflow of coding agents, which always send it, would teach anything."""
    assert not uncounted(fmt, fields, item).holds_any


@pytest.mark.parametrize(("fmt", "fields"), [
    ("openai-responses", {"tools": [{"type": "web_search_preview"}]}),
    ("openai-responses", {"tools": [{"type": "image_generation"}]}), ("openai-chat", {"tools": [{"googleSearch": {}}]}),
    ("anthropic", {"tools": [ANTHROPIC_TOOL, {"type": "web_search_20250305", "name": "web_search"}]}),
    ("anthropic", {"tools": [{"type": "bash_20250124", "name": "bash"}]}),
    ("gemini", {"tools": [{"functionDeclarations": [{"name": "f"}]}, {"codeExecution": {}}]}),
], ids=str)  # fmt: skip
def test_offered_hosted_tool_has_bounded_size(fmt, fields):
    """Coding agents offer the provider's search in every request: their refusals have to teach as others do."""
    assert not uncounted(fmt, fields).holds_any
    assert uncounted_in(Request(fmt, fields)).tools_tokens == HOSTED_TOOL_TOKENS
    assert uncounted_in(Request("anthropic", {"tools": [ANTHROPIC_TOOL, {"type": "function"}]})).tools_tokens == 0


def test_resent_sealed_reasoning_is_unbilled():
    def unbilled(fmt, item):
        return uncounted(fmt, item=item).holds_unbilled

    assert unbilled("openai-responses", {"type": "reasoning", "summary": [], "encrypted_content": SEALED})
    assert not unbilled("openai-responses", {"type": "reasoning", "summary": []})
    assert not unbilled("anthropic", {"role": "assistant", "content": [{"type": "redacted_thinking", "data": SEALED}]})


def test_sealed_reasoning_is_bounded_in_any_language():
    """Its text has more than 3.4 bytes a token, and is encrypted with 650 bytes more."""
    english = "Now call read_file(path) and check what it returns. "
    for text in (english * 900, "今天的日志没有错误,可以继续。" * 900, "ログに誤りはないので、次に進む。" * 900):
        sealed = base64.urlsafe_b64encode(random.Random(5).randbytes(len(text.encode()) + 650)).decode()
        local = Counter("o200k_base").text(text)
        assert media_tokens(Media("sealed", len(sealed), raw=sealed), "openai-responses") >= local
