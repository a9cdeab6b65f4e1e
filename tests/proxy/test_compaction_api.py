"""Requests for compaction are answered for any deployment, and the items open for their tenant alone."""

import json

import httpx
import pytest
from configurations import deployment
from routes import events_of
from websockets.asyncio.client import connect

ON = {"compaction_api": True}
STANDING = "Tune the piano. Never touch the pedals."
TRIGGER = {"type": "compaction_trigger"}
MODELS = {"vllm": "openai/summarising", "claude": "anthropic/claude-summarising"}
KINDS = tuple(MODELS)
TOOLS = [
    {"type": "function", "name": "read_file", "parameters": {"type": "object", "properties": {"path": {"type": "string"}}}}
]


def groups(url):
    for kind, model in MODELS.items():
        yield deployment(url, f"compacting-{kind}", model, ctx_hooks=ON)
        yield deployment(url, f"silent-{kind}", model.replace("summarising", "served"), ctx_hooks=ON)
        yield deployment(url, f"broken-{kind}", model.replace("summarising", "gone"), ctx_hooks=ON)
        yield deployment(url, f"small-{kind}", model, max_input_tokens=4_000, ctx_hooks=ON)
    yield deployment(url, "not-compacting", MODELS["vllm"])
    yield deployment(url, "observing", MODELS["vllm"], ctx_hooks={**ON, "mode": "observe"})


def user(text):
    return {"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]}


def session(exchanges=12, words=120):
    """Return the items of a session of that many calls."""
    items = [user(STANDING)]
    for number in range(exchanges):
        name = f"string_{number}.txt"
        call = {"call_id": f"call_{number}", "name": "read_file", "arguments": json.dumps({"path": name})}
        items += [
            {"type": "function_call", **call},
            {
                "type": "function_call_output",
                "call_id": call["call_id"],
                "output": f"{name}: " + f"tension {number} " * words,
            },
        ]
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
    assert events[-1]["response"]["output"] == [events[-2]["item"]]
    return events[-2]["item"]


def sent_texts(provider):
    """Return the JSON of the newest request that the provider got."""
    return json.dumps(provider.requests()[-1]["payload"])


@pytest.mark.parametrize("stream", [True, False], ids=["streamed", "whole"])
@pytest.mark.parametrize("kind", KINDS)
def test_trigger_is_answered_with_one_item(kind, stream, proxy, provider):
    group = f"compacting-{kind}"
    item = item_of(post(proxy, [*session(), TRIGGER], group, stream=stream), stream=stream)
    assert (item["type"], item["encrypted_content"][:12]) == ("compaction", "ctx_hooks.1.")
    assert STANDING not in item["encrypted_content"]
    assert len(provider.requests()) == 1
    assert "compaction_trigger" not in sent_texts(provider)
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


@pytest.mark.parametrize("kind", KINDS)
def test_third_generation_keeps_instructions(kind, proxy, provider):
    items = session()
    for generation in range(3):
        item = item_of(post(proxy, [*items, TRIGGER], f"{('compacting', 'broken', 'silent')[generation]}-{kind}"))
        items = [item, user(f"Part {generation} is next: keep the humidity at {40 + generation} percent."), *session(6)[1:]]
    post(proxy, items, "compacting-vllm")
    sent = sent_texts(provider)
    for text in (STANDING, "40 percent", "41 percent", "42 percent"):
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


@pytest.mark.parametrize("how", ["forged", "truncated", "flipped", "older", "no base64", "huge"])
def test_changed_item_is_refused(how, proxy, provider):
    item = item_of(post(proxy, [*session(), TRIGGER], "compacting-vllm"))
    provider.reset()
    answer = post(
        proxy, [{**item, "encrypted_content": changed(item["encrypted_content"], how)}, user("Go on.")], "compacting-vllm"
    )
    assert answer.status_code == 400
    assert "compaction item" in answer.text
    assert provider.requests() == []


def test_item_of_another_tenant_is_refused(proxy, provider):
    item = item_of(post(proxy, [*session(), TRIGGER], "compacting-vllm"))
    provider.reset()
    answer = post(proxy, [item, user("Go on.")], "compacting-vllm", team="others")
    assert (answer.status_code, STANDING in answer.text, provider.requests()) == (400, False, [])


def test_item_in_tool_result_stays_text(proxy, provider):
    item = item_of(post(proxy, [*session(), TRIGGER], "compacting-vllm"))
    items = session(1)
    items[-1]["output"] = json.dumps(item)
    post(proxy, items, "compacting-vllm")
    assert item["encrypted_content"] in sent_texts(provider)


def test_provider_s_own_item_stays(proxy, provider):
    post(proxy, [{"type": "compaction", "encrypted_content": "gAAAAB"}, user("Go on.")], "compacting-vllm")
    assert "gAAAAB" in sent_texts(provider)


@pytest.mark.parametrize("group", ["not-compacting", "observing"])
def test_trigger_is_passed_on_without_policy(group, proxy, provider):
    post(proxy, [*session(), TRIGGER], group)
    assert "compaction_trigger" in sent_texts(provider)


def test_nothing_is_stored_of_request_for_compaction(proxy, provider):
    post(proxy, [*session(), TRIGGER], "compacting-vllm", store=True)
    assert provider.requests()[0]["payload"]["store"] is False
