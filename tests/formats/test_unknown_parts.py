"""Long texts in parts of unknown or hosted types shrink in every format; their structure stays."""

import json

import pytest
from responses_items import text_of
from strategies import FIELDS, spoken, tool_round

import ctx_hooks
from ctx_hooks.testing import violations

SEARCH = {"type": "search_result", "source": "https://a.org", "title": "A"}
PARTS = {
    "anthropic": {
        "server_tool_use": lambda t: [{"type": "server_tool_use", "id": "srv_1", "name": "bash", "input": {"command": t}}],
        "code_execution_tool_result": lambda t: [
            {
                "type": "code_execution_tool_result", "tool_use_id": "srv_1",
                "content": {"type": "code_execution_result", "stdout": t, "stderr": "", "return_code": 0, "content": []},
            },
        ],
        "mcp_tool_result": lambda t: [
            {"type": "mcp_tool_use", "id": "mcp_1", "name": "search", "server_name": "docs", "input": {}},
            {"type": "mcp_tool_result", "tool_use_id": "mcp_1", "is_error": False, "content": [{"type": "text", "text": t}]},
        ],
        "search_result": lambda t: [{**SEARCH, "content": [{"type": "text", "text": t}]}],
        "of_tomorrow": lambda t: [{"type": "of_tomorrow", "pages": [{"body": t}]}],
    },
    "openai-chat": {
        "refusal": lambda t: [{"type": "refusal", "refusal": t}],
        "of_tomorrow": lambda t: [{"type": "of_tomorrow", "pages": [{"body": t}]}],
    },
    "gemini": {
        "executableCode": lambda t: [{"executableCode": {"language": "PYTHON", "code": t}}],
        "codeExecutionResult": lambda t: [{"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": t}}],
    },
}  # fmt: skip
CASES = [(fmt, kind) for fmt, kinds in PARTS.items() for kind in kinds]


def holding(fmt, parts):
    if fmt == "gemini":
        return {"role": "model", "parts": [{"text": "I look."}, *parts]}
    return {"role": "assistant", "content": [{"type": "text", "text": "I look."}, *parts]}


def form(value):
    """Return how many mappings a value has, and its short texts."""
    return json.dumps(value).count("{"), sorted(leaf for leaf in json.dumps(value).split('"') if len(leaf) < 30)


@pytest.mark.parametrize(("fmt", "kind"), CASES)
def test_long_text_shrinks_in_any_part(fmt, kind):
    parts = PARTS[fmt][kind](text_of(12_000))
    messages = [spoken(fmt, "user", "Begin."), holding(fmt, parts), spoken(fmt, "user", "And now?")]
    sent = ctx_hooks.compress(messages, format=fmt, budget_tokens=2_000)
    assert sent.fits
    assert violations(fmt, {FIELDS[fmt]: sent.messages}) == []
    field = "parts" if fmt == "gemini" else "content"
    kept = [m for m in sent.messages if m["role"] in ("assistant", "model") and isinstance(m[field], list)]
    assert [form(part) for m in kept for part in m[field]][1:] == [form(part) for part in parts]


def test_sealed_and_signed_values_are_never_cut():
    text = text_of(12_000)
    result = {
        "type": "web_search_result",
        "url": "https://a.org",
        "title": "A",
        "encrypted_content": "x" * 900,
        "note": text,
    }
    searched = {"type": "web_search_tool_result", "tool_use_id": "srv_1", "content": [result]}
    signed = {"executableCode": {"language": "PYTHON", "code": text}, "thoughtSignature": "c2ln"}
    for fmt, name, part in (("anthropic", "web_search_result", searched), ("gemini", "executableCode", signed)):
        messages = [spoken(fmt, "user", "Begin."), holding(fmt, [part]), spoken(fmt, "user", "And now?")]
        sent = ctx_hooks.compress(messages, format=fmt, budget_tokens=2_000).messages
        assert all(json.dumps(part) in json.dumps(message) for message in sent if name in json.dumps(message))


def test_google_response_is_cut_beside_its_image():
    image = "data:image/png;base64," + "iVBORw0KGgo" + "Ab1" * 400
    messages = [spoken("gemini", "user", "Begin."), *tool_round("gemini", [("c", "r")])]
    response = messages[-1]["parts"][0]["functionResponse"]
    response["response"] = {"output": text_of(12_000), "shot": image}
    sent = ctx_hooks.compress(messages, format="gemini", budget_tokens=2_000)
    cut = sent.messages[-1]["parts"][0]["functionResponse"]["response"]
    assert cut["shot"] == image
    assert 0 < len(cut["output"]) < 12_000
