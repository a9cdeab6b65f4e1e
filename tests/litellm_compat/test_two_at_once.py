"""One request that LiteLLM sends to two deployments at once teaches of each what that one has counted."""

import asyncio

import litellm
import pytest
from litellm.integrations.custom_logger import CustomLogger
from litellm.proxy._types import UserAPIKeyAuth
from waits import until

from ctx_hooks.hook import CtxHooks
from ctx_hooks.testing import ProviderSettings, agent_session

WINDOWS = {"main": 20_000, "shadow": 8_000}
PROVIDER = (ProviderSettings(windows=WINDOWS),)
SESSION = agent_session("openai-chat", model="main", turns=10)


class MainWaits(CustomLogger):
    """Holds the call of MAIN, which the plugin has seen, until something became of that of SHADOW, and this till then."""

    def __init__(self, shadow_came):
        super().__init__()
        self._shadow_came = shadow_came
        self._main_came = asyncio.Event()

    async def async_pre_call_deployment_hook(self, kwargs, call_type):
        if kwargs["model"].endswith("main"):
            self._main_came.set()
            await until(self._shadow_came)
        return kwargs

    async def async_filter_deployments(
        self, model, healthy_deployments, messages, request_kwargs=None, parent_otel_span=None
    ):
        if model == "shadow":
            await self._main_came.wait()
        return healthy_deployments


@pytest.fixture
def router(provider, proxy_router, monkeypatch):
    """Install a proxy's Router whose `main` is mirrored to `shadow`, and whose `alone` is not."""
    provider.reset(held_models=["shadow"])

    async def shadow_arrived():
        return any(r["model"] == "shadow" for r in await asyncio.to_thread(provider.requests))

    groups = (("mirrored", "main", {"silent_model": "shadow"}), ("main", "main", {}), ("shadow", "shadow", {}))
    made = proxy_router(*(deployment(provider, *group) for group in groups), num_retries=0)
    monkeypatch.setattr(litellm, "callbacks", [CtxHooks(), MainWaits(shadow_arrived)])
    return made


def deployment(provider, group, name, more, stated_tokens=None):
    parameters = {"model": f"openai/{name}", "api_base": f"{provider.url}/v1", "api_key": "none", **more}
    policy = {"block_below_tokens": 0}
    info = {"id": group, "max_input_tokens": stated_tokens or WINDOWS[name], "ctx_hooks": policy}
    return {"model_name": group, "litellm_params": parameters, "model_info": info}


async def learned(group):
    """Return the ratios of MAIN and SHADOW, by tenant, once MAIN's answer is logged."""

    async def stats():
        return [await CtxHooks.flow.learned.of(key) for key in (f"{group}:openai/main", "shadow:openai/shadow")]

    async def is_learned():
        return any(found.observations for found in await stats())

    await until(is_learned)
    return [[o.values[0] for (kind, _), o in found.observations.items() if kind == "ratios"] for found in await stats()]


async def arranged(model):
    data = {**SESSION, "model": model, "metadata": {}}
    return await litellm.callbacks[0].async_pre_call_hook(UserAPIKeyAuth(api_key="sk-one"), None, data, "acompletion")


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
async def test_what_one_deployment_counts_is_neither_ratio_nor_usage_of_the_other(stream, router, provider):
    fields = {**await arranged("mirrored"), "stream": stream, "stream_options": {"include_usage": True}}
    answer = await router.acompletion(**fields)
    hooks, auth = litellm.callbacks[0], UserAPIKeyAuth(api_key="sk-one")
    if stream:
        chunks = [chunk async for chunk in hooks.async_post_call_streaming_iterator_hook(auth, answer, fields)]
        (reported,) = [chunk.usage for chunk in chunks if getattr(chunk, "usage", None)]
    else:
        reported = (await hooks.async_post_call_success_hook(fields, auth, answer)).usage
    (sent,) = [r["input_tokens"] for r in provider.requests() if r["model"] == "main"]
    assert reported.prompt_tokens == sent
    main, shadow = await learned("mirrored")
    assert main == [pytest.approx(1.0, abs=0.2)]
    assert shadow == []
