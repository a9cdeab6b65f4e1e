"""Two workers that answer one conversation in turn: what one was refused, the other does not send."""

import litellm
import pytest
from litellm.proxy._types import UserAPIKeyAuth
from redis_process import RedisProcess
from waits import until

from ctx_hooks.hook import CtxHooks
from ctx_hooks.serving.request_flow import RequestFlow
from ctx_hooks.store import shared_store
from ctx_hooks.testing import FakeProvider, ProviderSettings, agent_session

WINDOW = 12_000
PATIENT_SECONDS = 30.0
"""A command may take so long here: a busy machine is no broken Redis."""


@pytest.fixture
def provider():
    with FakeProvider(ProviderSettings(window_tokens=WINDOW)) as running:
        yield running


@pytest.fixture
def router(provider, proxy_router, monkeypatch):
    """Install a proxy's Router with a real Redis, whose deployment states a window that is too large."""
    monkeypatch.setattr(shared_store, "HURRY_SECONDS", PATIENT_SECONDS)
    monkeypatch.setattr(shared_store, "SLOW_SECONDS", PATIENT_SECONDS)
    parameters = {"model": "openai/served", "api_base": f"{provider.url}/v1", "api_key": "none"}
    info = {"id": "one", "max_input_tokens": 200_000}
    deployment = {"model_name": "group", "litellm_params": parameters, "model_info": info}
    with RedisProcess() as redis:
        made = proxy_router(deployment, num_retries=0, redis_host="127.0.0.1", redis_port=redis.port)
        monkeypatch.setattr(litellm, "callbacks", [CtxHooks()])
        yield made


async def answer_noted(learned):
    """Return whether the answer to the retry is noted: LiteLLM logs it behind the answer."""
    (stats,) = [await learned.of(name) for name in list(learned._deployments)]  # noqa: SLF001 - which there are is asked nowhere else
    at = {kind: observation.at for (kind, _), observation in stats.observations.items()}
    return at.get("answer", 0.0) > at.get("refused", at.get("limit", 0.0))


@pytest.mark.parametrize("wording", ["openai", "openai_responses"])
async def test_what_one_worker_was_refused_the_other_does_not_send(wording, router, provider, monkeypatch):
    provider.reset(wording=wording)
    (hooks,) = litellm.callbacks
    workers = [CtxHooks.flow, RequestFlow(hooks.settings)]

    async def ask(worker, turns):
        monkeypatch.setattr(CtxHooks, "flow", workers[worker])
        data = {**agent_session("openai-chat", model="group", turns=turns), "metadata": {}}
        fields = await hooks.async_pre_call_hook(UserAPIKeyAuth(api_key="sk-one"), None, data, "acompletion")
        before = len(provider.requests())
        await router.acompletion(**fields)
        return [r["status"] for r in provider.requests()[before:]]

    assert await ask(0, turns=6) == [200]
    assert await ask(1, turns=6) == [200], "both have read what is known, and go by it for ten seconds"
    first = await ask(0, turns=14)
    assert (first[0], first[-1]) == (400, 200)
    await until(lambda: answer_noted(workers[0].learned))
    await until(lambda: not workers[0].learned._store.tasks)  # noqa: SLF001 - what is noted is on its way to Redis
    assert await ask(1, turns=15) == [200]
