"""Requests for compaction are answered for any deployment, and the items open for their tenant alone."""

import base64
import json
import re

import httpx
import pytest
from configurations import deployment
from retrieving import FACT
from routes import events_of
from strategies import tool_round
from websockets.asyncio.client import connect

from ctx_hooks.addons.compaction_api import items as own
from ctx_hooks.addons.retrieval.addon import can_call_again
from ctx_hooks.litellm_compat.call import tenant_digest
from ctx_hooks.store import sealing
from ctx_hooks.testing.conversations import read_tool
from ctx_hooks.testing.processes import MASTER_KEY

ON = {"compaction_api": True}
STANDING = "Tune the piano. Never touch the pedals."
TRIGGER = {"type": "compaction_trigger"}
MODELS = {"vllm": "openai/summarising", "claude": "anthropic/claude-summarising"}
KINDS = tuple(MODELS)
CALLERS = {"research-2": {"team_id": "research"}}
TENANT = tenant_digest("team", "research")
TOOLS = [read_tool("openai-responses")]


def groups(url):
    for kind, model in MODELS.items():
        yield deployment(url, f"compacting-{kind}", model, ctx_hooks=ON)
        yield deployment(url, f"silent-{kind}", model.replace("summarising", "served"), ctx_hooks=ON)
        yield deployment(url, f"broken-{kind}", model.replace("summarising", "gone"), ctx_hooks=ON)
        yield deployment(url, f"small-{kind}", model, max_input_tokens=4_000, ctx_hooks=ON)
        seeker = model.replace("summarising", "seeker")
        yield deployment(url, f"seeking-{kind}", seeker, max_input_tokens=4_000, ctx_hooks={**ON, "retrieval": True})
    yield deployment(url, "not-compacting", MODELS["vllm"])
    yield deployment(url, "observing", MODELS["vllm"], ctx_hooks={**ON, "mode": "observe"})


def user(text):
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def session(exchanges=12, words=120, first=0):
    """Return the items of a session of that many calls."""
    items = [user(STANDING)]
    for number in range(first, first + exchanges):
        name = f"string_{number}.txt"
        result = f"{name}: " + f"tension {number} " * words
        items += tool_round("openai-responses", [(f"call_{number}", result)], arguments={"path": name})
    return items


def post(proxy, items, group, *, stream=True, team="research", path="/v1/responses", **fields):
    """Return the answer to a request of Codex's form."""
    body = {"model": group, "input": items, "tools": TOOLS, "instructions": "You tune.", "stream": stream, **fields}
    if path.endswith("compact"):
        body = {"model": group, "input": items, "instructions": "You tune."}
    return httpx.post(f"{proxy.url}{path}", json=body, headers={"Authorization": f"Bearer sk-{team}"}, timeout=60)


def item_of(answer, *, stream=True):
    """Return the only output item of an answer."""
    assert answer.status_code == 200, answer.text
    if not stream:
        (item,) = answer.json()["output"]
        return item
    events = events_of(answer.text)
    kinds = [event["type"] for event in events]
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert kinds[-3:] == ["response.output_item.added", "response.output_item.done", "response.completed"]
    assert [event["sequence_number"] for event in events] == list(range(len(events)))
    assert len({event["response"]["id"] for event in events if "response" in event}) == 1
    assert events[-1]["response"]["output"] == [events[-2]["item"]]
    return events[-2]["item"]


def sent_texts(provider):
    """Return the JSON of the newest request that the provider got."""
    return json.dumps(provider.requests()[-1]["payload"])


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("kind", KINDS)
def test_trigger_is_answered_with_one_item(kind, stream, proxy, provider):
    group = f"compacting-{kind}"
    item = item_of(post(proxy, [*session(), TRIGGER], group, stream=stream, store=True), stream=stream)
    assert (item["type"], item["encrypted_content"][:12]) == ("compaction", "ctx_hooks.1.")
    assert STANDING not in item["encrypted_content"]
    (record,) = provider.requests()
    assert "compaction_trigger" not in sent_texts(provider)
    assert kind == "claude" or record["payload"]["store"] is False, "the client keeps the item"
    answer = post(proxy, [item, user("Go on.")], group)
    assert answer.status_code == 200, answer.text
    sent = sent_texts(provider)
    for text in (STANDING, "use only the silver fork", "string_11.txt", "Go on."):
        assert text in sent
    assert "ctx_hooks.1." not in sent
    assert len(sent) < len(json.dumps(session())) * 0.7


