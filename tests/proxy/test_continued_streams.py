"""An answer whose stream breaks off goes on at the fallback, which is asked with a fitted history and all that was said."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from configurations import deployment
from fastapi import Request
from fastapi.responses import StreamingResponse
from litellm_versions import CONTINUES_CHAT
from routes import CHAT, RESPONSES, events_of

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
        events = chat_events if request.url.path.endswith("/chat/completions") else response_events
        text = SAID if breaks else REST
        lines = [f"data: {json.dumps(event)}\n\n" for event in events(text, breaks=breaks)]
        return StreamingResponse(iter(lines), media_type="text/event-stream")


def chat_events(text: str, *, breaks: bool) -> Iterator[dict[str, Any]]:
    whole = {"id": "one", "object": "chat.completion.chunk", "created": 1, "model": "served"}
    yield {**whole, "choices": [{"index": 0, "delta": {"role": "assistant", "content": text}, "finish_reason": None}]}
    yield BROKEN if breaks else {**whole, "choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}


def response_events(text: str, *, breaks: bool) -> Iterator[dict[str, Any]]:
    whole = {"id": "resp_1", "object": "response", "created_at": 1, "model": "served", "status": "in_progress", "output": []}
    place = {"item_id": "m", "output_index": 0, "content_index": 0}
    usage = {"input_tokens": 3, "output_tokens": 1, "total_tokens": 4}
    part = {"type": "output_text", "text": text, "annotations": []}
    item = {"type": "message", "id": "m", "role": "assistant", "status": "completed", "content": [part]}
    yield {"type": "response.created", "sequence_number": 0, "response": whole}
    yield {"type": "response.output_item.added", "sequence_number": 1, "output_index": 0, "item": {**item, "content": []}}
    yield {"type": "response.output_text.delta", "sequence_number": 2, **place, "delta": text, "logprobs": []}
    if breaks:
        yield {"type": "error", "sequence_number": 3, **BROKEN}
    else:
        done = {**whole, "status": "completed", "output": [item], "usage": usage}
        yield {"type": "response.completed", "sequence_number": 3, "response": done}


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
def test_the_fallback_is_asked_with_a_fitted_history_and_all_that_was_said(route, items, continued):
    proxy, provider = continued
    answer = route.ask(proxy, group="breaking", stream=True)
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-ctx-hooks"].startswith("compressed")
    assert [body["model"] for body in provider.bodies] == ["breaking", "other"]
    first, second = (body[items] for body in provider.bodies)
    assert len(json.dumps(second)) < len(json.dumps(first)) + MOST_ADDED_CHARS
    assert SAID in [text_of(item) for item in second[-3:]], "it is whole, and what LiteLLM asks with it is near"
    assert said_to_client(answer.text) == SAID + REST


def text_of(item):
    content = item["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def said_to_client(text):
    """Return the text that the parts of a stream add up to."""
    events = events_of(text)
    chat = [choice["delta"].get("content") or "" for event in events for choice in event.get("choices", ())]
    return "".join([*chat, *(event["delta"] for event in events if event.get("type") == "response.output_text.delta")])
