"""What a client is shown while the hidden tool is answered, of answers that no fake provider gives."""

import asyncio
import json

import pytest
from litellm.types.llms.openai import ResponsesAPIResponse

from ctx_hooks.addons.retrieval.answer_forms import HIDDEN, event_bytes
from ctx_hooks.addons.retrieval.tool_rounds import ToolRounds
from ctx_hooks.litellm_compat.call import request_id_of
from ctx_hooks.litellm_compat.identity import with_request_id
from ctx_hooks.policy.addon_settings import ArchiveSettings
from ctx_hooks.serving.running import Running
from ctx_hooks.testing import Call, Reply, streams

TOOL = "ctx_retrieve"
ARCHIVE = ArchiveSettings()
ASKED = {"model": "served", "input": "What was it?", "store": False, "tools": [{"type": "function", "name": "read_file"}]}
LOOKS = streams.whole("openai-responses", ASKED, Reply("Let me look.", calls=[Call(TOOL, {"handle": "x"})]), 10, 0)
KNOWS = streams.whole("openai-responses", ASKED, Reply("It was this."), 10, 0)


class Texts:
    """What answers the tool: one text, kept for the requests that are named."""

    def __init__(self, *offered):
        self.offered = set(offered)
        self.asked = []
        self.arguments = []

    def offer(self, request_id):
        return request_id if request_id in self.offered else None

    async def answers(self, request_id, calls):
        self.asked += [request_id] * len(calls)
        self.arguments += calls
        return calls

    def forget(self, request_id):
        self.offered.discard(request_id)


def rounds_of(texts, *answers):
    """Return the rounds of requests whose further calls get these answers."""
    left = list(answers)

    async def ask(fields, changes):
        called = with_request_id({**fields, **changes, "metadata": None})
        answer = left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return called, came(streams.response_events(answer)) if changes["stream"] else answer

    running = Running()
    return ToolRounds(texts, ask, running)


def offered(asked):
    """Return the fields of a request that the tool was offered to, and what answers the tool."""
    fields = with_request_id(asked)
    return fields, Texts(request_id_of(fields))


async def came(events):
    for event in events:
        yield event


async def take(stream, found):
    async for event in stream:
        found.append(event)


async def seen(rounds, fields, answer):
    return [event async for event in rounds.streamed(fields, came(streams.response_events(answer)))]


async def test_deployment_in_mid_stream_hides_the_tool():
    """Where a stream fails the Router takes another deployment, which is decided about once the stream has begun."""
    fields = with_request_id(ASKED)
    texts = Texts()

    async def stream():
        for event in streams.response_events(KNOWS)[:3]:
            yield event
        texts.offered.add(request_id_of(fields))
        for event in streams.response_events(LOOKS):
            yield event

    found = [event async for event in rounds_of(texts, KNOWS).streamed(fields, stream())]
    assert TOOL not in json.dumps(found)
    assert found[-1]["type"] == "response.completed"
    assert "It was this." in json.dumps(found[-1])
    assert texts.offered == set()


async def test_further_answer_may_ask_again():
    """A further request that was fitted before its deployment was chosen has the tool from the one before."""
    for is_stream in (False, True):
        fields, texts = offered({**ASKED, "stream": is_stream})
        rounds = rounds_of(texts, LOOKS, KNOWS)
        answer = await seen(rounds, fields, LOOKS) if is_stream else await rounds.whole(fields, LOOKS)
        assert "It was this." in json.dumps(answer)
        assert texts.asked == [request_id_of(fields)] * 2


async def test_failed_further_call_keeps_what_was_said():
    """Whole it is marked as cut off; of a stream nothing is taken back, and the error follows."""
    broken = ConnectionError("the model is gone")
    for is_stream in (False, True):
        fields, texts = offered({**ASKED, "stream": is_stream})
        rounds = rounds_of(texts, LOOKS, broken)
        if is_stream:
            found = []
            with pytest.raises(ConnectionError):
                await take(rounds.streamed(fields, came(streams.response_events(LOOKS))), found)
            assert [event["sequence_number"] for event in found] == list(range(len(found)))
            items = [e["item"] for e in found if e["type"] == "response.output_item.done"]
            assert found[-1]["type"] == "response.output_item.done"
        else:
            found = await rounds.whole(fields, LOOKS)
            items = found["output"]
            assert (found["status"], found["incomplete_details"]) == ("incomplete", {"reason": "max_output_tokens"})
            assert found["usage"]["input_tokens"] == 20
        assert [item["type"] for item in items] == ["message", "message"]
        assert TOOL not in json.dumps(found)
        assert texts.offered == set()


