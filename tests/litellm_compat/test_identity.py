"""A request's id and its tenant are this process's and LiteLLM's to say, never the caller's."""

from __future__ import annotations

import pytest
from litellm.proxy._types import UserAPIKeyAuth

from ctx_hooks.litellm_compat import request_id_of, tenant_of, with_request_id
from ctx_hooks.litellm_compat.identity import REQUEST_ID


@pytest.mark.parametrize("name", ["metadata", "litellm_metadata"])
def test_the_id_stands_in_litellms_own_metadata_which_others_hold_as_well(name):
    own = {"a": 1}
    given = with_request_id({"model": "m", name: own})
    assert given == {"model": "m", name: own}
    assert given[name] is own
    assert own["a"] == 1
    assert request_id_of(given) == given[name][REQUEST_ID] != ""
    assert request_id_of({"litellm_params": given}) == request_id_of(given)


def test_two_requests_have_two_ids():
    assert request_id_of(with_request_id({})) != request_id_of(with_request_id({}))


@pytest.mark.parametrize("sent", ["0123456789abcdef-1", "", 7, None, {"a": 1}], ids=repr)
def test_an_id_that_a_caller_sends_is_none_and_is_replaced(sent):
    fields = {"metadata": {REQUEST_ID: sent}}
    assert request_id_of(fields) == ""
    assert request_id_of(with_request_id(fields)) not in ("", sent)


def asked_by(**auth):
    return {"metadata": {"user_api_key_auth": UserAPIKeyAuth(**auth)}}


def test_the_tenant_is_the_team_else_the_user_else_the_key():
    team = tenant_of(asked_by(team_id="red", user_id="ann", api_key="sk-1"))
    assert team == tenant_of(asked_by(team_id="red", user_id="bob", api_key="sk-2"))
    user = tenant_of(asked_by(user_id="ann", api_key="sk-1"))
    assert user == tenant_of(asked_by(user_id="ann", api_key="sk-2"))
    key = tenant_of(asked_by(api_key="sk-1"))
    assert len({team, user, key, tenant_of(asked_by(api_key="sk-2")), tenant_of({})}) == 5


def test_a_team_and_a_user_of_one_name_are_two_tenants_and_a_digest_holds_neither_name():
    team, user = tenant_of(asked_by(team_id="red")), tenant_of(asked_by(user_id="red"))
    assert team != user
    assert "red" not in team


def test_no_body_says_who_asks():
    assert tenant_of({"metadata": {"user_api_key_auth": {"team_id": "red"}, "team_id": "red"}, "user": "red"}) == tenant_of(
        {}
    )
