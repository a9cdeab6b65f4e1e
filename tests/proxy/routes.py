"""The three routes, asked the same way."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import httpx

from ctx_hooks.testing import ProxyProcess, agent_session
from ctx_hooks.testing.rules import WireFormat


@dataclass(frozen=True)
class Route:
    path: str
    wire_format: WireFormat
    group: str
    fitted: str
    hopeless: str

    def ask(self, proxy: ProxyProcess, *, group: str | None = None, stream: bool = False, **fields: Any) -> httpx.Response:
        """Send an agent session of about 25,000 tokens."""
        seed = fields.pop("seed", 0)
        headers = fields.pop("headers", None) or proxy.headers
        payload = agent_session(
            self.wire_format, model=group or self.group, seed=seed, thinking=self.wire_format == "anthropic"
        )
        body = {**payload, "stream": stream, **fields}
        return httpx.post(proxy.url + self.path, json=body, headers=headers, timeout=120)

    def post(self, proxy: ProxyProcess, payload: dict[str, Any]) -> httpx.Response:
        """Send a payload as it is."""
        return httpx.post(proxy.url + self.path, json=payload, headers=proxy.headers, timeout=120)


CHAT = Route("/v1/chat/completions", "openai-chat", "chat", "fitted", "hopeless")
MESSAGES = Route("/v1/messages", "anthropic", "claude", "fitted-claude", "hopeless-claude")
MESSAGES_TO_OPENAI = Route("/v1/messages", "anthropic", "chat", "fitted", "hopeless")
RESPONSES = Route("/v1/responses", "openai-responses", "chat", "fitted", "hopeless")
ROUTES = (CHAT, MESSAGES, MESSAGES_TO_OPENAI, RESPONSES)
NAMES = ("chat", "messages", "messages-to-openai", "responses")
