"""One conversation, larger than the window, asked over a route of a real proxy in front of a strict fake provider."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import httpx

from ctx_hooks.testing import LOOPBACK, FakeProvider, ProviderSettings, ProxyProcess, agent_session
from ctx_hooks.testing.counting import count_payload
from ctx_hooks.testing.gemini import addressed
from ctx_hooks.testing.rules import Format

WINDOW_TOKENS = 12_000
PROVIDER = ProviderSettings(window_tokens=WINDOW_TOKENS)
TURNS = 60
RESULT_CHARS = 4_000
TIMEOUT_SECONDS = 120
API_PATHS = {"openai": "/v1", "anthropic": "", "gemini": "/v1beta"}
"""Where each provider of LiteLLM's expects the API, below the fake provider's address."""


@dataclass(frozen=True, slots=True)
class Route:
    """A route of the proxy, the format of its requests, and whose format its deployment has.

    Google's requests name the model and the method behind the path.
    """

    path: str
    fmt: Format
    provider: str


CHAT = Route("/v1/chat/completions", "openai-chat", "OpenAI")
MESSAGES = Route("/v1/messages", "anthropic", "Anthropic")
MESSAGES_TO_OPENAI = Route("/v1/messages", "anthropic", "OpenAI")
RESPONSES = Route("/v1/responses", "openai-responses", "OpenAI")
GOOGLE = Route("/v1beta/models", "gemini", "Google")
GOOGLE_TO_OPENAI = Route("/v1beta/models", "gemini", "OpenAI")


@dataclass(frozen=True, slots=True)
class Asked:
    """What became of a request.

    Attributes:
        sent_tokens: its size, as the provider counts.
        attempts: how often the provider was asked.
        accepted_tokens: the size that the provider has answered; 0 for none.
        text: what was answered; "" for nothing.
    """

    sent_tokens: int
    attempts: int
    accepted_tokens: int
    status: int
    text: str
    body: str
    headers: httpx.Headers

    @property
    def answered(self) -> bool:
        """Whether the provider accepted the request, and its answer reached the client."""
        return self.status == httpx.codes.OK and self.accepted_tokens > 0 and bool(self.text)


def ask(provider: FakeProvider, proxy: ProxyProcess, route: Route, model: str, *, stream: bool = False) -> Asked:
    """Send the conversation, and return what became of it."""
    payload = agent_session(route.fmt, turns=TURNS, result_chars=RESULT_CHARS, model=model)
    path, body = route.path, {**payload, "stream": stream}
    if route.fmt == "gemini":
        method, body = addressed(payload, stream=stream)
        path = f"{path}/{method}"
    provider.reset()
    answer = LOOPBACK.post(f"{proxy.url}{path}", json=body, headers=proxy.headers, timeout=TIMEOUT_SECONDS)
    attempts = provider.requests()
    accepted = [a["input_tokens"] for a in attempts if a["status"] == httpx.codes.OK]
    return Asked(
        count_payload(route.fmt, payload, PROVIDER),
        len(attempts),
        accepted[-1] if accepted else 0,
        answer.status_code,
        _text(answer, stream=stream),
        answer.text,
        answer.headers,
    )


def _text(answer: httpx.Response, *, stream: bool) -> str:
    """Return the answer's text; of a stream, that of its route's events joined."""
    if answer.status_code != httpx.codes.OK:
        return ""
    if not stream:
        return _said(answer.json())
    return "".join(_said(json.loads(line[6:])) for line in answer.text.splitlines() if line.startswith("data: {"))


def _said(body: dict[str, Any]) -> str:
    """Return the text of an answer, or of one event of a stream."""
    if choices := body.get("choices"):
        return (choices[0].get("message") or choices[0]["delta"]).get("content") or ""
    if "candidates" in body:
        blocks = body["candidates"][0]["content"].get("parts") or []
    elif delta := body.get("delta"):
        blocks = [delta if isinstance(delta, dict) else {"text": delta}]
    else:
        blocks = body.get("content") or [b for item in body.get("output", []) for b in item.get("content") or []]
    return "".join(b.get("text") or "" for b in blocks)
