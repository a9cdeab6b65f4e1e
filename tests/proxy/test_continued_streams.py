"""An answer whose stream breaks off goes on at the fallback, which is asked with a fitted history and all that was said."""

import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from configurations import deployment
from fastapi import Request
from fastapi.responses import StreamingResponse
from litellm_versions import CONTINUES_CHAT
from routes import CHAT, RESPONSES, events_of

from ctx_hooks.testing import Reply, streams

WINDOW = 8_000
SAID = "The parser drops the last line because it reads"
REST = " until a newline."
MOST_ADDED_CHARS = 1_000
"""What was said, and how LiteLLM asks to go on from there."""
BROKEN = {"error": {"message": "The server had an error", "type": "server_error", "code": "server_error"}}


@dataclass
class Provider:
    """Breaks the stream of the model `breaking` off after SAID; any other model answers REST."""

    bodies: list[dict[str, Any]] = field(default_factory=list)

    async def answer(self, request: Request) -> StreamingResponse:
        body = await request.json()
        self.bodies.append(body)
        breaks = body["model"] == "breaking"
        reply = Reply(SAID if breaks else REST)
        if "messages" in body:
            events, last = streams.stream("openai-chat", body, reply, 3, 0), '"content": '
        else:
            events = streams.response_stream(streams.whole("openai-responses", body, reply, 3, 0))
            last = "response.output_text.delta"
        lines = [event async for event in events]
        if breaks:
            end = max(n for n, line in enumerate(lines) if last in line) + 1
            lines[end:] = [streams.sse({"type": "error", "sequence_number": end, **BROKEN})]
        return StreamingResponse(iter(lines), media_type="text/event-stream")


def elsewhere_checked(url):
    for group in ("breaking", "other"):
        yield deployment(url, group, f"openai/{group}", max_input_tokens=WINDOW, supports_assistant_prefill=True)


@pytest.fixture
def continued(checking, elsewhere):
    provider = Provider()
    elsewhere.answer = provider.answer
    return checking, provider


@pytest.mark.parametrize(
    ("route", "items"),
    [
        pytest.param(
            CHAT,
            "messages",
            id="chat",
            marks=pytest.mark.skipif(not CONTINUES_CHAT, reason="before 1.109 the Router continues no broken chat stream"),
        ),
        pytest.param(RESPONSES, "input", id="responses"),
    ],
)
def test_fallback_continues_stream_with_fitted_history(route, items, continued):
    proxy, provider = continued
    answer = route.ask(proxy, group="breaking", stream=True)
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-ctx-hooks"].startswith("compressed")
    assert [body["model"] for body in provider.bodies] == ["breaking", "other"]
    first, second = (body[items] for body in provider.bodies)
    assert len(json.dumps(second)) < len(json.dumps(first)) + MOST_ADDED_CHARS
    assert SAID in [text_of(item).strip() for item in second[-3:]], "it is whole, and what LiteLLM asks with it is near"
    assert said_to_client(answer.text).split() == (SAID + REST).split()


def text_of(item):
    content = item["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def said_to_client(text):
    """Return the text that the parts of a stream add up to."""
    events = events_of(text)
    chat = [choice["delta"].get("content") or "" for event in events for choice in event.get("choices", ())]
    return "".join([*chat, *(event["delta"] for event in events if event.get("type") == "response.output_text.delta")])
