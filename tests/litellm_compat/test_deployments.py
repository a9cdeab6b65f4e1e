"""What the Router and LiteLLM's model map say of a deployment, and what nobody else can say in their place."""

import litellm
import pytest
from litellm.proxy._types import UserAPIKeyAuth

from ctx_hooks.compaction.cost import Prices
from ctx_hooks.litellm_compat.call import Call, Deployment
from ctx_hooks.litellm_compat.deployments import (
    LONGEST_KEY_CHARS,
    compacts_itself,
    deployment_key_of,
    deployments,
    known_window_tokens,
    prices_of,
)

MODEL = {"model_name": "group", "litellm_params": {"model": "openai/x", "api_key": "k"}, "model_info": {"id": "one"}}
OTHER = {
    **MODEL,
    "litellm_params": {"model": "openai/y", "api_key": "k"},
    "model_info": {"id": "two", "max_input_tokens": 9},
}


def test_the_deployments_of_a_group_are_the_routers(proxy_router):
    proxy_router(MODEL, OTHER)
    found = deployments("group")
    assert [d.model for d in found] == ["openai/x", "openai/y"]
    assert [d.model_info["id"] for d in found] == ["one", "two"]
    assert found[1].model_info["max_input_tokens"] == 9
    assert deployments("unknown") == ()


AUTH = UserAPIKeyAuth(team_id="red")
BY_KEY = {"user_api_key_auth": AUTH}


@pytest.mark.parametrize(("fields", "expected"), [
    ({"metadata": {"a": 1}}, {"a": 1}), ({"metadata": {"a": 1}, "litellm_metadata": {"b": 2}}, {"b": 2}),
    ({"litellm_metadata": {"b": 2}, "metadata": BY_KEY}, BY_KEY),
    ({"litellm_metadata": {"b": 2}, "metadata": {"user_api_key_auth": {"team_id": "red"}}}, {"b": 2}),
    ({"litellm_metadata": {}, "metadata": {"a": 1}}, {"a": 1}), ({"metadata": "text", "litellm_metadata": [1]}, {}),
], ids=["one", "two", "by key", "claimed", "empty", "no mapping"])  # fmt: skip
def test_litellms_own_metadata_is_found_on_every_route(fields, expected):
    assert Call(fields).metadata == expected


def test_the_deployment_and_the_group_of_an_attempt_are_what_the_router_noted():
    attempt = {
        "model": "openai/x",
        "metadata": {"model_group": "group", "model_info": {"id": "one"}},
        "model_info": {"id": "z"},
    }
    assert Call(attempt).deployment == Deployment("openai/x", {"id": "one"})
    assert Call(attempt).model_group == "group"
    assert Call({"model": "openai/x"}).model_group == "openai/x"
    assert Call({}).deployment == Deployment("", {})


def test_models_behind_one_wildcard_have_keys_of_their_own_of_bounded_length():
    keys = {deployment_key_of(Deployment(model, {"id": "one"})) for model in ("a", "b", "c" * 10_000, "d" * 10_000)}
    assert len(keys) == 4
    assert all(len(key) <= LONGEST_KEY_CHARS for key in keys)


def test_window_and_prices_are_those_of_litellms_model_map():
    known = litellm.model_cost["gpt-4o"]
    for deployment in (Deployment("openai/gpt-4o", {}), Deployment("azure/mine", {"base_model": "gpt-4o"})):
        assert known_window_tokens(deployment) == known["max_input_tokens"]
        found = prices_of(deployment)
        assert isinstance(found, Prices)
        assert (found.plain, found.cache_read) == (known["input_cost_per_token"], known["cache_read_input_token_cost"])
    assert known_window_tokens(Deployment("openai/nobody-knows", {})) is None
    assert prices_of(Deployment("openai/nobody-knows", {})) is None


def test_the_operators_own_prices_come_before_those_of_the_model_map():
    """The Router collects them in `model_info`, with the rest of the map's own."""
    known = litellm.model_cost["gpt-4o"]
    own = Deployment("openai/gpt-4o", {"input_cost_per_token": 1e-9, "cache_read_input_token_cost": -1})
    assert prices_of(own) == Prices(1e-9, known["cache_read_input_token_cost"], 1e-9)
    priced = {"input_cost_per_token": 2.0, "cache_read_input_token_cost": 1.0, "cache_creation_input_token_cost": 3.0}
    assert prices_of(Deployment("openai/nobody-knows", priced)) == Prices(2.0, 1.0, 3.0)
    assert prices_of(Deployment("openai/gpt-4o", {"input_cost_per_token": 0})) is None


@pytest.mark.parametrize(("model", "base", "does"), [
    ("openai/gpt-5", None, True), ("gpt-5", None, True), ("azure/gpt-5", "https://ours.openai.azure.com", True),
    ("openai/qwen", "https://openai.com.example.org/v1", False), ("anthropic/claude-sonnet-4-5", None, False),
    ("hosted_vllm/qwen", "http://localhost:8000/v1", False),
])  # fmt: skip
def test_openai_and_azure_compact_themselves(model, base, does, proxy_router):
    proxy_router({"model_name": "group", "litellm_params": {"model": model, "api_base": base, "api_key": "none"}})
    assert compacts_itself("group") is does