@pytest.mark.parametrize("kind", KINDS)
def test_route_for_compaction_is_answered(kind, proxy, provider):
    answer = post(proxy, session(), f"compacting-{kind}", path="/v1/responses/compact", stream=False)
    assert answer.json()["object"] == "response.compaction", answer.text
    item = item_of(answer, stream=False)
    post(proxy, [item, user("Go on.")], f"compacting-{kind}")
    assert STANDING in sent_texts(provider)


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("group", [f"{name}-{kind}" for name in ("silent", "broken") for kind in KINDS])
def test_record_stands_in_for_missing_summary(group, stream, proxy, provider):
    provider.configure(failing_models=["gone", "claude-gone"])
    item = item_of(post(proxy, [*session(), TRIGGER], group, stream=stream), stream=stream)
    post(proxy, [item, user("Go on.")], "compacting-vllm")
    sent = sent_texts(provider)
    assert STANDING in sent
    assert "A model's summary" not in sent


@pytest.mark.parametrize("kind", KINDS)
def test_request_above_window_is_fitted(kind, proxy, provider):
    item = item_of(post(proxy, [*session(40), TRIGGER], f"small-{kind}"))
    (record,) = provider.requests()
    assert record["status"] == 200
    assert record["input_tokens"] <= 4_000
    post(proxy, [item, user("Go on.")], f"small-{kind}")
    assert "use only the silver fork" in sent_texts(provider)


def edit(number):
    """Return the items of a call that changes a file."""
    call = {"call_id": f"edit_{number}", "name": "write_file"}
    arguments = json.dumps({"path": f"hammers/felt_{number}.py", "content": "felt = 1\n" * 40})
    return [
        {"type": "function_call", **call, "arguments": arguments},
        {"type": "function_call_output", "call_id": call["call_id"], "output": "The file was written."},
    ]


@pytest.mark.parametrize("kind", KINDS)
def test_third_generation_keeps_instructions_and_changed_files(kind, proxy, provider):
    other = next(each for each in KINDS if each != kind)
    items = [*session(), *edit(0), *session(4, first=12)[1:]]
    for generation, group in enumerate((f"compacting-{kind}", f"broken-{other}", f"silent-{kind}"), 1):
        item = item_of(post(proxy, [*items, TRIGGER], group))
        asked = user(f"Part {generation} is next: keep the humidity at {40 + generation} percent.")
        work = [*session(8, first=20 * generation)[1:], *edit(generation), *session(4, first=20 * generation + 8)[1:]]
        items = [item, asked, *work]
    found = session(1, first=90)[1:]
    found[-1]["output"] = "\n".join([*(f"tension {n} of string {n}" for n in range(900)), FACT] * 2)
    items += [*found, *session(8, first=91)[1:], user("question: what was in it?")]
    answer = post(proxy, items, f"seeking-{other}", store=False)
    sent = sent_texts(provider)
    assert answer.status_code == 200, answer.text
    assert FACT in answer.text or not can_call_again()  # an older LiteLLM offers no retrieval
    for text in (STANDING, "41 percent", "42 percent", "43 percent", *(f"hammers/felt_{n}.py" for n in range(4))):
        assert text in sent


async def test_websocket_is_answered(proxy, provider):
    url = f"{proxy.url.replace('http', 'ws')}/v1/responses?model=compacting-claude"
    async with connect(url, additional_headers={"Authorization": "Bearer sk-research"}) as socket:

        async def turn(items):
            await socket.send(json.dumps({"type": "response.create", "model": "compacting-claude", "input": items}))
            events = []
            while not events or events[-1]["type"] not in ("response.completed", "error"):
                events.append(json.loads(await socket.recv()))
            return events

        events = await turn([*session(), TRIGGER])
        (item,) = [event["item"] for event in events if event["type"] == "response.output_item.done"]
        await turn([item, user("Go on.")])
        forged = {**item, "encrypted_content": changed(item["encrypted_content"], "forged")}
        (refused,) = await turn([forged, user("Go on.")])
    assert item["type"] == "compaction"
    assert STANDING in sent_texts(provider)
    assert "use only the silver fork" in sent_texts(provider)
    assert "compaction item" in refused["error"]["message"]


