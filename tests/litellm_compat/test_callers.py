"""Who asks, read from LiteLLM's own objects on every route; our key never goes to a provider."""

import copy
import json

import litellm
import pytest
from litellm.proxy._types import UserAPIKeyAuth

from ctx_hooks.hook import CtxHooks
from ctx_hooks.litellm_compat.call import Call, Deployment
from ctx_hooks.litellm_compat.logged import without_request_key

AUTH = UserAPIKeyAuth(
    team_id="t-1",
    team_alias="red",
    key_alias="ci",
    team_metadata={"ctx_hooks": {"language": "zh"}},
    metadata={"ctx_hooks": {"max_turns": 7}},
)
DEPLOYMENT = Deployment("openai/x", {"ctx_hooks": "observe"})


@pytest.mark.parametrize("own", ["metadata", "litellm_metadata"])
def test_key_team_and_deployment_are_litellms_word(own):
    caller = Call({own: {"user_api_key_auth": AUTH}}).caller(DEPLOYMENT, "group")
    assert (caller.group, caller.team_names, caller.key_names) == ("group", ("t-1", "red"), ("ci",))
    assert json.loads(caller.team) == {"language": "zh"}
    assert json.loads(caller.key) == {"max_turns": 7}
    assert json.loads(caller.deployment) == "observe"


SESSIONS = {
    "litellm_session_id": {"litellm_session_id": "s", "user": "u", "metadata": {"session_id": "m"}},
    "LiteLLM's metadata": {"user": "u", "metadata": {"session_id": "s"}},
    "the provider's metadata": {"user": "u", "litellm_metadata": {"a": 1}, "metadata": {"session_id": "s"}},
    "user": {"user": "s", "proxy_server_request": {"headers": {"X-Session-Id": "h"}}},
    "header": {"proxy_server_request": {"headers": {"X-Session-Id": "s"}}},
    "header kept in metadata": {"metadata": {"headers": {"x-session-id": "s"}}},
}


@pytest.mark.parametrize("place", SESSIONS)
def test_the_first_name_of_a_session_counts(place):
    assert Call(SESSIONS[place]).caller(DEPLOYMENT, "group").session == "s"


def test_our_key_is_taken_out_of_the_metadata_that_goes_to_the_provider_and_kept_in_litellms():
    data = {"metadata": {"ctx_hooks": {"language": "zh"}, "a": 1}, "litellm_metadata": {"b": 2}}
    metadata, own = copy.deepcopy(data["metadata"]), data["litellm_metadata"]
    assert without_request_key(data) == {"metadata": {"a": 1}, "litellm_metadata": {"b": 2, "ctx_hooks": {"language": "zh"}}}
    assert data["metadata"] == metadata
    assert data["litellm_metadata"] is own  # the proxy reads it again if the request fails


@pytest.mark.parametrize("metadata", [{}, {"model_group": "group"}], ids=["by litellm itself", "by the router"])
async def test_in_a_proxy_only_what_the_router_has_sent_is_fitted(metadata, proxy_router, monkeypatch):
    """Before 1.108 LiteLLM translates a call of Google's to a chat call that says nothing of its group, which may be off."""
    proxy_router()
    monkeypatch.setattr(litellm, "callback_settings", {})
    said = [{"role": ("user", "assistant")[n % 2], "content": f"Remark {n}. " * 500} for n in range(199)]
    call = {"model": "openai/gpt-4", "messages": said, "metadata": metadata}
    sent = await CtxHooks().async_pre_call_deployment_hook(call, "acompletion")
    assert (sent["messages"] == said) is (not metadata)
