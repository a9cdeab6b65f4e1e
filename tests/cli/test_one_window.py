"""`check`, `explain` and the run state one window for one deployment, whatever the others of the configuration state."""

import asyncio
import copy
import json
from itertools import product

import litellm
import pytest
import yaml
from litellm.integrations.custom_logger import CustomLogger

from ctx_hooks.attempts import target
from ctx_hooks.cli.configuration import configuration_of
from ctx_hooks.cli.explain import decided
from ctx_hooks.cli.windows import windows
from ctx_hooks.litellm_compat.call import Call, Deployment
from ctx_hooks.policy.resolve import Policies
from ctx_hooks.policy.settings import DEFAULT_POLICY, Settings

MODELS = ("hosted_vllm/ours", "openai/ours", "openai/gpt-4o", "gpt-4o", "azure/ours", "anthropic/claude-opus-4-8")
STATED = [*product(MODELS, (None, 12_000), (None, "gpt-4o"), (None, {"window_tokens": 20_000}))]
"""Model, window, base model and policy of each deployment."""


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


def configuration(stated, defaults):
    listed = []
    for n, (model, window, base, policy) in enumerate(stated):
        info = {"id": f"id-{n}", "max_input_tokens": window, "base_model": base, "ctx_hooks": policy}
        params = {"model": model, "api_base": f"http://{n}.test", "api_key": "k", "mock_response": "fine"}
        info = {name: value for name, value in info.items() if value}
        listed.append({"model_name": f"group-{n}", "litellm_params": params, "model_info": info})
    wild = {"model": "openai/*", "api_key": "k", "mock_response": "fine"}
    listed.append({"model_name": "openai/*", "litellm_params": wild, "model_info": {"id": "wild"}})
    return {"model_list": listed, "callback_settings": {"ctx_hooks": {"defaults": defaults}}}


@pytest.mark.parametrize(("stated", "defaults"), [
    (STATED, {}), (STATED[::-3], {}), (STATED[::11], {"window_tokens": 30_000}),
])  # fmt: skip
async def test_check_explain_and_run_state_one_window(stated, defaults, own_map, proxy_router, tmp_path, monkeypatch):  # noqa: ARG001
    raw = configuration(stated, defaults)
    router = proxy_router(*json.loads(json.dumps(raw["model_list"])))
    seen = Seen(Policies(Settings(defaults=defaults)))
    monkeypatch.setattr(litellm, "callbacks", [seen])
    (config := tmp_path / "config.yaml").write_text(yaml.safe_dump(raw))
    (request := tmp_path / "request.json").write_text(json.dumps({"messages": [{"role": "user", "content": "hi"}]}))
    for row, listed in zip(windows(configuration_of(raw)), raw["model_list"], strict=True):
        group = listed["model_name"].replace("*", "gpt-4o")
        await router.acompletion(model=group, messages=[{"role": "user", "content": "hi"}])
        run = seen.targets[-1].window
        asked = {"request": request, "model": group, "config": config, "team": None, "key": None}
        explained = (await asyncio.to_thread(decided, **asked)).target.window
        assert (run.tokens, run.source) == (explained.tokens, explained.source), group
        if "*" not in listed["model_name"]:
            assert (row["window_tokens"], row["window_source"]) == (run.tokens, run.source), group
            assert row["window_source"] != "model_info" or listed["model_info"]["max_input_tokens"] == run.tokens


def test_registered_name_has_its_window(own_map, monkeypatch):  # noqa: ARG001
    """A call of `litellm.register_model` is a statement about every deployment of the name."""
    name = "ours-registered"
    assert target.window_at(Deployment(f"openai/{name}", {}), DEFAULT_POLICY).source == "default"
    monkeypatch.setattr(litellm.utils, "_runtime_registered_model_cost", {})
    litellm.register_model({name: {"max_input_tokens": 7_000, "litellm_provider": "openai", "mode": "chat"}})
    window = target.window_at(Deployment(f"openai/{name}", {}), DEFAULT_POLICY)
    assert (window.tokens, window.source) == (7_000, "model_map")
