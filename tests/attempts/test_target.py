"""An attempt goes to one deployment: its model, its window by the most specific source, its policy, who asks."""

import pytest

from ctx_hooks.attempts import target
from ctx_hooks.litellm_compat.call import Call
from ctx_hooks.policy.loading import load_settings
from ctx_hooks.policy.resolve import Policies
from ctx_hooks.tokens.budget import Window

MODEL = "openai/gpt-4o"
"""LiteLLM's model map has 128,000 tokens for its window."""


def policies(**settings):
    return Policies(load_settings(settings)[0])


def attempt_at(model=MODEL, group="group", settings=None, attempt=0, **model_info):
    """Return the target of an attempt whose deployment the Router has noted."""
    fields = {"model": model, "metadata": {"model_group": group, "model_info": {"id": "one", **model_info}}}
    return target.of_attempt(Call(fields), settings or policies(), attempt)


def test_target_has_groups_policy_and_its_scopes():
    settings = policies(models={"group": {"reserve": 7_000}})
    to = attempt_at(settings=settings)
    assert to.policy.reserve == 7_000
    assert set(to.origins.values()) == {"models.group"}
    assert attempt_at(group="another", settings=settings).origins == {}


def test_target_outside_proxy_has_no_tenant():
    assert (attempt_at().tenant, attempt_at().request_id) == ("nobody", "")


class TestAGroup:
    @pytest.fixture
    def router(self, proxy_router):
        def deployment(name, max_input_tokens):
            info = {"id": name, "max_input_tokens": max_input_tokens}
            return {"model_name": "group", "litellm_params": {"model": "openai/served", "api_key": "k"}, "model_info": info}

        proxy_router(deployment("small", 8_000), deployment("large", 90_000), deployment("middle", 30_000))

    def test_group_has_its_largest_window(self, router):
        """What is fitted before the Router chooses must not be cut for a deployment that it need not choose."""
        to = target.of_group(Call({"model": "group"}), policies())
        assert to.window == Window(90_000, "model_info")
        assert to.deployment.startswith("large:")

    @pytest.mark.parametrize("known", [True, False], ids=["in a proxy", "outside"])
    def test_unknown_group_is_the_model_so_named(self, known, request):
        if known:
            request.getfixturevalue("router")
        assert target.of_group(Call({"model": MODEL}), policies()).window == Window(128_000, "model_map")


@pytest.mark.parametrize(("user_agent", "compacts"), [
    ("claude-cli/2.1.197 (external, sdk-cli)", True), ("codex_exec/0.169.0 (Debian 12.0.0; x86_64) unknown", True),
    ("codex_cli_rs/0.50.0 (Mac OS 15.0; arm64)", True), ("opencode/1.18.33 ai-sdk/provider-utils/4.0.23", True),
    ("QwenCode/0.15.10 (linux; x64)", True), ("GeminiCLI-tui/0.61.0/m (linux; x64; terminal)", True), ("", False),
    (7, False), ("OpenAI/Python 2.20.0", False), ("curl/8 claude-cli/2", False),
])  # fmt: skip
def test_policy_waits_for_compacting_clients(user_agent, compacts):
    call = Call({"model": MODEL, "proxy_server_request": {"headers": {"User-Agent": user_agent}}})
    for compaction, expected in (("client_first", compacts), ("full", False)):
        assert target.of_attempt(call, policies(defaults={"compaction": compaction}), 0).waits == expected
