"""A real Router as the proxy's own, and LiteLLM as it is before the plugin patches it."""

import litellm
import pytest
from litellm import Router
from litellm.proxy import proxy_server

from ctx_hooks.litellm_compat.registry import PATCHED

LISTENERS = [f"{prefix}{kind}_callback" for prefix in ("", "_async_") for kind in ("input", "success", "failure")]


@pytest.fixture(autouse=True)
def own_listeners(monkeypatch):
    """Give each test LiteLLM's lists of listeners as they were: each Router adds its own, and LiteLLM takes at most 100."""
    for name in LISTENERS:
        monkeypatch.setattr(litellm, name, [*getattr(litellm, name)])


@pytest.fixture
def proxy_router(monkeypatch):
    """Install a real Router with these deployments as the proxy's own, before any callback is told of anything."""

    def install(*deployments, **settings):
        for name in LISTENERS:
            monkeypatch.setattr(litellm, name, [])
        made = Router(model_list=list(deployments), **settings)
        monkeypatch.setattr(proxy_server, "llm_router", made)
        return made

    return install


@pytest.fixture
def unpatched(monkeypatch):
    """Take the plugin's patches off LiteLLM; whatever is patched until the test ends is as before then."""
    for name in PATCHED:
        owner, last = name.owner(), name.name.rpartition(".")[2]
        original = getattr(owner, last)
        monkeypatch.setattr(owner, last, getattr(original, "__wrapped__", original))
