"""LiteLLM's connection to a real Redis."""

import pytest


@pytest.fixture
def redis_cache(redis_cache, patient_store):  # noqa: ARG001 - for what it sets
    return redis_cache
