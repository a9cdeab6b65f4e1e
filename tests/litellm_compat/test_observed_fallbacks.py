"""What observing foretells of a request that is too long, enforcing does: it goes to a fallback, or is compressed.

It counts a refusal inside an answer with status 200 as any other.
"""

import json

import litellm
import pytest
from litellm import DualCache
from litellm.proxy._types import UserAPIKeyAuth
from litellm.proxy.utils import ProxyLogging

import ctx_hooks
from ctx_hooks.hook import CtxHooks
from ctx_hooks.testing import FakeProvider, ProviderSettings, agent_session


def deployment(group, window):
    params = {"model": f"openai/{group}", "api_key": "k", "mock_response": "fine"}
    return {"model_name": group, "litellm_params": params, "model_info": {"max_input_tokens": window}}


@pytest.fixture
def decided(proxy_router, monkeypatch):
    """Return the model, decision and reason of each attempt at a long request to `small`."""

    async def ask(mode, window, **policy):
        fallbacks = [{"small": ["big"]}]
        router = proxy_router(deployment("small", 4_000), deployment("big", window), context_window_fallbacks=fallbacks)
        settings = {"ctx_hooks": {"defaults": {"mode": mode, "block_below_tokens": 0, **policy}}}
        monkeypatch.setattr(litellm, "callback_settings", settings, raising=False)
        monkeypatch.setattr(litellm, "callbacks", [CtxHooks()])
        told = []
        end = ctx_hooks.on("decision", lambda e: told.append((e.call.model_group, e.decision, e.reason)))
        session = agent_session("openai-chat", turns=8, result_chars=3_200)
        data = {**session, "model": "small", "metadata": {}, "litellm_call_id": f"{mode} {window}"}
        proxy = ProxyLogging(user_api_key_cache=DualCache())
        sent = await proxy.pre_call_hook(UserAPIKeyAuth(api_key="sk-one"), data, "acompletion")
        await router.acompletion(**sent)
        end()
        return told

    return ask


@pytest.mark.parametrize(("window", "policy", "foretold", "done"), [
    (500_000, {}, ("fallback", "big gets all of it"), ("small", "fallback")),
    (5_000, {}, ("compressed", ""), ("small", "compressed")),
    (500_000, {"fallbacks": "last"}, ("compressed", ""), ("small", "compressed")),
], ids=["holds", "does not hold", "last"])  # fmt: skip
async def test_observe_foretells_where_a_long_request_goes(window, policy, foretold, done, decided):
    ((group, *observed),) = await decided("observe", window, **policy)
    assert (group, tuple(observed)) == ("small", foretold)
    ((*enforced, _),) = await decided("enforce", window, **policy)
    assert tuple(enforced) == done


OPENED = {"index": 0, "delta": {"role": "assistant"}}
CHUNK = {"id": "1", "object": "chat.completion.chunk", "created": 1, "choices": [OPENED]}
REFUSED = {
    "status 400": "",
    "json": json.dumps({"code": "InvalidParameter", "message": "MESSAGE", "request_id": "r"}),
    "event": 'data: {"error": {"message": "MESSAGE", "code": "context_length_exceeded"}}\n\n',
    "unknown event": 'data: {"error_type": "context_length_exceeded", "error_message": "MESSAGE"}\n\ndata: [DONE]\n\n',
    "late event": f"data: {json.dumps(CHUNK)}\n\nevent: error\ndata: MESSAGE\n\n",
}


@pytest.mark.parametrize("form", REFUSED)
async def test_observe_counts_each_refusal_once(form, proxy_router, monkeypatch):
    with FakeProvider(ProviderSettings(window_tokens=1_000, refused_body=REFUSED[form])) as provider:
        served = deployment("served", 200_000)
        served["litellm_params"] = {"model": "openai/served", "api_key": "k", "api_base": f"{provider.url}/v1"}
        router = proxy_router(served, num_retries=0)
        monkeypatch.setattr(litellm, "callback_settings", {"ctx_hooks": {"defaults": {"mode": "observe"}}}, raising=False)
        monkeypatch.setattr(litellm, "callbacks", [CtxHooks()])
        told = []
        end = ctx_hooks.on("overflow", told.append)
        session = agent_session("openai-chat", turns=4, model="served")
        data = {**session, "metadata": {}, "litellm_call_id": form, "stream": True}
        proxy, auth = ProxyLogging(user_api_key_cache=DualCache()), UserAPIKeyAuth(api_key="sk-one")
        sent = await proxy.pre_call_hook(auth, data, "acompletion")
        try:
            async for _ in await router.acompletion(**sent):
                pass
        except Exception as error:  # noqa: BLE001 - LiteLLM's own differ from form to form
            await proxy.post_call_failure_hook(request_data=sent, original_exception=error, user_api_key_dict=auth)
        end()
        assert [event.limit_tokens for event in told] == [1_000]
        assert [r["status"] for r in provider.requests()] == [400]
