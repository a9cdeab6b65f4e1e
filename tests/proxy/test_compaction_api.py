"""Requests for compaction are answered for any deployment, and the items open for their tenant alone."""

import base64
import json
import re

import assembled
import pytest
from configurations import deployment
from retrieving import FACT
from routes import CHAT, RESPONSES, events_of
from strategies import tool_round
from websockets.asyncio.client import connect

from ctx_hooks.addons.compaction_api import items as own
from ctx_hooks.addons.retrieval.addon import can_call_again
from ctx_hooks.litellm_compat.call import tenant_digest
from ctx_hooks.store import sealing
from ctx_hooks.testing import LOOPBACK
from ctx_hooks.testing.conversations import read_tool
from ctx_hooks.testing.processes import MASTER_KEY

ON = {"compaction_api": True}
STANDING, SUMMED, ASKED = "Tune the piano. Never touch the pedals.", "use only the silver fork", "Write a summary"
"""What the user says first, what the model's summary says, and what the model is asked."""
TRIGGER = {"type": "compaction_trigger"}
MODELS = {"vllm": "openai/summarising", "claude": "anthropic/claude-summarising"}
KINDS = tuple(MODELS)
CALLERS = {"research-2": {"team_id": "research"}}
KEY = {"authorization": "Bearer sk-research"}
every_kind = pytest.mark.parametrize("kind", KINDS)


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


GO_ON = user("Go on.")


def session(exchanges=12, first=0):
    """Return the items of a session of that many calls."""
    items = [user(STANDING)]
    for number in range(first, first + exchanges):
        name = f"string_{number}.txt"
        items += called("read_file", f"{name}: " + f"tension {number} " * 120, number, path=name)
    return items


def called(tool, result, number, **arguments):
    return tool_round("openai-responses", [(f"call_{number}", result)], name=tool, arguments=arguments)


def edit(number):
    """Return the items of a call that changes a file."""
    path = f"hammers/felt_{number}.py"
    return called("write_file", "The file was written.", f"edit_{number}", path=path, content="felt = 1\n" * 40)


def post(proxy, items, group, *, way="streamed", team="research", **fields):
    """Return the answer to a request of Codex's form, streamed, whole or on the route for compaction."""
    body = {"model": group, "input": items, "instructions": "You tune.", **fields}
    if way != "route":
        body |= {"tools": [read_tool("openai-responses")], "stream": way == "streamed"}
    path = RESPONSES.path + ("/compact" if way == "route" else "")
    return LOOPBACK.post(f"{proxy.url}{path}", json=body, headers={"authorization": f"Bearer sk-{team}"}, timeout=300)


def item_of(answer):
    """Return the only output item of an answer, whole or of the events that Codex expects."""
    assert answer.status_code == 200, answer.text
    if answer.text.startswith("{"):
        (item,) = answer.json()["output"]
        return item
    (item,) = assembled.responses(events_of(answer.text))["output"]
    return item


def compacted(proxy, group="compacting-vllm", items=(), **fields):
    return item_of(post(proxy, [*(items or session()), TRIGGER], group, **fields))


def texts_sent(provider):
    """Return the JSON of the newest request that the provider got."""
    return json.dumps(provider.requests()[-1]["payload"])


def read_after(item, proxy, provider, group="compacting-vllm"):
    """Return what the provider reads of a conversation that goes on from an item."""
    answer = post(proxy, [item, GO_ON], group)
    assert answer.status_code == 200, answer.text
    return texts_sent(provider)


@pytest.mark.parametrize("way", ["streamed", "whole", "route"])
@every_kind
def test_request_for_compaction_gets_one_item(kind, way, proxy, provider):
    group, items = f"compacting-{kind}", session()
    answer = post(proxy, items if way == "route" else [*items, TRIGGER], group, way=way)
    item = item_of(answer)
    assert (item["type"], item["encrypted_content"][:12]) == ("compaction", "ctx_hooks.1.")
    assert STANDING not in item["encrypted_content"]
    assert way != "route" or answer.json()["object"] == "response.compaction"
    (record,) = provider.requests()
    assert "compaction_trigger" not in texts_sent(provider)
    assert kind == "claude" or record["payload"]["store"] is False, "the client keeps the item"
    sent = read_after(item, proxy, provider, group)
    assert all(text in sent for text in (STANDING, SUMMED, "string_11.txt", "Go on."))
    assert "ctx_hooks.1." not in sent
    assert len(sent) < len(json.dumps(items)) * 0.7


