"""A further call is on the account of the first, and takes nothing along that is the first call's alone."""

import copy

import pytest
from litellm.proxy._types import UserAPIKeyAuth

from ctx_hooks.addons.retrieval.addon import further_fields
from ctx_hooks.litellm_compat.call import Call, with_request_id
from ctx_hooks.litellm_compat.logged import Figures

MESSAGES = [{"role": "user", "content": "hello"}]


def first_call(name="metadata"):
    auth = UserAPIKeyAuth(api_key="hashed", team_id="team", budget_reservation={"reserved_cost": 1.0})
    metadata = {
        "user_api_key": "hashed",
        "user_api_key_team_id": "team",
        "tags": ["mine"],
        "user_api_key_auth": auth,
        "user_api_key_budget_reservation": auth.budget_reservation,
        "compression_savings": Figures(tokens_saved=5),
        "spend_logs_metadata": {"ctx_hooks": Figures(attempt=0), "own": 1},
    }
    fields = {"model": "group", "messages": MESSAGES, "litellm_call_id": "first", "litellm_logging_obj": object()}
    return with_request_id({**fields, "deployment": object(), name: metadata})


@pytest.mark.parametrize("name", ["metadata", "litellm_metadata"])
def test_further_call_has_the_account(name):
    first = first_call(name)
    before = copy.copy(first[name])
    further = further_fields(first, {"stream": True})
    assert further.keys() == {"model", "messages", "stream", "litellm_call_id", name}
    assert further["litellm_call_id"] != "first"
    assert Call(with_request_id(further)).request_id not in ("", Call(first).request_id)
    own = further[name]
    assert (own["user_api_key"], own["user_api_key_team_id"], own["tags"]) == ("hashed", "team", ["mine"])
    assert own["user_api_key_auth"].team_id == "team"
    assert own["user_api_key_auth"].budget_reservation is None
    assert "user_api_key_budget_reservation" not in own
    assert "compression_savings" not in own
    assert own["spend_logs_metadata"] == {"own": 1}
    assert first[name] == before, "the first call is not logged yet"
    assert first[name]["user_api_key_auth"].budget_reservation


def test_figures_of_other_compressors_stay():
    first = first_call()
    first["metadata"]["compression_savings"] = {"tokens_saved": 7}
    assert further_fields(first, {})["metadata"]["compression_savings"] == {"tokens_saved": 7}
