"""LiteLLM's compression_interception before the plugin: the rest is fitted, and what the model retrieves fits as well."""

import litellm
import pytest
from litellm.integrations.compression_interception import CompressionInterceptionLogger

from ctx_hooks.hook import CtxHooks
from ctx_hooks.litellm_compat.registry import installed
from ctx_hooks.testing import Call, FakeProvider, ProviderSettings, Reply, agent_session

WINDOW = 3_000
RETRIEVE = "litellm_content_retrieve"


def script(_, payload, answered):
    """Retrieve the first text that was taken out, then answer."""
    tool = next((tool for tool in payload["tools"] if tool["name"] == RETRIEVE), None)
    if tool is None or answered:
        return Reply("It is in the file.")
    return Reply(calls=[Call(RETRIEVE, {"key": tool["input_schema"]["properties"]["key"]["enum"][0]})])


@pytest.mark.skipif(installed() < (1, 106), reason="its further call does not go to the deployment's own address")
async def test_what_it_leaves_too_long_is_fitted_and_so_is_the_call_with_what_was_retrieved(proxy_router, monkeypatch):
    first = CompressionInterceptionLogger(compression_trigger=6_000, compression_target=5_000)
    monkeypatch.setattr(litellm, "callbacks", [first, CtxHooks()])
    with FakeProvider(ProviderSettings(window_tokens=WINDOW), script) as provider:
        own = {"model": "anthropic/claude-served", "api_base": provider.url, "api_key": "none"}
        router = proxy_router({"model_name": "claude", "litellm_params": own, "model_info": {"max_input_tokens": WINDOW}})
        talk = [{"role": ("user", "assistant")[n % 2], "content": f"File {n}. " * 250 + "."} for n in range(13)]
        tools = agent_session("anthropic")["tools"]
        answer = await router.aanthropic_messages(model="claude", messages=talk, tools=tools, max_tokens=200)
        asked = provider.requests()
    assert answer["content"][-1]["text"] == "It is in the file."
    assert [(r["status"], r["error"]) for r in asked] == [(200, None)] * 2
    assert RETRIEVE in [tool["name"] for tool in asked[0]["payload"]["tools"]]
