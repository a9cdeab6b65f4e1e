"""An attempt goes to one deployment: its model, its window by the most specific source, its policy, who asks."""

import pytest
from litellm import Router
from litellm.proxy import proxy_server

from ctx_hooks.litellm_compat.call import Call
from ctx_hooks.policy.loading import load_settings
from ctx_hooks.policy.resolve import Policies
from ctx_hooks.request import target
from ctx_hooks.tokens.budget import Window

MODEL = "openai/gpt-4o"
"""LiteLLM's model map has 128,000 tokens for its window."""


def policies(**settings):
    return Policies(load_settings(settings)[0])


def attempt_at(model=MODEL, group="group", settings=None, attempt=0, **model_info):
    """Return the target of an attempt whose deployment the Router has noted."""
    fields = {"model": model, "metadata": {"model_group": group, "model_info": {"id": "one", **model_info}}}
    return target.of_attempt(Call(fields), settings or policies(), attempt)


def test_the_policy_is_the_groups_own_and_the_target_says_which_scope_set_a_field():
    settings = policies(models={"group": {"reserve": 7_000}})
    to = attempt_at(settings=settings)
    assert to.policy.reserve == 7_000
    assert set(to.origins.values()) == {"models.group"}
    assert attempt_at(group="another", settings=settings).origins == {}


def test_outside_a_proxy_nobody_is_known_and_no_request_has_an_id():
    assert (attempt_at().tenant, attempt_at().request_id) == ("nobody", "")


class TestAGroup:
    @pytest.fixture
    def router(self, monkeypatch):
        def deployment(name, max_input_tokens):
            info = {"id": name, "max_input_tokens": max_input_tokens}
            return {"model_name": "group", "litellm_params": {"model": "openai/served", "api_key": "k"}, "model_info": info}

        made = Router(model_list=[deployment("small", 8_000), deployment("large", 90_000), deployment("middle", 30_000)])
        monkeypatch.setattr(proxy_server, "llm_router", made)

    def test_it_stands_for_its_deployment_with_the_largest_window(self, router):
        """What is fitted before the Router chooses must not be cut for a deployment that it need not choose."""
        to = target.of_group(Call({"model": "group"}), policies())
        assert to.window == Window(90_000, "model_info")
        assert to.deployment.startswith("large:")

    def test_a_name_that_the_router_does_not_know_stands_for_itself(self, router):
        assert target.of_group(Call({"model": MODEL}), policies()).model == MODEL

    def test_outside_a_proxy_a_group_is_the_model_of_that_name(self):
        assert target.of_group(Call({"model": MODEL}), policies()).window == Window(128_000, "model_map")


@pytest.mark.parametrize("user_agent", [
    "claude-cli/2.1.197 (external, sdk-cli)", "codex_exec/0.169.0 (Debian 12.0.0; x86_64) unknown (codex_exec; 0.169.0)",
    "codex_cli_rs/0.50.0 (Mac OS 15.0; arm64)", "opencode/1.18.33 ai-sdk/provider-utils/4.0.23 runtime/bun/1.3.14",
    "QwenCode/0.15.10 (linux; x64)", "GeminiCLI-tui/0.61.0/m (linux; x64; terminal)",
])  # fmt: skip
def test_a_client_that_compacts_by_itself_comes_first_where_the_policy_says_so(user_agent):
    assert waits("client_first", user_agent)
    assert not waits("full", user_agent)


@pytest.mark.parametrize(
    "user_agent", [None, "", 7, "OpenAI/Python 2.20.0", "Anthropic/Python 2.12.0", "curl/8 claude-cli/2"]
)
def test_no_other_client_does(user_agent):
    assert not waits("client_first", user_agent)


def waits(compaction, user_agent):
    fields = {"model": MODEL, "proxy_server_request": {"headers": {} if user_agent is None else {"User-Agent": user_agent}}}
    return target.of_attempt(Call(fields), policies(defaults={"compaction": compaction}), 0).waits
