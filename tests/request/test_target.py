"""An attempt goes to one deployment: its model, its window by the most specific source, its policy, who asks."""

import pytest
from litellm import Router
from litellm.proxy import proxy_server

from ctx_hooks import litellm_compat
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
    return target.of_attempt(litellm_compat.Call(fields), settings or policies(), attempt)


class TestThePolicy:
    def test_it_is_the_groups_own_and_the_target_says_which_scope_set_a_field(self):
        settings = policies(models={"group": {"reserve": 7_000}})
        to = attempt_at(settings=settings)
        assert to.policy.reserve == 7_000
        assert set(to.origins.values()) == {"models.group"}
        assert attempt_at(group="another", settings=settings).origins == {}


class TestWhatIsLearned:
    def test_who_asks_is_a_name_of_this_process_alone(self):
        """Outside a proxy nobody is known, and no request has an id."""
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
        to = target.of_group(litellm_compat.Call({"model": "group"}), policies())
        assert to.window == Window(90_000, "model_info")
        assert to.deployment.startswith("large:")

    def test_a_name_that_the_router_does_not_know_stands_for_itself(self, router):
        assert target.of_group(litellm_compat.Call({"model": MODEL}), policies()).model == MODEL

    def test_outside_a_proxy_a_group_is_the_model_of_that_name(self):
        assert target.of_group(litellm_compat.Call({"model": MODEL}), policies()).window == Window(128_000, "model_map")


class TestTheClient:
    @pytest.mark.parametrize(("policy", "user_agent", "waits"), [
        ("client_first", "claude-cli/2.1.197 (external, sdk-cli)", True), ("client_first", "OpenAI/Python 2.20.0", False),
        ("client_first", None, False), ("full", "claude-cli/2.1.197 (external, sdk-cli)", False),
    ])  # fmt: skip
    def test_one_that_compacts_by_itself_comes_first_where_the_policy_says_so(self, policy, user_agent, waits):
        fields = {"model": MODEL, "proxy_server_request": {"headers": {"User-Agent": user_agent} if user_agent else {}}}
        settings = policies(defaults={"compaction": policy})
        assert target.of_attempt(litellm_compat.Call(fields), settings, 0).waits == waits