def changed(content, how):
    body = content.removeprefix("ctx_hooks.1.")
    return {
        "forged": "ctx_hooks.1.QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFB",
        "truncated": f"ctx_hooks.1.{body[:-8]}",
        "flipped": f"ctx_hooks.1.{body[:40]}{'A' if body[40] != 'A' else 'B'}{body[41:]}",
        "older": f"ctx_hooks.0.{body}",
        "no base64": f"ctx_hooks.1.{body[:20]}äöü",
        "huge": "ctx_hooks.1." + "A" * 3_000_000,
    }[how]


def test_changed_item_is_refused(proxy, provider):
    item = item_of(post(proxy, [*session(), TRIGGER], "compacting-vllm"))
    provider.reset()
    for how in ("forged", "truncated", "flipped", "older", "no base64", "huge"):
        forged = {**item, "encrypted_content": changed(item["encrypted_content"], how)}
        answer = post(proxy, [forged, user("Go on.")], "compacting-vllm")
        assert (answer.status_code, "compaction item" in answer.text, provider.requests()) == (400, True, []), how


def test_item_opens_for_its_team_only(proxy, provider):
    item = item_of(post(proxy, [*session(), TRIGGER], "compacting-vllm"))
    assert post(proxy, [item, user("Go on.")], "compacting-claude", team="research-2").status_code == 200
    assert STANDING in sent_texts(provider)
    provider.reset()
    answer = post(proxy, [item, user("Go on.")], "compacting-vllm", team="others")
    assert (answer.status_code, STANDING in answer.text, provider.requests()) == (400, False, [])


def item_with(text):
    """Return an item that the proxy takes for its own: it is made with the proxy's key."""
    secret = MASTER_KEY.encode()
    value = sealing.sealed(text, sealing.tenant_key(own.HANDLE, TENANT, secret), own.HANDLE, secret)
    return {"type": "compaction", "encrypted_content": own.VERSION + base64.urlsafe_b64encode(value).decode()}


def test_many_and_huge_items_are_refused(proxy, provider):
    small, large = (item_with(json.dumps([user("tune " * times)])) for times in (2, 20_000_000))
    assert len(large["encrypted_content"]) < 2_000_000
    assert post(proxy, [small, user("Go on.")], "compacting-vllm").status_code == 200
    for items, words in (([large], "cannot be opened"), ([small] * 10_000, "at most 16 compaction items")):
        answer = post(proxy, [*items, user("Go on.")], "compacting-vllm")
        assert (answer.status_code, words in answer.text, len(provider.requests())) == (400, True, 1)


@pytest.mark.parametrize("kind", KINDS)
def test_replayed_item_adds_nothing(kind, proxy, provider):
    group, items = f"compacting-{kind}", session()
    first = item_of(post(proxy, [*items, TRIGGER], group))
    second = item_of(post(proxy, [first, *edit(0), TRIGGER], group))
    for sent in ([first] * 16, [*items, first], [first, *edit(0), second]):
        assert post(proxy, [*sent, user("Go on.")], group).status_code == 200
        assert sent_texts(provider).count(STANDING) == 1


PLACES = {
    "text of a tool result": lambda item: [*session(1)[:-1], {**session(1)[-1], "output": json.dumps(item)}],
    "part of a tool result": lambda item: [
        *session(1)[:-1],
        {**session(1)[-1], "output": [item, *user("Go on.")["content"]]},
    ],
    "part of a message": lambda item: [{**user(""), "content": [item, *user("Go on.")["content"]]}],
}


