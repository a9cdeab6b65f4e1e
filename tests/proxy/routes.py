"""The routes, asked the same way."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import httpx
from proxies import Proxy

from ctx_hooks.testing import LOOPBACK, agent_session
from ctx_hooks.testing.gemini import addressed
from ctx_hooks.testing.rules import Format

SIZE = {"turns": 10, "result_chars": 2_500}
"""Of an agent session of about 8,000 tokens."""


@dataclass(frozen=True)
class Route:
    path: str
    fmt: Format
    group: str
    fitted: str
    hopeless: str

    def ask(self, proxy: Proxy, *, group: str | None = None, stream: bool = False, **fields: Any) -> httpx.Response:
        """Send an agent session of about 8,000 tokens."""
        seed, size = fields.pop("seed", 0), fields.pop("size", SIZE)
        headers = fields.pop("headers", None) or proxy.headers
        thinking = self.fmt in ("anthropic", "gemini")
        payload = agent_session(self.fmt, model=group or self.group, seed=seed, thinking=thinking, **size)
        return self.post(proxy, {**payload, "stream": stream, **fields}, headers=headers)

    def post(self, proxy: Proxy, payload: dict[str, Any], *, headers: Mapping[str, str] | None = None) -> httpx.Response:
        """Send a payload as it is; of Google's, model and method stand in the path."""
        path, body = self.path, payload
        if self.fmt == "gemini":
            method, body = addressed(payload, stream=bool(payload.get("stream")))
            path += method
        return LOOPBACK.post(proxy.url + path, json=body, headers=headers or proxy.headers, timeout=300)


def events_of(text: str) -> list[Any]:
    """Return the events of a streamed answer."""
    data = [line[len("data:") :].strip() for line in text.splitlines() if line.startswith("data:")]
    return [json.loads(line) for line in data if line != "[DONE]"]


def size_before(answer: httpx.Response) -> int:
    """Return how many tokens a changed request had as its client sent it, by its header."""
    return int(answer.headers["x-ctx-hooks"].partition("before=")[2].partition(";")[0])


def logged(proxy: Proxy, answer: httpx.Response) -> dict[str, Any]:
    """Return what the loggers of the folder's proxies are told of an answered request."""
    start = f"answered {answer.headers['x-litellm-call-id']} "
    proxy.wait_until(lambda: re.search(f"{start}.*\n", proxy.log()) is not None, start)
    found: dict[str, Any] = json.loads(proxy.log().split(start, 1)[1].split("\n", 1)[0])
    return found


CHAT = Route("/v1/chat/completions", "openai-chat", "chat", "fitted", "hopeless")
MESSAGES = Route("/v1/messages", "anthropic", "claude", "fitted-claude", "hopeless-claude")
MESSAGES_TO_OPENAI = Route("/v1/messages", "anthropic", "chat", "fitted", "hopeless")
RESPONSES = Route("/v1/responses", "openai-responses", "chat", "fitted", "hopeless")
GEMINI = Route("/v1beta/models/", "gemini", "gemini", "fitted-gemini", "hopeless-gemini")
GEMINI_TO_OPENAI = Route("/models/", "gemini", "chat", "fitted", "hopeless")
CURSOR = Route("/cursor/chat/completions", "openai-responses", "cursor-whole", "cursor-known", "hopeless")
"""Takes Responses requests to a chat route, whose proxy and Router write to different metadata; and chat requests."""
ROUTES = (CHAT, MESSAGES, MESSAGES_TO_OPENAI, RESPONSES, GEMINI, GEMINI_TO_OPENAI)
NAMES = ("chat", "messages", "messages-to-openai", "responses", "gemini", "gemini-to-openai")
MODELS = {"messages": "anthropic/claude-served", "gemini": "gemini/served"}
"""The provider's model behind a route that is not translated to OpenAI's chat."""
