"""What observing foretells of a request that is too long, enforcing does: it goes to a fallback, or is compressed."""

import litellm
import pytest
from litellm import DualCache
from litellm.proxy._types import UserAPIKeyAuth
from litellm.proxy.utils import ProxyLogging

import ctx_hooks
from ctx_hooks.hook import CtxHooks
from ctx_hooks.testing import agent_session


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