async def test_leaving_client_ends_the_further_call():
    begun, left = asyncio.Event(), asyncio.Event()

    async def further():
        try:
            for event in streams.response_events(KNOWS):
                begun.set()
                yield event
        finally:
            left.set()

    async def ask(fields, changes):
        return with_request_id({**fields, **changes, "metadata": None}), further()

    fields, running = with_request_id({**ASKED, "stream": True}), Running()
    rounds = ToolRounds(Texts(request_id_of(fields)), ask, running)
    shown = rounds.streamed(fields, came(streams.response_events(LOOKS)))
    while not begun.is_set():
        await anext(shown)
    await shown.aclose()
    await asyncio.wait_for(left.wait(), 60)


@pytest.mark.parametrize("size", [1, 1_000_000])
async def test_arguments_of_any_size_reach_the_tool(size):
    arguments = {"handle": "x" * size}
    looks = streams.whole("openai-responses", ASKED, Reply("Let me look.", calls=[Call(TOOL, arguments)]), 10, 0)
    fields, texts = offered(ASKED)
    found = await seen(rounds_of(texts, KNOWS), fields, looks)
    assert len(json.dumps(found)) < 20_000
    assert [event["sequence_number"] for event in found] == list(range(len(found)))
    assert json.loads(texts.arguments[0]) == arguments


OURS, OWN = ({"type": "function", "name": name, "parameters": {}, "strict": None} for name in (TOOL, "read_file"))


@pytest.mark.parametrize("tools", [[OWN, OURS], [OWN], None], ids=["ours", "the client's", "none"])
async def test_answer_without_hidden_calls_loses_only_the_tool(tools):
    unheard = {"type": "unheard", "id": "u", "detail": None}
    answer = ResponsesAPIResponse(
        **{**KNOWS, "output": [*KNOWS["output"], unheard], "safety_identifier": None, "tools": tools}
    )
    getattr(answer, HIDDEN)["model_id"] = "m"
    fields, texts = offered(ASKED)
    shown = await rounds_of(texts).whole(fields, answer)
    before, after = answer.model_dump(), shown.model_dump()
    assert [tool["name"] for tool in after.pop("tools") or ()] == ["read_file"] * bool(tools)
    assert after == {name: value for name, value in before.items() if name != "tools"}
    assert getattr(shown, HIDDEN) == {"model_id": "m"}
    assert (shown is answer) is (tools is None or OURS not in tools)


HEAD = {"id": "1", "created": 1, "model": "served"}
CALLS = [{"index": 0, "id": "a", "type": "function", "function": {"name": TOOL, "arguments": "{}"}}]
READ = {"type": "function", "function": {"name": "read_file"}}
CHAT = {"model": "served", "messages": [{"role": "user", "content": "What was it?"}], "tools": [READ]}


async def test_unreadable_end_reaches_the_client():
    text = {**HEAD, "choices": [{"index": 0, "delta": {"content": "hi"}}]}
    end = {**HEAD, "choices": [{"index": 0, "delta": {}, "finish_reason": "length"}], "usage": "none"}
    fields, texts = offered(CHAT)
    assert [chunk async for chunk in rounds_of(texts).streamed(fields, came([text, end]))] == [text, end]


async def test_unreadable_text_stream_reaches_the_client():
    """As of a server whose text is no text: the events that say why the answer ended are not lost."""
    start = {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ["hi"]}}
    delta = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "!"}}
    end = [{"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, {"type": "message_stop"}]
    fields, texts = offered({**CHAT, "proxy_server_request": {"url": "http://proxy/v1/messages"}})
    sent = [event_bytes(event) for event in (start, delta, *end)]
    assert [chunk async for chunk in rounds_of(texts).streamed(fields, came(sent))] == sent


async def test_unreadable_answer_reaches_the_client():
    answer = {**HEAD, "choices": ["none"], "usage": {}}
    fields, texts = offered(CHAT)
    assert await rounds_of(texts).whole(fields, answer) == answer