@pytest.mark.parametrize("way", ["streamed", "whole"])
@pytest.mark.parametrize("group", [f"{name}-{kind}" for name in ("silent", "broken") for kind in KINDS])
def test_record_stands_in_for_missing_summary(group, way, proxy, provider):
    provider.configure(failing_models=["gone", "claude-gone"])
    sent = read_after(compacted(proxy, group, way=way), proxy, provider)
    assert (STANDING in sent, "A model's summary" in sent) == (True, False)


@pytest.mark.parametrize("way", ["streamed", "whole"])
def test_state_that_is_too_large_becomes_a_notice(way, proxy, provider):
    """Media of the newest request stay in any compaction, whatever their size."""
    image = {"type": "input_image", "image_url": f"data:image/png;base64,{'iVBORw0K' * 600_000}"}
    asked = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "What is this?"}, image]}
    sent = read_after(compacted(proxy, "compacting-vllm", [*session(), asked], way=way), proxy, provider)
    assert "too large for a compaction item" in sent
    assert (SUMMED in sent, "Go on." in sent, "iVBORw0K" in sent) == (True, True, False)


@every_kind
def test_request_above_window_is_fitted(kind, proxy, provider):
    item = compacted(proxy, f"small-{kind}", session(40))
    (record,) = provider.requests()
    assert (record["status"], record["input_tokens"] <= 4_000) == (200, True)
    assert SUMMED in read_after(item, proxy, provider, f"small-{kind}")


@every_kind
def test_third_generation_keeps_instructions_and_changed_files(kind, proxy, provider):
    other = next(each for each in KINDS if each != kind)
    items = [*session(), *edit(0), *session(4, first=12)[1:]]
    for generation, group in enumerate((f"compacting-{kind}", f"broken-{other}", f"silent-{kind}"), 1):
        asked = user(f"Part {generation} is next: keep the humidity at {40 + generation} percent.")
        first = 20 * generation
        work = [*session(8, first)[1:], *edit(generation), *session(4, first + 8)[1:]]
        items = [compacted(proxy, group, items), asked, *work]
    found = session(1, first=90)[1:]
    found[-1]["output"] = "\n".join([*(f"tension {n} of string {n}" for n in range(900)), FACT] * 2)
    items += [*found, *session(8, first=91)[1:], user("question: what was in it?")]
    answer = post(proxy, items, f"seeking-{other}", store=False)
    sent = texts_sent(provider)
    assert answer.status_code == 200, answer.text
    assert FACT in answer.text or not can_call_again()  # an older LiteLLM offers no retrieval
    for text in (STANDING, "41 percent", "42 percent", "43 percent", *(f"hammers/felt_{n}.py" for n in range(4))):
        assert text in sent


async def test_websocket_is_answered(proxy, provider):
    url = f"{proxy.url.replace('http', 'ws')}/v1/responses?model=compacting-claude"
    async with connect(url, additional_headers=KEY) as socket:

        async def turn(items):
            await socket.send(json.dumps({"type": "response.create", "model": "compacting-claude", "input": items}))
            events = []
            while not events or events[-1]["type"] not in ("response.completed", "error"):
                events.append(json.loads(await socket.recv()))
            return events

        events = await turn([*session(), TRIGGER])
        (item,) = [event["item"] for event in events if event["type"] == "response.output_item.done"]
        await turn([item, GO_ON])
        (refused,) = await turn([forged(item), GO_ON])
    assert item["type"] == "compaction"
    assert all(text in texts_sent(provider) for text in (STANDING, SUMMED))
    assert "compaction item" in refused["error"]["message"]


def forged(item, how="forged"):
    """Return an item whose content somebody has changed."""
    body = item["encrypted_content"].removeprefix("ctx_hooks.1.")
    content = {
        "forged": "ctx_hooks.1." + "QUFB" * 10,
        "truncated": f"ctx_hooks.1.{body[:-8]}",
        "flipped": f"ctx_hooks.1.{body[:40]}{'A' if body[40] != 'A' else 'B'}{body[41:]}",
        "older": f"ctx_hooks.0.{body}",
        "no base64": f"ctx_hooks.1.{body[:20]}äöü",
        "huge": "ctx_hooks.1." + "A" * 3_000_000,
    }
    return {**item, "encrypted_content": content[how]}


def item_with(text):
    """Return an item that the proxy takes for its own: it is made with the proxy's key."""
    secret, tenant = MASTER_KEY.encode(), tenant_digest("team", "research")
    value = sealing.sealed(text, sealing.tenant_key(own.HANDLE, tenant, secret), own.HANDLE, secret)
    return {"type": "compaction", "encrypted_content": own.VERSION + base64.urlsafe_b64encode(value).decode()}


