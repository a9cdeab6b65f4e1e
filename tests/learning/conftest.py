"""A real Redis, and LiteLLM's connection to it."""

from __future__ import annotations

import pytest
from redis_process import RedisProcess

from ctx_hooks.store import shared_store


@pytest.fixture(scope="module")
def redis_server():
    with RedisProcess() as server:
        yield server


PATIENT_SECONDS = 30.0
"""A read may take so long here: a busy machine is no broken Redis."""


@pytest.fixture
def redis_cache(redis_server, monkeypatch):
    monkeypatch.setattr(shared_store, "HURRY_SECONDS", PATIENT_SECONDS)
    monkeypatch.setattr(shared_store, "SLOW_SECONDS", PATIENT_SECONDS)
    from litellm.caching.redis_cache import RedisCache

    return RedisCache(host="127.0.0.1", port=redis_server.port)
