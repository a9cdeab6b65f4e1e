"""`check`, `explain` and the run state one window for one deployment, whatever the others of the configuration state."""

import asyncio
import copy
import json

import litellm
import pytest
import yaml
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from litellm import Router
from litellm.integrations.custom_logger import CustomLogger
from litellm.proxy import proxy_server

from ctx_hooks.cli import check
from ctx_hooks.cli.configuration import configuration_of
from ctx_hooks.cli.explain.decided import decided
from ctx_hooks.litellm_compat.call import Call, Deployment
from ctx_hooks.policy.resolve import Policies
from ctx_hooks.policy.settings import DEFAULT_POLICY, Settings
from ctx_hooks.request import target

MODELS = ("hosted_vllm/ours", "openai/ours", "openai/gpt-4o", "gpt-4o", "azure/ours", "anthropic/claude-opus-4-8")
WINDOWS = st.none() | st.integers(1_000, 900_000)
LISTENERS = [f"{prefix}{kind}_callback" for prefix in ("", "_async_") for kind in ("input", "success", "failure")]
BASES = st.sampled_from([None, "gpt-4o", "ours", "claude-opus-4-8"])
POLICIES = st.sampled_from([{}, {"window_tokens": 20_000}])


class Seen(CustomLogger):
    """Notes the target of each attempt, as the plugin's hook makes it."""

    def __init__(self, policies):
        super().__init__()
        self.policies, self.targets = policies, []

    async def async_pre_call_deployment_hook(self, kwargs, call_type):
        self.targets.append(target.of_attempt(Call(kwargs), self.policies, 0))
        return kwargs


@pytest.fixture
def own_map(monkeypatch):
    """The Router registers what each deployment states in LiteLLM's map."""
    monkeypatch.setattr(litellm, "model_cost", copy.deepcopy(litellm.model_cost))


def entry(number, model, **stated):
    params = {"model": model, "api_base": f"http://{number}.test", "api_key": "k", "mock_response": "fine"}
    return {"model_name": f"group-{number}", "litellm_params": params, "model_info": {"id": f"id-{number}", **stated}}


TWO_SERVERS = {
    "model_list": [entry(0, MODELS[0], max_input_tokens=12_000), entry(1, MODELS[0])],
    "callback_settings": {"ctx_hooks": {}},
}


@st.composite
def configurations(draw):
    listed = []
    for number in range(draw(st.integers(2, 6))):
        stated = {"max_input_tokens": draw(WINDOWS), "base_model": draw(BASES), "ctx_hooks": draw(POLICIES)}
        listed.append(entry(number, draw(st.sampled_from(MODELS)), **{k: v for k, v in stated.items() if v}))
    if draw(st.booleans()):
        wild = {"model": "openai/*", "api_key": "k", "mock_response": "fine"}
        listed.append({"model_name": "openai/*", "litellm_params": wild, "model_info": {"id": "wild"}})
    return {"model_list": listed, "callback_settings": {"ctx_hooks": {"defaults": draw(POLICIES)}}}


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(raw=configurations())
@example(raw=TWO_SERVERS)
async def test_check_explain_and_run_state_one_window(raw, own_map, tmp_path, monkeypatch):  # noqa: ARG001
    own = raw["callback_settings"]["ctx_hooks"]
    for name in LISTENERS:
        monkeypatch.setattr(litellm, name, [])  # each Router adds listeners, and LiteLLM takes at most 100
    monkeypatch.setattr(proxy_server, "llm_router", Router(model_list=json.loads(json.dumps(raw["model_list"]))))
    seen = Seen(Policies(Settings(**own)))
    monkeypatch.setattr(litellm, "callbacks", [seen])
    (config := tmp_path / "config.yaml").write_text(yaml.safe_dump(raw))
    (request := tmp_path / "request.json").write_text(json.dumps({"messages": [{"role": "user", "content": "hi"}]}))
    for row, listed in zip(check.windows(configuration_of(raw)), raw["model_list"], strict=True):
        group = listed["model_name"].replace("*", "gpt-4o")
        await proxy_server.llm_router.acompletion(model=group, messages=[{"role": "user", "content": "hi"}])
        run = seen.targets[-1].window
        explained = await explained_window(request, config, group)
        assert (run.tokens, run.source) == (explained.tokens, explained.source), group
        if "*" not in listed["model_name"]:
            assert (row["window_tokens"], row["window_source"]) == (run.tokens, run.source), group
            assert row["window_source"] != "model_info" or listed["model_info"]["max_input_tokens"] == run.tokens


async def explained_window(request, config, group):
    found = await asyncio.to_thread(decided, request=request, model=group, config=config, team=None, key=None)
    return found.target.window


def test_a_name_that_the_operator_registers_with_litellm_has_its_window(own_map, monkeypatch):  # noqa: ARG001
    """A call of `litellm.register_model` is a statement about every deployment of the name."""
    name = "ours-registered"
    assert target.window_at(Deployment(f"openai/{name}", {}), DEFAULT_POLICY).source == "default"
    monkeypatch.setattr(litellm.utils, "_runtime_registered_model_cost", {})
    litellm.register_model({name: {"max_input_tokens": 7_000, "litellm_provider": "openai", "mode": "chat"}})
    window = target.window_at(Deployment(f"openai/{name}", {}), DEFAULT_POLICY)
    assert (window.tokens, window.source) == (7_000, "model_map")
