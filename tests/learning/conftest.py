"""LiteLLM's connection to a real Redis."""

import pytest

from ctx_hooks.store import shared_store

PATIENT_SECONDS = 30.0
"""A read may take so long here: a busy machine is no broken Redis."""


@pytest.fixture
def redis_cache(redis_cache, monkeypatch):
    monkeypatch.setattr(shared_store, "HURRY_SECONDS", PATIENT_SECONDS)
    monkeypatch.setattr(shared_store, "SLOW_SECONDS", PATIENT_SECONDS)
    return redis_cache