def test_changed_foreign_many_and_huge_items_are_refused(proxy, provider):
    item = compacted(proxy)
    small, large = (item_with(json.dumps([user("tune " * times)])) for times in (2, 20_000_000))
    assert len(large["encrypted_content"]) < 2_000_000
    for lawful, team in ((item, "research-2"), (small, "research")):
        assert post(proxy, [lawful, GO_ON], "compacting-claude", team=team).status_code == 200
    ways = ("forged", "truncated", "flipped", "older", "no base64", "huge")
    refused = {how: ([forged(item, how)], "research", "compaction item") for how in ways}
    refused["of another team"] = ([item], "others", "cannot be opened")
    refused["of 100 MB"], refused["too many"] = (
        ([large], "research", "cannot be opened"),
        ([small] * 10_000, "research", "at most 16"),
    )
    provider.reset()
    for how, (items, team, words) in refused.items():
        answer = post(proxy, [*items, GO_ON], "compacting-vllm", team=team)
        assert (answer.status_code, words in answer.text, STANDING in answer.text) == (400, True, False), how
    assert provider.requests() == []


@every_kind
def test_replayed_item_adds_nothing(kind, proxy, provider):
    group, items = f"compacting-{kind}", session()
    first = compacted(proxy, group, items)
    second = compacted(proxy, group, [first, *edit(0)])
    for sent in ([first] * 16, [*items, first], [first, *edit(0), second]):
        assert post(proxy, [*sent, GO_ON], group).status_code == 200
        assert texts_sent(provider).count(STANDING) == 1


PLACES = {
    "text of a tool result": lambda item: called("read_file", json.dumps(item), 0),
    "part of a tool result": lambda item: called("read_file", [item, *GO_ON["content"]], 0),
    "part of a message": lambda item: [{**GO_ON, "content": [item, *GO_ON["content"]]}],
}


@pytest.mark.parametrize("place", [*PLACES, "chat"])
@every_kind
def test_item_or_trigger_elsewhere_does_nothing(kind, place, proxy, provider):
    group = f"compacting-{kind}"
    for inner in (compacted(proxy, group), TRIGGER):
        provider.reset()
        if place == "chat":
            CHAT.post(proxy, {"model": group, "messages": [{"role": "user", "content": "Go on."}, inner]}, headers=KEY)
        else:
            post(proxy, [user(STANDING), *PLACES[place](inner)], group)
        assert SUMMED not in texts_sent(provider)
        assert ASKED not in texts_sent(provider)


@every_kind
def test_only_last_trigger_asks_for_compaction(kind, proxy, provider):
    group = f"compacting-{kind}"
    answer = post(proxy, [*session(2), TRIGGER, GO_ON], group)
    assert "ctx_hooks.1." not in answer.text
    assert ASKED not in texts_sent(provider)
    compacted(proxy, group, [*session(2), TRIGGER, GO_ON])
    assert "compaction_trigger" not in texts_sent(provider)


def test_stored_history_is_compacted_as_far_as_sent(proxy, provider):
    stored = post(proxy, [user("Tune it.")], "compacting-vllm", way="whole", store=True).json()["id"]
    item = compacted(proxy, previous_response_id=stored)
    assert provider.requests()[-1]["payload"]["previous_response_id"]
    sent = read_after(item, proxy, provider, "compacting-claude")
    assert all(text in sent for text in (STANDING, SUMMED))


def test_operator_sees_what_happens_to_items(proxy):
    item, key = compacted(proxy, team="watched"), {"team": "watched"}
    compacted(proxy, "silent-vllm", **key)
    for sent in (item, forged(item)):
        post(proxy, [sent, GO_ON], "compacting-vllm", **key)
    proxy.wait_until(lambda: "refused of compacting-vllm for watched" in proxy.log(), "the last event")
    told = re.findall("compaction item (.*)-vllm for watched", proxy.log())
    assert told == ["summarised of compacting", "extracted of silent", "opened of compacting", "refused of compacting"]


@pytest.mark.parametrize(("item", "group"), [
    (TRIGGER, "not-compacting"), (TRIGGER, "observing"),
    ({"type": "compaction", "encrypted_content": "gAAAAB"}, "compacting-vllm"),
], ids=["off", "observed", "of the provider"])  # fmt: skip
def test_foreign_item_and_unwanted_trigger_are_passed_on(item, group, proxy, provider):
    post(proxy, [item, GO_ON, item], group)
    assert provider.requests()[-1]["payload"]["input"].count(item) == 2
