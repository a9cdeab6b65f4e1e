"""A real Redis, the settings of properties, and pytest's workers as forks."""

import gc
import os
import shlex
import sys

import more_wordings  # noqa: F401 - what it adds
import proxies
import pytest
from hypothesis import HealthCheck, settings
from redis_process import RedisProcess

FORKED_PYTHON = shlex.join([sys.executable, proxies.__file__])
os.environ.update(proxies.READ_AT_IMPORT)  # before a test imports LiteLLM
# The same examples in every run: a change is judged by what it changes. `--hypothesis-profile explore` looks for others.
settings.register_profile(
    "suite", max_examples=20, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True, database=None
)
settings.register_profile("explore", settings.get_profile("suite"), derandomize=False)
settings.load_profile("suite")


@pytest.fixture(scope="module")
def redis_server():
    with RedisProcess() as server:
        yield server


@pytest.fixture
def patient_store(monkeypatch):
    """A store that waits for its Redis, since a busy machine is no broken one, and writes at once what is gathered."""
    from ctx_hooks.attempts import learned
    from ctx_hooks.store import shared_store

    monkeypatch.setattr(shared_store, "HURRY_SECONDS", 30.0)
    monkeypatch.setattr(shared_store, "SLOW_SECONDS", 30.0)
    monkeypatch.setattr(learned, "WRITE_SECONDS", 0.0)


@pytest.fixture
def redis_cache(redis_server, patient_store):  # noqa: ARG001 - for what it sets
    """LiteLLM's connection to it, for which a store waits."""
    from litellm.caching.redis_cache import RedisCache

    return RedisCache(host="127.0.0.1", port=redis_server.port)


@pytest.fixture
def proxy_router(monkeypatch):
    """Install a real Router with these deployments as the proxy's own, before any callback hears of it."""
    import litellm
    from litellm.proxy import proxy_server

    def install(*deployments, **settings):
        for name in proxies.LISTENERS:
            monkeypatch.setattr(litellm, name, [])  # each Router adds listeners, and LiteLLM takes at most 100
        made = litellm.Router(model_list=list(deployments), **settings)
        monkeypatch.setattr(proxy_server, "llm_router", made)
        return made

    return install


@pytest.fixture(scope="module")
def provider(request):
    """A provider as the module's PROVIDER says."""
    from ctx_hooks.testing import FakeProvider

    with FakeProvider(*request.module.PROVIDER) as running:
        yield running


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_setupnodes(specs):
    """Let the workers share one import of LiteLLM, with each other and with the proxies."""
    proxies.run_id()
    for spec in specs:
        if spec.popen and not spec.python and hasattr(os, "pidfd_open"):
            spec.python = FORKED_PYTHON


def pytest_collection_finish():
    gc.collect()
    gc.freeze()  # what is imported and collected stays until the end: no collection needs to look through it