@pytest.mark.parametrize("place", [*PLACES, "chat"])
@pytest.mark.parametrize("kind", KINDS)
def test_item_or_trigger_elsewhere_does_nothing(kind, place, proxy, provider):
    item = item_of(post(proxy, [*session(), TRIGGER], f"compacting-{kind}"))
    for inner in (item, TRIGGER):
        provider.reset()
        if place == "chat":
            body = {"model": f"compacting-{kind}", "messages": [{"role": "user", "content": "Go on."}, inner]}
            httpx.post(f"{proxy.url}/v1/chat/completions", json=body, headers={"Authorization": "Bearer sk-research"})
        else:
            post(proxy, PLACES[place](inner), f"compacting-{kind}")
        assert "silver fork" not in sent_texts(provider)
        assert "Write a summary" not in sent_texts(provider)


@pytest.mark.parametrize("kind", KINDS)
def test_only_last_trigger_asks_for_compaction(kind, proxy, provider):
    answer = post(proxy, [*session(2), TRIGGER, user("Go on.")], f"compacting-{kind}")
    assert "ctx_hooks.1." not in answer.text
    assert "Write a summary" not in sent_texts(provider)
    item_of(post(proxy, [*session(2), TRIGGER, user("Go on."), TRIGGER], f"compacting-{kind}"))
    assert "compaction_trigger" not in sent_texts(provider)


def test_stored_history_is_compacted_as_far_as_it_is_sent(proxy, provider):
    stored = post(proxy, [user("Tune it.")], "compacting-vllm", stream=False, store=True).json()["id"]
    item = item_of(post(proxy, [*session(), TRIGGER], "compacting-vllm", previous_response_id=stored))
    assert provider.requests()[-1]["payload"]["previous_response_id"]
    post(proxy, [item, user("Go on.")], "compacting-claude")
    assert STANDING in sent_texts(provider)
    assert "use only the silver fork" in sent_texts(provider)


SUMMARY_REQUEST = "Your task is to create a detailed summary of the conversation so far. Do not use any tools."
"""As Claude Code asks for one."""


@pytest.mark.parametrize("path", ["/v1/messages", "/v1/chat/completions"])
@pytest.mark.parametrize("kind", KINDS)
def test_client_s_own_summary_request_is_fitted(kind, path, proxy, provider):
    messages = [{"role": "user", "content": STANDING}]
    for number in range(30):
        messages += [
            {"role": "assistant", "content": f"String {number} is next: " + "tension " * 90},
            {"role": "user", "content": f"Yes, string {number}. " + "Mind the felt. " * 30},
        ]
    messages[-1] = {"role": "user", "content": SUMMARY_REQUEST}
    body = {"model": f"small-{kind}", "max_tokens": 500, "messages": messages}
    answer = httpx.post(f"{proxy.url}{path}", json=body, headers={"Authorization": "Bearer sk-research"}, timeout=60)
    assert answer.status_code == 200, answer.text
    (record,) = provider.requests()
    assert (record["status"], record["input_tokens"] <= 4_000) == (200, True)
    assert SUMMARY_REQUEST in sent_texts(provider)
    assert STANDING in sent_texts(provider)


def test_operator_sees_what_happens_to_items(proxy):
    team = "watched"
    item = item_of(post(proxy, [*session(), TRIGGER], "compacting-vllm", team=team))
    item_of(post(proxy, [*session(), TRIGGER], "silent-vllm", team=team))
    post(proxy, [item, user("Go on.")], "compacting-vllm", team=team)
    forged = {**item, "encrypted_content": changed(item["encrypted_content"], "forged")}
    post(proxy, [forged, user("Go on.")], "compacting-vllm", team=team)
    proxy.wait_until(lambda: f"refused of compacting-vllm for {team}" in proxy.log(), "the last event")
    told = re.findall(f"compaction item (.*) for {team}", proxy.log())
    assert told == [
        "summarised of compacting-vllm",
        "extracted of silent-vllm",
        "opened of compacting-vllm",
        "refused of compacting-vllm",
    ]


@pytest.mark.parametrize(("item", "group"), [
    (TRIGGER, "not-compacting"), (TRIGGER, "observing"),
    ({"type": "compaction", "encrypted_content": "gAAAAB"}, "compacting-vllm"),
], ids=["off", "observed", "of the provider"])  # fmt: skip
def test_foreign_item_and_unwanted_trigger_are_passed_on(item, group, proxy, provider):
    post(proxy, [item, user("Go on."), item], group)
    assert provider.requests()[-1]["payload"]["input"].count(item) == 2
