"""One strict provider and one real proxy for every test of this folder.

A module names the model groups that it needs in `groups`, a function of the provider's address; the proxy serves those of
all modules.
"""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import pytest
from configurations import GENERAL, PLUGIN, WINDOW, configuration, deployment, importable
from proxies import Proxy

from ctx_hooks.testing import FakeProvider, ProviderSettings, Reply

FOLDER = Path(__file__).resolve().parent
SETTINGS = ProviderSettings(
    window_tokens=WINDOW, windows={"tiny": 60, "less": 2_500, "roomy": 12_000, **dict.fromkeys(("large", "wide"), 1_000_000)}
)
FALLBACKS = [{"cornered": ["large"]}, {"first": ["second"]}, {"second": ["third"]}]
ANSWERS = """
import ctx_hooks
from litellm.integrations.custom_logger import CustomLogger

class Answers(CustomLogger):
    async def async_log_success_event(self, kwargs, response_obj, start_time, end_time):
        print("answered", kwargs["litellm_call_id"], flush=True)

ctx_hooks.on("answer", lambda event: print("learned of", event.call.model_group, flush=True))
handler = Answers()
"""
"""A second callback: LiteLLM tells them in their order, so the plugin has learned by then. Of a route whose answers LiteLLM
logs under another id, the group says that one was learned from."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run the tests of this folder before all others: they take longest, and the last files are to be short ones."""
    items.sort(key=lambda item: not item.path.is_relative_to(FOLDER))


def script(_format, payload, answered):
    """Answer; a model for files asks for the next one."""
    if payload["model"].startswith("files"):
        return Reply(tool="read_file", arguments={"path": f"src/file_{answered}.py"})
    return Reply("Answer to what was asked.")


@pytest.fixture(scope="session")
def provider():
    with FakeProvider(SETTINGS, script) as running:
        yield running


@pytest.fixture(autouse=True)
def _fresh_provider(request):
    """Forget what the tests before have asked of the provider; a module with one of its own does so itself."""
    if "provider" in request.fixturenames and not hasattr(request.module, "provider"):
        request.getfixturevalue("provider").reset(**asdict(SETTINGS))


@pytest.fixture(scope="session")
def proxy(provider, request, tmp_path_factory):
    modules = dict.fromkeys(item.module for item in request.session.items if item.path.is_relative_to(FOLDER))
    models = [model for module in modules for model in getattr(module, "groups", lambda _: ())(provider.url)]
    config = configuration(
        provider.url,
        *configuration(provider.url)["model_list"],
        *models,
        litellm_settings={"callbacks": [PLUGIN, "answers.handler"], "context_window_fallbacks": FALLBACKS},
        general_settings={**GENERAL, "cancel_on_disconnect": True},
        callback_settings={"ctx_hooks": {"defaults": {"rescue_attempts": 3}}},
    )
    with Proxy(config, importable(tmp_path_factory.mktemp("answers"), "answers", ANSWERS)) as running:
        yield running


@pytest.fixture(scope="session")
def plain_proxy(provider):
    """The same deployments without the plugin."""
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
