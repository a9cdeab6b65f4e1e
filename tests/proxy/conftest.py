"""One strict provider and one real proxy for every test of this folder."""

from __future__ import annotations

from pathlib import Path

import pytest
from configurations import WINDOW, configuration, deployment, importable
from proxies import Proxy

from ctx_hooks.testing import FakeProvider, ProviderSettings

FOLDER = Path(__file__).resolve().parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests of this folder before all others: they take longest, and the last files are to be short ones."""
    items.sort(key=lambda item: not item.path.is_relative_to(FOLDER))


@pytest.fixture(scope="session")
def provider():
    settings = ProviderSettings(window_tokens=WINDOW, windows={"tiny": 60, "large": 1_000_000})
    with FakeProvider(settings) as running:
        yield running


@pytest.fixture(autouse=True)
def _fresh_provider(provider):
    provider.reset(wording="openai", tokens_factor=1.0, counts_output=False)


@pytest.fixture(scope="session")
def proxy(provider):
    with Proxy(configuration(provider.url)) as running:
        yield running


@pytest.fixture(scope="session")
def plain_proxy(provider):
    """The same configuration without the plugin."""
    with Proxy(configuration(provider.url, litellm_settings={})) as running:
        yield running


BROKEN = """
import ctx_hooks.compaction.pipeline
from ctx_hooks.compaction.steps import Step

def fail(conversation, budget):
    raise RuntimeError("a step that fails")

ctx_hooks.compaction.pipeline.STEPS = (Step("broken", "for this test", fail),)
handler = ctx_hooks.proxy_handler_instance
"""


@pytest.fixture(scope="session")
def broken_proxy(provider, tmp_path_factory):
    """A proxy with a plugin whose only step raises."""
    environment = importable(tmp_path_factory.mktemp("broken"), "broken_plugin", BROKEN)
    models = (deployment(provider.url, "broken", "openai/large", max_input_tokens=WINDOW),)
    settings = {"callbacks": ["broken_plugin.handler"]}
    config = configuration(provider.url, *models, litellm_settings=settings)
    with Proxy(config, environment) as running:
        yield running
