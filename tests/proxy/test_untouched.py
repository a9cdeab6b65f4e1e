"""Routes that the plugin leaves alone on purpose: sent byte for byte, and refused in the provider's words, as without it."""

import json
import re

import pytest
from configurations import deployment
from fastapi.responses import JSONResponse

from ctx_hooks.testing import LOOPBACK

LONG = "a quiet word or two " * 1_000
TALK = [{"role": "user", "content": LONG}, {"role": "assistant", "content": "Yes."}, {"role": "user", "content": "Go on."}]
KNOWN = "This model's maximum context length is 1000 tokens. However, your messages resulted in 9000 tokens."
UNKNOWN = "Too many input tokens. Max input tokens: 1000, request input token count: 9000"
"""A wording that LiteLLM itself takes for no overflow, so that a change of its kind would show."""
ANSWER = {
    "id": "one", "object": "text_completion", "created": 1, "created_at": 1, "output": [], "model": "served",
    "choices": [{"index": 0, "text": "ok", "finish_reason": "stop", "logprobs": None}],
    "usage": {"prompt_tokens": 3, "completion_tokens": 1, "total_tokens": 4, "input_tokens": 3, "output_tokens": 1},
    "type": "message", "role": "assistant", "content": [{"type": "text", "text": "ok"}], "stop_reason": "end_turn",
    "input_tokens": 7, "data": [{"object": "embedding", "index": 0, "embedding": [0.5]}],
}  # fmt: skip
FILE = {
    "id": "file-1",
    "object": "file",
    "bytes": 9,
    "created_at": 1,
    "filename": "b",
    "purpose": "batch",
    "status": "error",
}
ASKED = {"input_file_id": "file-1", "endpoint": "/v1/chat/completions", "completion_window": "24h"}
BATCH = {"id": "batch-1", "object": "batch", "status": "validating", "created_at": 1, **ASKED}
RECORD = {"custom_id": "1", "method": "POST", "url": "/v1/chat/completions", "body": {"model": "text", "messages": TALK}}
CHANGING = re.compile(rb"[0-9a-f]{32}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}|(?:cmpl-|resp_)[\w-]+|\"created\": ?\d+")
"""What differs between any two requests or answers: a multipart boundary, ids and times."""
MODELS = {"text": "openai/served", "translated": "anthropic/served", "vectors": "openai/vectors", "google": "gemini/served"}
ROUTES = {
    "text completion": ("/v1/completions", {"model": "text", "prompt": LONG, "max_tokens": 5}),
    "text completion, streamed": ("/v1/completions", {"model": "text", "prompt": LONG, "stream": True}),
    "text completion of a chat model": ("/v1/completions", {"model": "translated", "prompt": LONG}),
    "count_tokens": ("/v1/messages/count_tokens", {"model": "translated", "messages": TALK}),
    "Anthropic pass-through": ("/anthropic/v1/messages", {"model": "text", "messages": TALK, "max_tokens": 5}),
    "OpenAI pass-through": ("/openai/chat/completions", {"model": "text", "messages": TALK}),
    "OpenAI, streamed": ("/openai/chat/completions", {"model": "g", "messages": TALK, "stream": True}),
    "upload of a batch": ("/v1/files", {"file": ("b.jsonl", json.dumps(RECORD).encode())}),
    "batch": ("/v1/batches", {"model": "text", **ASKED}),
    "Codex's compaction": ("/v1/responses/compact", {"model": "text", "input": TALK}),
    "Google's count": ("/v1beta/models/google:countTokens", {"contents": [{"parts": [{"text": LONG}]}]}),
    "embeddings": ("/v1/embeddings", {"model": "vectors", "input": LONG}),
}
CASES = [(name, refusal) for n, name in enumerate(ROUTES) for refusal in (None, (KNOWN, UNKNOWN)[n % 2])]


def elsewhere_compared(url):
    return [deployment(url, group, model, max_input_tokens=1_000) for group, model in MODELS.items()]


@pytest.fixture
def sent(elsewhere):
    """The bodies that a server is sent, without what varies; it answers anything, or refuses with the words of `refusal`."""
    found = []

    async def answer(request):
        path = request.url.path
        found.append(CHANGING.sub(b"*", await request.body()))
        if elsewhere.refusal:
            error = {"message": elsewhere.refusal, "type": "invalid_request_error", "param": None, "code": None}
            return JSONResponse({"error": error}, 400)
        return JSONResponse(FILE if path.endswith("/files") else BATCH if path.endswith("/batches") else ANSWER)

    elsewhere.answer, elsewhere.refusal = answer, None
    return found


def post(proxy, path, body):
    """Post JSON, or upload a file."""
    content = {"files": body, "data": {"purpose": "batch"}} if "file" in body else {"json": body}
    return LOOPBACK.post(proxy.url + path, headers=proxy.headers, timeout=300, **content)


@pytest.mark.parametrize(("name", "refusal"), CASES)
def test_route_without_conversation_stays_litellms(name, refusal, sent, elsewhere, plain_proxy, proxy):
    elsewhere.refusal, seen = refusal, []
    for asked in (plain_proxy, proxy):
        sent.clear()
        answer = post(asked, *ROUTES[name])
        assert refusal or answer.status_code == 200 or name == "Google's count", answer.text
        assert "x-ctx-hooks" not in answer.headers
        seen.append((list(sent), answer.status_code, CHANGING.sub(b"*", answer.content)))
    assert seen[1] == seen[0]
    assert sent or "count" in name, "the provider was asked"
    assert not sent or name == "batch" or LONG.encode() in sent[-1]


def test_conversation_on_same_proxy_is_fitted(sent, proxy):
    """Else the comparison above would compare nothing."""
    post(proxy, "/v1/chat/completions", {"model": "text", "messages": [*TALK, *TALK]})
    assert LONG.encode() not in sent[-1]
