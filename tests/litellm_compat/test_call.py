"""Who asks, and the request's id and tenant, are LiteLLM's and this process's to say, never the caller's."""

import copy
import json

import litellm
import pytest
from litellm.proxy._types import UserAPIKeyAuth
from strategies import FIELDS, every_format, spoken

from ctx_hooks.hook import CtxHooks
from ctx_hooks.litellm_compat.call import REQUEST_ID, Call, Deployment, key_id_of, with_request_id
from ctx_hooks.litellm_compat.logged import without_request_key


@pytest.mark.parametrize("name", ["metadata", "litellm_metadata"])
def test_the_id_stands_in_litellms_own_metadata_which_others_hold_as_well(name):
    own = {"a": 1}
    given = with_request_id({"model": "m", name: own})
    assert given == {"model": "m", name: own}
    assert given[name] is own
    assert own["a"] == 1
    assert Call(given).request_id == given[name][REQUEST_ID] != ""
    assert Call({"litellm_params": given}).request_id == Call(given).request_id


def test_on_chat_the_id_is_not_in_what_a_guardrail_adds():
    """Before the plugin is asked that has no object of key and team, and later it has one as well."""
    given = with_request_id({"litellm_metadata": {"user_api_key_user_id": "ann"}, **asked_by(user_id="ann")})
    assert REQUEST_ID in given["metadata"]
    for later in ({}, asked_by(user_id="ann")["metadata"]):
        assert Call({**given, "litellm_metadata": {"a": 1, **later}}).metadata is given["metadata"]


@pytest.mark.parametrize("sent", ["0123456789abcdef-1", "", 7, None, {"a": 1}], ids=repr)
def test_an_id_that_a_caller_sends_is_none_and_is_replaced(sent):
    fields = {"metadata": {REQUEST_ID: sent}}
    assert Call(fields).request_id == ""
    assert Call(with_request_id(fields)).request_id not in ("", sent)


def asked_by(**auth):
    return {"metadata": {"user_api_key_auth": UserAPIKeyAuth(**auth)}}


def test_the_tenant_is_the_team_else_the_user_else_the_key():
    team = Call(asked_by(team_id="red", user_id="ann", api_key="sk-1")).tenant
    assert team == Call(asked_by(team_id="red", user_id="bob", api_key="sk-2")).tenant
    user = Call(asked_by(user_id="ann", api_key="sk-1")).tenant
    assert user == Call(asked_by(user_id="ann", api_key="sk-2")).tenant
    key = Call(asked_by(api_key="sk-1")).tenant
    of_one_name = Call(asked_by(user_id="red")).tenant
    assert len({team, user, key, of_one_name, Call(asked_by(api_key="sk-2")).tenant, Call({}).tenant}) == 6
    assert "red" not in team


def test_no_body_says_who_asks():
    forged = {"team_id": "red", "api_key": "abc", "org_id": "all", "user_id": "ann"}
    body = {"metadata": {"user_api_key_auth": forged, **forged}, "litellm_metadata": {"user_api_key_auth": forged}, **forged}
    assert Call({**body, "user": "red"}).tenant == Call({}).tenant
    assert {Call(body).owner(scope) for scope in ("key", "team", "organization")} == {("nobody", "")}


@pytest.mark.parametrize(("scope", "given", "owner"), [
    ("key", {"api_key": "abc", "team_id": "red", "user_id": "ann"}, ("key", "abc")),
    ("team", {"api_key": "abc", "team_id": "red", "org_id": "all"}, ("team", "red")),
    ("organization", {"api_key": "abc", "team_id": "red", "org_id": "all"}, ("organization", "all")),
    ("team", {"api_key": "abc", "org_id": "all"}, ("key", "abc")), ("team", {"user_id": "ann"}, ("user", "ann")),
    ("team", {}, ("nobody", "")),
])  # fmt: skip
def test_whose_texts_are_is_said_by_scope_and_falls_back_to_the_key_and_the_user(scope, given, owner):
    assert Call(asked_by(**given)).owner(scope) == owner


def test_a_virtual_key_has_the_id_that_its_requests_carry():
    assert ("key", key_id_of("sk-1234")) == Call(asked_by(api_key="sk-1234")).owner("key")
    assert key_id_of(key_id_of("sk-1234")) == key_id_of("sk-1234") != "sk-1234"


@every_format
def test_digits_follow_beginning_of_conversation(fmt):
    """Two messages of the user may come first: the same instructions, and what is asked."""

    def request_of(task, *later):
        items = [spoken(fmt, "user", text) for text in ("Rules of the project. " * 300, task)]
        items += [spoken(fmt, "assistant", "Yes."), *(spoken(fmt, "user", text) for text in later)] if later else []
        return {"model": "gpt", FIELDS[fmt]: items, "metadata": {}}

    first, task = request_of("Mend the test."), "Mend the test."
    digits = Call(first).session_digits
    assert digits == Call(request_of(task, "And now?")).session_digits == Call(request_of(task, "Again.")).session_digits
    assert digits != Call(request_of("Write the page.")).session_digits
    translated = {**with_request_id(first), FIELDS[fmt]: [spoken(fmt, "user", "What is left of it")]}
    assert Call(translated).session_digits == digits


METADATA = {"team_metadata": {"ctx_hooks": {"language": "zh"}}, "metadata": {"ctx_hooks": {"max_turns": 7}}}
AUTH = UserAPIKeyAuth(team_id="t-1", team_alias="red", key_alias="ci", **METADATA)
DEPLOYMENT = Deployment("openai/x", {"ctx_hooks": "observe"})


@pytest.mark.parametrize("own", ["metadata", "litellm_metadata"])
def test_key_team_and_deployment_are_litellms_word(own):
    caller = Call({own: {"user_api_key_auth": AUTH}}).caller(DEPLOYMENT, "group")
    assert (caller.group, caller.team_names, caller.key_names) == ("group", ("t-1", "red"), ("ci",))
    assert json.loads(caller.team) == {"language": "zh"}
    assert json.loads(caller.key) == {"max_turns": 7}
    assert json.loads(caller.deployment) == "observe"


@pytest.mark.parametrize("fields", [
    {"litellm_session_id": "s", "user": "u", "metadata": {"session_id": "m"}},
    {"user": "u", "metadata": {"session_id": "s"}},
    {"user": "u", "litellm_metadata": {"a": 1}, "metadata": {"session_id": "s"}},
    {"user": "s", "proxy_server_request": {"headers": {"X-Session-Id": "h"}}},
    {"metadata": {"headers": {"x-session-id": "s"}}},
], ids=str)  # fmt: skip
def test_the_first_name_of_a_session_counts(fields):
    assert Call(fields).caller(DEPLOYMENT, "group").session == "s"


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
