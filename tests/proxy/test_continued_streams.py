"""An answer whose stream breaks off goes on at the fallback, which is asked with a fitted history and all that was said."""

import json

import pytest
from answering_server import as_sent, pieces_of
from configurations import CONTINUES_CHAT, deployment
from routes import CHAT, RESPONSES, events_of
from strategies import FIELDS

from ctx_hooks.testing import streams

SAID, REST = "The parser drops the last line because it reads", " until a newline."
MOST_ADDED_CHARS = 1_000
"""What was said, and how LiteLLM asks to go on from there."""
BROKEN = {"error": {"message": "The server had an error", "type": "server_error", "code": "server_error"}}
continues_chat = pytest.mark.skipif(not CONTINUES_CHAT, reason="before 1.109 the Router continues no broken chat stream")


def elsewhere_checked(url):
    for group in ("breaking", "other"):
        yield deployment(url, group, f"openai/{group}", max_input_tokens=8_000, supports_assistant_prefill=True)


@pytest.mark.parametrize("route", [pytest.param(CHAT, marks=continues_chat), RESPONSES], ids=["chat", "responses"])
def test_fallback_continues_stream_with_fitted_history(route, checking, elsewhere):
    """The stream of the model `breaking` ends in an error behind the last text of SAID; the other model answers REST."""
    asked = []

    async def answer(request):
        asked.append(await request.json())
        if asked[-1]["model"] == "other":
            return as_sent(await pieces_of(request, REST))
        lines = await pieces_of(request, SAID)
        end = 1 + max(n for n, line in enumerate(lines) if '"content": ' in line or "output_text.delta" in line)
        return as_sent([*lines[:end], streams.sse({"type": "error", "sequence_number": end, **BROKEN})])

    elsewhere.answer = answer
    told = route.ask(checking, group="breaking", stream=True)
    assert told.status_code == 200, told.text
    assert told.headers["x-ctx-hooks"].startswith("compressed")
    assert [body["model"] for body in asked] == ["breaking", "other"]
    first, second = (body[FIELDS[route.fmt]] for body in asked)
    assert len(json.dumps(second)) < len(json.dumps(first)) + MOST_ADDED_CHARS
    assert SAID in [text_of(item).strip() for item in second[-3:]], "it is whole, and what LiteLLM asks with it is near"
    assert said_to_client(told.text).split() == (SAID + REST).split()


def text_of(item):
    content = item["content"]
    return content if isinstance(content, str) else "".join(part["text"] for part in content)


def said_to_client(text):
    """Return the text that the parts of a stream add up to."""
    events = events_of(text)
    chat = [choice["delta"].get("content") or "" for event in events for choice in event.get("choices", ())]
    return "".join([*chat, *(event["delta"] for event in events if event.get("type") == "response.output_text.delta")])
