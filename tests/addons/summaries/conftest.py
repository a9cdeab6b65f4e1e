"""LiteLLM's connection to a real Redis, and a proxy's Router with the model that writes."""

import pytest
from litellm import Router
from litellm.proxy import proxy_server


@pytest.fixture
def redis_cache(redis_cache, patient_store):  # noqa: ARG001 - for what it sets
    return redis_cache


@pytest.fixture
def proxy_router(monkeypatch):
    deployment = {"model_name": "small", "litellm_params": {"model": "openai/small", "api_key": "k"}}
    monkeypatch.setattr(proxy_server, "llm_router", Router(model_list=[deployment]))
