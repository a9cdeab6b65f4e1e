"""A further call, which brings what a model has retrieved, ends in an answer: through a real Router, streamed and not."""

import copy
import json
import re

import litellm
import pytest
from litellm.proxy._types import UserAPIKeyAuth

from ctx_hooks.addons.retrieval.addon import further_fields
from ctx_hooks.addons.retrieval.tool import NO_ROOM
from ctx_hooks.hook import CtxHooks
from ctx_hooks.litellm_compat.call import request_id_of, with_request_id
from ctx_hooks.litellm_compat.logged import Figures
from ctx_hooks.runtime import content_cache
from ctx_hooks.testing import Call, ProviderSettings, Reply, agent_session
from ctx_hooks.testing.streams import sse

TOOL = "ctx_retrieve"
HANDLE = re.compile(rf"{TOOL}\(([a-z2-7]{{12}})\)")
WINDOW = 4_000
DONE = "I have read it."
REMOVED = re.compile(r"(\d+) messages were removed here")
OPENING = {
    "id": "1",
    "object": "chat.completion.chunk",
    "created": 1,
    "choices": [{"index": 0, "delta": {"role": "assistant"}}],
}
IN_STREAM = sse(OPENING) + sse({"error": {"message": "MESSAGE", "code": "context_length_exceeded"}})
every_way = pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])


def retrieved(messages):
    """Return what the model has got for its calls of the tool."""
    calls = [call for message in messages for call in message.get("tool_calls") or ()]
    ids = {call["id"] for call in calls if call["function"]["name"] == TOOL}
    return [message["content"] for message in messages if message.get("tool_call_id") in ids]


def asks_for_everything(_, payload, __):
    """Ask for each text that a handle names, once and in parts, then answer."""
    handles = list(dict.fromkeys(HANDLE.findall(json.dumps(payload["messages"]))))
    if retrieved(payload["messages"]) or TOOL not in json.dumps(payload.get("tools", [])):
        return Reply(DONE)
    asked = [{"handle": handle, "offset": n * 100, "limit": 40_000} for n in range(20) for handle in handles]
    return Reply("Let me look.", calls=[Call(TOOL, arguments) for arguments in asked[:14]])


def session(system_words=0):
    fields = agent_session("openai-chat", turns=24, model="model")
    fields["messages"][0]["content"] += " careful" * system_words
    return fields


PROVIDER = (ProviderSettings(window_tokens=WINDOW, windows={"served": WINDOW}), asks_for_everything)


@pytest.fixture
def asked(provider, proxy_router, monkeypatch):
    """Return what a client gets of a proxy's Router, and the requests that the provider got."""

    async def ask(fields, *, stream, stated=WINDOW, refused_body="", **settings):
        content_cache.clear_all()  # each archive has the texts of its own compactions
        provider.reset(window_tokens=WINDOW, refused_body=refused_body)
        policy = {"retrieval": True, "block_below_tokens": 0}
        parameters = {"model": "openai/served", "api_base": f"{provider.url}/v1", "api_key": "none"}
        info = {"id": f"one-{stated}", "max_input_tokens": stated, "ctx_hooks": policy}
        group = {"model_name": "model", "litellm_params": parameters, "model_info": info}
        router = proxy_router(group, num_retries=0, **settings)
        monkeypatch.setattr(litellm, "callbacks", [hooks := CtxHooks()])
        auth = UserAPIKeyAuth(api_key="sk-one")
        data = {**fields, "stream": stream, "metadata": {}}
        sent = await hooks.async_pre_call_hook(auth, None, data, "acompletion")
        answer = await router.acompletion(**sent)
        if stream:
            chunks = [chunk async for chunk in hooks.async_post_call_streaming_iterator_hook(auth, answer, sent)]
            text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
            reason = [c.choices[0].finish_reason for c in chunks if c.choices and c.choices[0].finish_reason]
        else:
            whole = await hooks.async_post_call_success_hook(sent, auth, answer)
            text, reason = whole.choices[0].message.content, [whole.choices[0].finish_reason]
        return text.strip(), reason, provider.requests()

    return ask


@every_way
@pytest.mark.parametrize("checks", [False, True], ids=["", "checked"])
async def test_model_gets_what_the_window_has_room_for(stream, checks, asked):
    text, reason, requests = await asked(session(), stream=stream, enable_pre_call_checks=checks)
    assert text.endswith(DONE)
    assert reason == ["stop"]
    assert [r["status"] for r in requests] == [200, 200]
    got = retrieved(requests[1]["payload"]["messages"])
    assert len(got) == 14
    assert all("the context window has no room for" in page for page in got)
    first, further = [list(map(int, REMOVED.findall(json.dumps(r["payload"]["messages"])))) for r in requests]
    assert sum(further) >= sum(first)
    assert checks or len(first) == len(further) == 1, "what was removed is counted of what the client sent"


@pytest.mark.parametrize(("stream", "refused_body"), [(False, ""), (True, ""), (True, IN_STREAM)])
@pytest.mark.parametrize(("system_words", "ending"), [(2_450, DONE), (3_150, "Let me look.")])
async def test_further_call_that_is_too_long_ends_in_an_answer(stream, refused_body, system_words, ending, asked):
    """Where the texts have no room at all, the model goes on without them, and else the client has what was said.

    So it does where the provider answers 200, opens the stream, and reports the overflow in it.
    """
    text, reason, requests = await asked(session(system_words), stream=stream, refused_body=refused_body)
    assert 400 in [r["status"] for r in requests[1:]]
    assert text.endswith(ending)
    assert reason == ["stop"]
    if ending == DONE:
        assert set(retrieved(requests[-1]["payload"]["messages"])) == {NO_ROOM}


@pytest.mark.parametrize("name", ["metadata", "litellm_metadata"])
def test_further_call_has_only_the_account(name):
    auth = UserAPIKeyAuth(api_key="hashed", team_id="team", budget_reservation={"reserved_cost": 1.0})
    own = {"user_api_key": "hashed", "tags": ["mine"], "spend_logs_metadata": {"own": 1}}
    taken = {"user_api_key_budget_reservation": auth.budget_reservation, "compression_savings": Figures(tokens_saved=5)}
    logged = {"spend_logs_metadata": {"ctx_hooks": Figures(attempt=0), "own": 1}}
    fields = {"model": "group", "messages": [], "litellm_call_id": "first", "litellm_logging_obj": object()}
    metadata = {**own, **taken, **logged, "user_api_key_auth": auth}
    first = with_request_id({**fields, "deployment": object(), name: metadata})
    before = copy.copy(first[name])
    further = further_fields(first, {"stream": True})
    assert further.keys() == {"model", "messages", "stream", "litellm_call_id", name}
    assert further["litellm_call_id"] != "first"
    assert request_id_of(with_request_id(further)) not in ("", request_id_of(first))
    found = further[name]
    assert {field: found[field] for field in own} == own
    assert found.keys().isdisjoint(taken)
    assert found["user_api_key_auth"] == auth.model_copy(update={"budget_reservation": None})
    assert first[name] == before, "the first call is not logged yet"
    assert first[name]["user_api_key_auth"].budget_reservation
    of_another = {"compression_savings": {"tokens_saved": 7}}
    assert further_fields({**first, name: of_another}, {})[name] == of_another
