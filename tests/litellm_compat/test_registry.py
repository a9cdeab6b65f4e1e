"""Every private name of LiteLLM is in one registry; one that is missing is reported once at start and costs no request."""

import ast
import logging
from pathlib import Path

import litellm
import pytest
from fastapi import HTTPException
from litellm.proxy._types import UserAPIKeyAuth

import ctx_hooks
from ctx_hooks.addons.retrieval.addon import can_call_again
from ctx_hooks.addons.summaries.writing import payer_of
from ctx_hooks.hook import CtxHooks
from ctx_hooks.litellm_compat import registry
from ctx_hooks.litellm_compat.call import Call
from ctx_hooks.litellm_compat.errors import worded_error
from ctx_hooks.litellm_compat.logged import estimate_usage
from ctx_hooks.litellm_compat.reclassification import reclassify
from ctx_hooks.runtime.warnings import forget_warnings

PACKAGE = Path(ctx_hooks.__file__).parent
PUBLIC = {
    "litellm.ContextWindowExceededError", "litellm.CustomStreamWrapper", "litellm.Router", "litellm.api_base",
    "litellm.aresponses", "litellm.callback_settings",
    "litellm.callbacks", "litellm.cost_per_token", "litellm.get_llm_provider", "litellm.get_model_info",
    "litellm.integrations.custom_logger.CustomLogger", "litellm.model_cost", "litellm.register_model",
    "litellm.suppress_debug_info", "litellm.token_counter",
}  # fmt: skip
"""Names that LiteLLM's documentation has."""
OVERFLOW = "This model's maximum context length is 8000 tokens. However, your messages resulted in 9000 tokens."


def used_names(path):
    """Yield every name of LiteLLM that a module imports or reads, with its path from `litellm`."""
    tree = ast.parse(path.read_text())
    modules = {"litellm": "litellm"}
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name.startswith("litellm."))
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "litellm":
            for alias in node.names:
                name = f"{node.module}.{alias.name}"
                modules[alias.name] = name
                if name != registry.PROXY:
                    yield name
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in modules:
            yield f"{modules[node.value.id]}.{node.attr}"


def test_every_name_of_litellm_is_public_or_in_the_registry():
    registered = {part for name in registry.NAMES for part in (name.name, name.name.rpartition(".")[0])}
    used = {name: path.name for path in PACKAGE.rglob("*.py") for name in used_names(path)}
    assert {name: path for name, path in used.items() if name not in PUBLIC | registered} == {}


def test_private_keys_and_attributes_are_in_the_registry_only():
    private = {registry.NOTES.last, registry.CLIENTS_MODEL}
    for path in PACKAGE.rglob("*.py"):
        if path != Path(registry.__file__):
            nodes = list(ast.walk(ast.parse(path.read_text())))
            texts = {node.value for node in nodes if isinstance(node, ast.Constant)}
            assert not private & (texts | {node.attr for node in nodes if isinstance(node, ast.Attribute)}), path


def test_this_litellm_has_them_all():
    assert not {name for name in registry.NAMES if name.fault}


@pytest.fixture
def without(monkeypatch):
    """Returns a function that takes a name from this LiteLLM until the test ends."""

    def remove(name):
        found, last = name.owner(), name.last
        # From 1.109 on the Router's own code is its core's, to which it passes on what it is asked for.
        for owner in (found, getattr(found, "_core_class", found)):
            for held in [held for held in getattr(owner, "__mro__", (owner,)) if last in vars(held)]:
                monkeypatch.delattr(held, last)
        if hasattr(found, last):  # the Router's class of 1.110 finds it in its core
            monkeypatch.setattr(found, last, registry.ABSENT)

    return remove


@pytest.fixture
def started(monkeypatch, caplog):
    """Returns a function that loads the plugin in a proxy, and returns what it warns of."""

    def start():
        forget_warnings()
        caplog.clear()
        with caplog.at_level(logging.WARNING, logger="ctx_hooks"):
            CtxHooks()
        return [record.getMessage() for record in caplog.records]

    monkeypatch.setattr(litellm, "callback_settings", {})
    return start


@pytest.mark.parametrize("name", registry.NAMES, ids=lambda n: n.name)
def test_a_missing_name_is_reported_once_at_start(name, without, started):
    before = set(started())
    without(name)
    same = {other for other in registry.NAMES if f"{other.path}.".startswith(f"{name.path}.")}
    found = started()
    assert len(found) == len(set(found))
    assert set(found) - before == {f"this LiteLLM has no {other.name}: {other.without}" for other in same}
    CtxHooks()


class TestWithoutIt:
    """What is done where a name is missing."""

    def test_no_further_call_and_no_summary_is_offered(self, without, proxy_router):
        proxy_router()
        call = Call({"metadata": {"user_api_key_auth": UserAPIKeyAuth(api_key="sk-1")}})
        assert can_call_again()
        assert payer_of(call) is not None
        without(registry.SETUP)
        without(registry.ADD_DATA)
        assert not can_call_again()
        assert payer_of(call) is None

    def test_the_final_error_is_still_worded(self, without):
        without(registry.PROXY_ERROR)
        error = litellm.ContextWindowExceededError(OVERFLOW, "m", "openai")
        answer = worded_error(error, "too long", "context_length_exceeded", "openai-chat")
        assert isinstance(answer, HTTPException)
        assert (answer.status_code, answer.detail, error.message) == (400, {"error": "too long"}, "too long")

    @pytest.mark.parametrize("name", registry.PATCHED, ids=lambda n: n.name)
    @pytest.mark.usefixtures("unpatched")
    def test_the_other_names_are_patched_all_the_same(self, name, without):
        without(name)
        estimate_usage(lambda _: None)
        reclassify(None)
        assert {other for other in registry.PATCHED if hasattr(other.find(), "__wrapped__")} == {*registry.PATCHED} - {name}
