"""Teams with policies of their own, on a real proxy: each is treated as it was told, and none harms another."""

from __future__ import annotations

import json

import pytest
from configurations import GENERAL, WINDOW, configuration, deployment, importable
from proxies import Proxy
from routes import CHAT, MESSAGES, RESPONSES

AUTH = """
import json, pathlib
from litellm.proxy._types import UserAPIKeyAuth

TEAMS = pathlib.Path(__file__).with_name("teams.json")

async def user_api_key_auth(request, api_key):
    team = api_key.removeprefix("sk-team-")
    metadata = json.loads(TEAMS.read_text()).get(team, {})
    return UserAPIKeyAuth(
        api_key=api_key,
        team_id=team,
        team_alias=team.upper(),
        team_metadata=metadata,
        team_model_aliases={"house-model": "fitted"},
        aliases={"my-model": "fitted"},
    )
"""
TEAMS = {
    "chinese": {"ctx_hooks": {"language": "zh"}},
    "greedy": {"ctx_hooks": {"reserve_tokens": 0, "language": "zh"}},
    "broken": {"ctx_hooks": {"languag": "zh"}},
    "off": {"ctx_hooks": {"enabled": False}},
    "plain": {},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    found = tmp_path_factory.mktemp("auth")
    (found / "teams.json").write_text(json.dumps(TEAMS))
    return found


@pytest.fixture(scope="module")
def team_proxy(provider, folder):
    models = (
        deployment(provider.url, "fitted", "openai/served", max_input_tokens=WINDOW),
        deployment(provider.url, "fitted-claude", "anthropic/served", max_input_tokens=WINDOW),
        deployment(provider.url, "gentle", "openai/large", max_input_tokens=WINDOW),
        deployment(provider.url, "gentle-served", "openai/served", max_input_tokens=WINDOW),
        deployment(provider.url, "blocked", "openai/large", max_input_tokens=WINDOW),
        deployment(provider.url, "openai/*", "openai/*", max_input_tokens=WINDOW),
        deployment(provider.url, "unknown", "openai/served"),
    )
    settings = {
        "defaults": {
            "reserve_tokens": 500,
            "locked": ["reserve_tokens"],
            "request_policies": ["off"],
            "request_may_set": ["language"],
        },
        "models": {"gentle*": "gentle", "blocked": {"block_below_tokens": 16_000}, "openai/*": {"language": "zh"}},
        "teams": {"PLAIN": {"retrieval_fraction": 0}},
    }
    config = configuration(provider.url, *models, callback_settings={"ctx_hooks": settings})
    aliases = {"nickname": "fitted", "unknown-nickname": "unknown"}
    config["router_settings"] = {"model_group_alias": aliases, "num_retries": 2, "routing_strategy": "least-busy"}
    config["general_settings"] = {**GENERAL, "custom_auth": "team_auth.user_api_key_auth"}
    with Proxy(config, importable(folder, "team_auth", AUTH)) as running:
        yield running


def ask(proxy, provider, team, *, route=CHAT, group=None, headers=None, **fields):
    provider.reset()
    answer = route.ask(
        proxy, group=group or route.fitted, headers={"authorization": f"Bearer sk-team-{team}", **(headers or {})}, **fields
    )
    requests = provider.requests()
    return answer, json.dumps(requests[-1]["payload"], ensure_ascii=False) if requests else ""


def test_two_teams_are_treated_by_their_own_policies(team_proxy, provider):
    assert "已移除" in ask(team_proxy, provider, "chinese")[1]
    assert "已移除" not in ask(team_proxy, provider, "plain")[1]


def test_a_team_cannot_set_a_locked_field_and_keeps_its_others(team_proxy, provider):
    answer, sent = ask(team_proxy, provider, "greedy")
    assert answer.status_code == 200
    assert "已移除" in sent
    assert "reserve_tokens is locked by defaults" in team_proxy.log()


def test_broken_metadata_of_a_team_harms_nobody_and_is_reported_once(team_proxy, provider):
    for _ in range(3):
        assert ask(team_proxy, provider, "broken")[0].status_code == 200
    assert "已移除" in ask(team_proxy, provider, "chinese")[1]
    assert team_proxy.log().count("did you mean 'language'") == 1


def test_a_change_of_metadata_takes_effect_with_the_next_request(team_proxy, provider, folder):
    assert "已移除" not in ask(team_proxy, provider, "changing")[1]
    (folder / "teams.json").write_text(json.dumps({**TEAMS, "changing": {"ctx_hooks": {"language": "zh"}}}))
    assert "已移除" in ask(team_proxy, provider, "changing")[1]


def test_a_team_that_is_switched_off_gets_the_providers_own_refusal(team_proxy, provider):
    assert ask(team_proxy, provider, "off")[0].status_code == 400
    assert len(provider.requests()) == 1


def test_a_request_may_switch_off_what_the_policy_lets_it(team_proxy, provider):
    answer, _ = ask(team_proxy, provider, "plain", headers={"x-ctx-hooks": "off"})
    assert answer.status_code == 400
    answer, _ = ask(team_proxy, provider, "plain", headers={"x-ctx-hooks": "nanobot"})
    assert answer.status_code == 200
    assert "nanobot" in answer.headers["x-ctx-hooks-ignored"]


@pytest.mark.parametrize("route", [CHAT, MESSAGES, RESPONSES], ids=["chat", "messages", "responses"])
def test_fields_in_the_requests_metadata_hold_where_allowed_and_never_reach_the_provider(route, team_proxy, provider):
    metadata = {"ctx_hooks": {"language": "zh", "reserve_tokens": 1}}
    answer, sent = ask(team_proxy, provider, "plain", route=route, metadata=metadata)
    assert answer.status_code == 200, answer.text
    assert "已移除" in sent
    assert 'ctx_hooks"' not in sent
    assert "reserve_tokens may not be set" in answer.headers["x-ctx-hooks-ignored"]


def test_answers_say_what_was_done(team_proxy, provider):
    answer, _ = ask(team_proxy, provider, "plain")
    assert answer.headers["x-ctx-hooks"].startswith("compressed; before=")


def test_a_gentle_model_keeps_every_turn(team_proxy, provider):
    answer, sent = ask(team_proxy, provider, "plain", group="gentle")
    assert answer.status_code == 200
    assert "earlier messages were removed" not in sent


def test_a_gentle_model_is_rescued_in_full(team_proxy, provider):
    answer, _ = ask(team_proxy, provider, "plain", group="gentle-served")
    assert answer.status_code == 200
    assert [r["status"] for r in provider.requests()] == [400, 200]
    assert answer.headers["x-ctx-hooks"].startswith("retried; before=")


def test_a_window_below_the_operators_least_is_answered_before_any_call(team_proxy, provider):
    answer, _ = ask(team_proxy, provider, "plain", group="blocked")
    assert answer.status_code == 400
    assert "below the least" in answer.text
    assert provider.requests() == []


def test_wildcard_models_are_matched_by_pattern(team_proxy, provider):
    assert "已移除" in ask(team_proxy, provider, "plain", group="openai/served")[1]


@pytest.mark.parametrize("name", ["nickname", "house-model", "my-model"])
def test_aliases_of_the_router_of_a_team_and_of_a_key_are_the_groups_they_stand_for(name, team_proxy, provider):
    answer, _ = ask(team_proxy, provider, "plain", group=name)
    assert answer.status_code == 200, answer.text
    assert [r["status"] for r in provider.requests()] == [200], "the window of the group behind the alias is known"
    assert answer.headers["x-ctx-hooks"].startswith("compressed")


@pytest.mark.parametrize("route", [CHAT, MESSAGES, RESPONSES], ids=["chat", "messages", "responses"])
def test_an_overflow_behind_an_alias_is_rescued(route, team_proxy, provider):
    answer, _ = ask(team_proxy, provider, "plain", route=route, group="unknown-nickname")
    assert answer.status_code == 200, answer.text
    assert [r["status"] for r in provider.requests()][-1] == 200
