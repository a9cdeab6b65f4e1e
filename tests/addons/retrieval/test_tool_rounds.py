"""What a client is shown while the hidden tool is answered, of answers that no fake provider gives."""

import asyncio
import json

import pytest
from litellm.types.llms.openai import ResponsesAPIResponse

from ctx_hooks.addons.retrieval.answer_forms import event_bytes
from ctx_hooks.addons.retrieval.archive.archive import Archive
from ctx_hooks.addons.retrieval.rounds import Offer, Offers, Rounds
from ctx_hooks.flow.running import Running
from ctx_hooks.litellm_compat.call import request_id_of, with_request_id
from ctx_hooks.litellm_compat.registry import NOTES
from ctx_hooks.policy.addon_settings import ArchiveSettings
from ctx_hooks.store.shared_store import SharedStore
from ctx_hooks.telemetry.events import CallNames
from ctx_hooks.testing import Call, Reply, streams

TOOL = "ctx_retrieve"
ASKED = {"model": "served", "input": "What was it?", "store": False, "tools": [{"type": "function", "name": "read_file"}]}
LOOKS = streams.whole("openai-responses", ASKED, Reply("Let me look.", calls=[Call(TOOL, {"handle": "x"})]), 10, 0)
KNOWS = streams.whole("openai-responses", ASKED, Reply("It was this."), 10, 0)


class Asked:
    """A request of a client that may offer the tool, and the changes of the further calls, which get these answers."""

    def __init__(self, fields, *answers, is_offered=True):
        self.fields = with_request_id(fields)
        self.offers = Offers(Running())
        self.changes = []
        self._left = list(answers)
        self.rounds = Rounds(Archive(SharedStore(), b""), self.offers, self.ask, self.fields)
        if is_offered:
            self.offer()

    def offer(self):
        name = request_id_of(self.fields)
        self.offers.note(name, Offer(ArchiveSettings(), b"tenant", CallNames(name), 100_000))

    @property
    def is_offered(self):
        return self.offers.of(request_id_of(self.fields)) is not None

    async def ask(self, fields, changes):
        self.changes.append(changes)
        called = with_request_id({**fields, **changes, "metadata": None})
        answer = self._left.pop(0)
        if isinstance(answer, Exception):
            raise answer
        return called, came(streams.response_events(answer)) if changes["stream"] else answer

    async def streamed(self, answer):
        return [event async for event in self.rounds.streamed(came(streams.response_events(answer)))]


async def came(events):
    for event in events:
        yield event


async def test_deployment_in_mid_stream_hides_the_tool():
    """Where a stream fails the Router takes another deployment, which is decided about once the stream has begun."""
    asked = Asked(ASKED, KNOWS, is_offered=False)

    async def stream():
        for event in streams.response_events(KNOWS)[:3]:
            yield event
        asked.offer()
        for event in streams.response_events(LOOKS):
            yield event

    found = [event async for event in asked.rounds.streamed(stream())]
    assert TOOL not in json.dumps(found)
    assert found[-1]["type"] == "response.completed"
    assert "It was this." in json.dumps(found[-1])
    assert not asked.is_offered


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

    asked = Asked({**ASKED, "stream": True})
    shown = Rounds(Archive(SharedStore(), b""), asked.offers, ask, asked.fields).streamed(
        came(streams.response_events(LOOKS))
    )
    while not begun.is_set():
        await anext(shown)
    await shown.aclose()
    await asyncio.wait_for(left.wait(), 60)


@pytest.mark.parametrize("ask", [lambda asked: asked.rounds.whole(LOOKS), lambda asked: asked.streamed(LOOKS)])
async def test_failed_further_call_raises_its_error(ask):
    asked = Asked(ASKED, ConnectionError("the model is gone"))
    with pytest.raises(ConnectionError):
        await ask(asked)
    assert not asked.is_offered


OURS, OWN = ({"type": "function", "name": name, "parameters": {}, "strict": None} for name in (TOOL, "read_file"))


@pytest.mark.parametrize("tools", [[OWN, OURS], [OWN], None], ids=["ours", "the client's", "none"])
async def test_answer_without_hidden_calls_loses_only_the_tool(tools):
    unheard = {"type": "unheard", "id": "u"}
    answer = ResponsesAPIResponse(**{**KNOWS, "output": [*KNOWS["output"], unheard], "tools": tools})
    getattr(answer, NOTES.last)["model_id"] = "m"
    shown = await Asked(ASKED).rounds.whole(answer)
    before, after = answer.model_dump(), shown.model_dump()
    assert [tool["name"] for tool in after.pop("tools") or ()] == ["read_file"] * bool(tools)
    assert after == {name: value for name, value in before.items() if name != "tools"}
    assert getattr(shown, NOTES.last) == {"model_id": "m"}
    assert (shown is answer) is (tools is None or OURS not in tools)
    events = await Asked(ASKED).streamed({**KNOWS, "tools": tools})
    assert [event["response"]["tools"] for event in events if "response" in event] == [tools and [OWN]] * 3


HEAD = {"id": "1", "created": 1, "model": "served"}
READ = {"type": "function", "function": {"name": "read_file"}}
CHAT = {"model": "served", "messages": [{"role": "user", "content": "What was it?"}], "tools": [READ]}


UNREADABLE = {"type": "content_block_start", "index": 0, "content_block": ["hi"]}
"""As of a server whose text is no text."""
BLOCKS = [UNREADABLE, {"type": "message_delta", "delta": {"stop_reason": "end_turn"}}, {"type": "message_stop"}]
CHUNKS = [
    {**HEAD, "choices": [{"index": 0, "delta": {"content": "hi"}}]},
    {**HEAD, "choices": [{"index": 0, "delta": {}, "finish_reason": "length"}], "usage": "none"},
]


@pytest.mark.parametrize(("path", "sent"), [("chat/completions", CHUNKS), ("messages", list(map(event_bytes, BLOCKS)))])
async def test_unreadable_stream_reaches_the_client(path, sent):
    asked = Asked({**CHAT, "proxy_server_request": {"url": f"http://proxy/v1/{path}"}})
    assert [chunk async for chunk in asked.rounds.streamed(came(sent))] == sent


async def test_unreadable_answer_reaches_the_client():
    answer = {**HEAD, "choices": ["none"], "usage": {}}
    assert await Asked(CHAT).rounds.whole(answer) == answer
