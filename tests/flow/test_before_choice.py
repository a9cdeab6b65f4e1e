"""With `enable_pre_call_checks` a request is fitted before the Router chooses, and everywhere told as it came."""

import litellm
import pytest
from litellm import Router
from litellm.proxy import proxy_server
from litellm.proxy._types import UserAPIKeyAuth
from waits import until

from ctx_hooks import on
from ctx_hooks.hook import CtxHooks
from ctx_hooks.testing import FakeProvider, ProviderSettings, agent_session

WINDOW = 8_000


@pytest.fixture
def heard():
    events = []
    ends = [on(name, events.append) for name in ("decision", "answer")]
    yield events
    for end in ends:
        end()


@pytest.fixture
def hooks(monkeypatch):
    """The plugin at a proxy whose Router refuses by the stated window before it chooses a deployment."""
    with FakeProvider(ProviderSettings(window_tokens=WINDOW, windows={"served": WINDOW})) as provider:
        parameters = {"model": "openai/served", "api_base": f"{provider.url}/v1", "api_key": "none"}
        info = {"id": "one", "max_input_tokens": WINDOW, "ctx_hooks": {"block_below_tokens": 0}}
        group = {"model_name": "model", "litellm_params": parameters, "model_info": info}
        router = Router([group], num_retries=0, enable_pre_call_checks=True)
        monkeypatch.setattr(proxy_server, "llm_router", router)
        monkeypatch.setattr(litellm, "callbacks", [made := CtxHooks()])
        yield made


async def test_fitted_request_is_reported_as_it_came(hooks, heard):
    session = agent_session("openai-chat", turns=40, model="model")
    sent = await hooks.async_pre_call_hook(
        UserAPIKeyAuth(api_key="sk-one"), None, {**session, "metadata": {}}, "acompletion"
    )
    assert len(sent["messages"]) < len(session["messages"])
    await proxy_server.llm_router.acompletion(**sent)
    await until(lambda: len(heard) == 2)
    decision, answer = heard
    assert (decision.decision, answer.decision, decision.trigger) == ("compressed", "compressed", "budget")
    assert decision.local_tokens_before > WINDOW > decision.local_tokens_after
    assert answer.beyond_window
