"""Routes that the plugin leaves alone on purpose: sent byte for byte, and refused in the provider's words, as without it."""

import json
import re
from dataclasses import dataclass, field
from typing import Any

import pytest
from configurations import deployment
from fastapi import Request
from fastapi.responses import JSONResponse

from ctx_hooks.testing import LOOPBACK

WINDOW = 1_000
LONG = "a quiet word or two " * 1_000
TALK = [{"role": "user", "content": LONG}, {"role": "assistant", "content": "Yes."}, {"role": "user", "content": "Go on."}]
KNOWN = (
    "This model's maximum context length is 1000 tokens. However, your messages resulted in 9000 tokens. Please reduce "
    "the length of the messages."
)
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
    "id": "file-1", "object": "file", "bytes": 9, "created_at": 1, "filename": "b", "purpose": "batch", "status": "uploaded",
}  # fmt: skip
ASKED = {"input_file_id": "file-1", "endpoint": "/v1/chat/completions", "completion_window": "24h"}
BATCH = {"id": "batch-1", "object": "batch", "status": "validating", "created_at": 1, **ASKED}
RECORD = {"custom_id": "1", "method": "POST", "url": "/v1/chat/completions", "body": {"model": "text", "messages": TALK}}
CHANGING = re.compile(rb"[0-9a-f]{32}|[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f-]{22}|(?:cmpl-|resp_)[\w-]+|\"created\": ?\d+")
"""What differs between any two requests or answers: a multipart boundary, ids and times."""


@dataclass
class Recorder:
    """A provider that answers anything, and keeps the bytes that it was sent."""

    refusal: str | None = None
    bodies: list[tuple[str, bytes]] = field(default_factory=list)

    async def answer(self, request: Request) -> JSONResponse:
        path = request.url.path
        self.bodies.append((path, CHANGING.sub(b"*", await request.body())))
        if self.refusal:
            error = {"message": self.refusal, "type": "invalid_request_error", "param": None, "code": None}
            return JSONResponse({"error": error}, 400)
        return JSONResponse(FILE if path.endswith("/files") else BATCH if path.endswith("/batches") else ANSWER)


MODELS = {"text": "openai/served", "translated": "anthropic/served", "vectors": "openai/vectors", "google": "gemini/served"}


def elsewhere_compared(url):
    for group, model in MODELS.items():
        yield deployment(url, group, model, max_input_tokens=WINDOW)


@pytest.fixture
def recorder(elsewhere):
    kept = Recorder()
    elsewhere.answer = kept.answer
    return kept


ROUTES: dict[str, tuple[str, dict[str, Any]]] = {
    "text completion": ("/v1/completions", {"json": {"model": "text", "prompt": LONG, "max_tokens": 5}}),
    "text completion, streamed": ("/v1/completions", {"json": {"model": "text", "prompt": LONG, "stream": True}}),
    "text completion of a chat model": ("/v1/completions", {"json": {"model": "translated", "prompt": LONG}}),
    "count_tokens": ("/v1/messages/count_tokens", {"json": {"model": "translated", "messages": TALK}}),
    "Anthropic pass-through": ("/anthropic/v1/messages", {"json": {"model": "text", "messages": TALK, "max_tokens": 5}}),
    "OpenAI pass-through": ("/openai/chat/completions", {"json": {"model": "text", "messages": TALK}}),
    "OpenAI, streamed": ("/openai/chat/completions", {"json": {"model": "g", "messages": TALK, "stream": True}}),
    "upload of a batch": (
        "/v1/files",
        {"files": {"file": ("b.jsonl", json.dumps(RECORD).encode())}, "data": {"purpose": "batch"}},
    ),
    "batch": ("/v1/batches", {"json": {"model": "text", **ASKED}}),
    "Codex's compaction": ("/v1/responses/compact", {"json": {"model": "text", "input": TALK}}),
    "Google's count": ("/v1beta/models/google:countTokens", {"json": {"contents": [{"parts": [{"text": LONG}]}]}}),
    "embeddings": ("/v1/embeddings", {"json": {"model": "vectors", "input": LONG}}),
}


CASES = [(name, refusal) for n, name in enumerate(ROUTES) for refusal in (None, (KNOWN, UNKNOWN)[n % 2])]


@pytest.mark.parametrize(("name", "refusal"), CASES)
def test_route_without_conversation_stays_litellms(name, refusal, recorder, plain_proxy, proxy):
    path, content = ROUTES[name]
    seen = []
    for asked in (plain_proxy, proxy):
        recorder.refusal = refusal
        recorder.bodies.clear()
        answer = LOOPBACK.post(asked.url + path, headers=asked.headers, timeout=300, **content)
        assert refusal or answer.status_code == 200 or name == "Google's count", answer.text
        seen.append((list(recorder.bodies), answer.status_code, CHANGING.sub(b"*", answer.content)))
        assert "x-ctx-hooks" not in answer.headers
    assert seen[1] == seen[0]
    assert recorder.bodies or "count" in name, "the provider was asked"
    if recorder.bodies and name != "batch":
        assert LONG.encode() in recorder.bodies[-1][1]


def test_conversation_on_same_proxy_is_fitted(recorder, proxy):
    """Else the comparison above would compare nothing."""
    talk = [*TALK, *TALK]
    LOOPBACK.post(
        f"{proxy.url}/v1/chat/completions", json={"model": "text", "messages": talk}, headers=proxy.headers, timeout=300
    )
    assert LONG.encode() not in recorder.bodies[-1][1]
