"""A real Router as the proxy's own."""

from __future__ import annotations

import pytest
from litellm import Router
from litellm.proxy import proxy_server


@pytest.fixture
def proxy_router(monkeypatch):
    """Install a real Router with these deployments as the proxy's own."""

    def install(*deployments, **settings):
        made = Router(model_list=list(deployments), **settings)
        monkeypatch.setattr(proxy_server, "llm_router", made)
        return made

    return install
