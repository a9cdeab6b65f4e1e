"""LiteLLM as it is before the plugin patches it, and with the listeners of one test."""

import litellm
import pytest
from proxies import LISTENERS

from ctx_hooks.litellm_compat.registry import PATCHED


@pytest.fixture(autouse=True)
def own_listeners(monkeypatch):
    """Give each test LiteLLM's lists of listeners as they were: each Router adds its own, and LiteLLM takes at most 100."""
    for name in LISTENERS:
        monkeypatch.setattr(litellm, name, [*getattr(litellm, name)])


@pytest.fixture
def unpatched(monkeypatch):
    """Take the plugin's patches off LiteLLM; whatever is patched until the test ends is as before then."""
    for name in PATCHED:
        owner, last = name.owner(), name.name.rpartition(".")[2]
        original = getattr(owner, last)
        monkeypatch.setattr(owner, last, getattr(original, "__wrapped__", original))
