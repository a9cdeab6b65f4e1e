"""A proxy with a real PostgreSQL: policies and models are made and changed by LiteLLM's API, and the spend is stored."""

import json

import pytest
from configurations import GENERAL, PLUGIN, WINDOW, deployment
from database_process import DatabaseProcess
from documentation import blocks
from routes import CHAT

from ctx_hooks.testing import LOOPBACK, ProxyProcess

pytestmark = pytest.mark.deploy

STORED = {**GENERAL, "store_model_in_db": True}
SETTINGS = {"ctx_hooks": {"defaults": {"reserve": 500, "rescue_attempts": 2}}}
TIGHT = {"max_input_tokens": 12_000, "ctx_hooks": {"reserve": "45%"}}
"""Holds a session of 8,000 tokens, but not the share that its policy keeps free for the answer as well."""
INPUT, OUTPUT = 0.001, 0.01
PRICES = {"input_cost_per_token": INPUT, "output_cost_per_token": OUTPUT}
"""LiteLLM's API takes them in `litellm_params` alone."""
CHINESE, ENGLISH = {"ctx_hooks": {"language": "zh"}}, {"ctx_hooks": {"language": "en"}}
PLACEHOLDER = "已移除"
"""Stands in each request that was compressed in Chinese."""
ORGANIZATION = """
insert into "LiteLLM_BudgetTable" (budget_id, created_by, updated_by) values ('budget', 'test', 'test');
insert into "LiteLLM_OrganizationTable"
(organization_id, organization_alias, budget_id, models, metadata, created_by, updated_by)
values ('house', 'house', 'budget', '{}', :'metadata', 'test', 'test');
"""
SPENT = """select row_to_json(spent) from "LiteLLM_SpendLogs" spent where team_id = :'team'"""
DAY = """select row_to_json(day) from "LiteLLM_DailyTeamSpend" day where team_id = :'team'"""


@pytest.fixture(scope="module")
def database():
    with DatabaseProcess() as running:
        yield running


@pytest.fixture(scope="module")
def stored(provider, database):
    """A proxy whose YAML names the plugin and the database; its models are added while it runs."""
    config = {"litellm_settings": {"callbacks": [PLUGIN]}, "callback_settings": SETTINGS, "general_settings": STORED}
    tight = deployment(provider.url, "tight", "openai/large", **TIGHT)
    models = (
        deployment(provider.url, "fitted", "openai/served", max_input_tokens=WINDOW),
        deployment(provider.url, "unknown", "openai/served"),
        {**tight, "litellm_params": {**tight["litellm_params"], **PRICES}},
    )
    with ProxyProcess(config, database.environment()) as running:
        for model in models:
            manage(running, "/model/new", **model)
        yield running


def manage(proxy, path, method="POST", **fields):
    answer = LOOPBACK.request(method, proxy.url + path, json=fields, headers=proxy.headers, timeout=300)
    assert answer.status_code == 200, answer.text
    return answer.json()


def team_of(proxy, **fields):
    return manage(proxy, "/team/new", **fields)["team_id"]


def key_of(proxy, **fields):
    return manage(proxy, "/key/generate", **fields)["key"]


def ask(proxy, provider, key, group="fitted"):
    """Return the answer to a session of 8,000 tokens, and what the provider read last."""
    provider.reset()
    answer = CHAT.ask(proxy, group=group, headers={"authorization": f"Bearer {key}"})
    return answer, json.dumps(provider.requests()[-1]["payload"], ensure_ascii=False)


def is_chinese(proxy, provider, key):
    answer, sent = ask(proxy, provider, key)
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-ctx-hooks-decision"] == "compressed"
    return PLACEHOLDER in sent


def test_changed_team_metadata_apply_to_next_request(stored, provider):
    team = team_of(stored, metadata=CHINESE)
    key = key_of(stored, team_id=team)
    assert is_chinese(stored, provider, key)
    manage(stored, "/team/update", team_id=team, metadata=ENGLISH)
    assert not is_chinese(stored, provider, key)


def test_organizations_lock_binds_its_teams(stored, provider, database):
    """LiteLLM's API makes organizations with an enterprise licence alone: the row is written as that API writes it."""
    database.rows(ORGANIZATION, metadata=json.dumps({"ctx_hooks": {"language": "zh", "locked": ["language"]}}))
    team = team_of(stored, organization_id="house", metadata=ENGLISH)
    assert is_chinese(stored, provider, key_of(stored, team_id=team))
    assert "team: language is locked by organization" in stored.log()


def test_model_of_database_is_rescued(stored, provider):
    answer, _ = ask(stored, provider, key_of(stored), "unknown")
    assert answer.status_code == 200
    assert answer.headers["x-ctx-hooks-decision"] == "retried"
    assert [request["status"] for request in provider.requests()] == [400, 200]


def test_spend_log_and_team_day_have_savings(stored, provider, database):
    team = team_of(stored, metadata=CHINESE)
    answer, _ = ask(stored, provider, key_of(stored, team_id=team), "tight")
    usage = answer.json()["usage"]
    stored.wait_until(lambda: database.rows(SPENT, team=team) and database.rows(DAY, team=team), "the spend to be stored")
    row, day = (json.loads(database.rows(query, team=team)[0]) for query in (SPENT, DAY))
    figures, savings = row["metadata"]["spend_logs_metadata"]["ctx_hooks"], row["metadata"]["compression_savings"]
    assert row["metadata"]["litellm_call_id"] == answer.headers["x-litellm-call-id"]
    assert (figures["decision"], figures["policy"]) == ("compressed", "defaults, model_info.ctx_hooks, team")
    assert "ctx_hooks:compressed" in row["request_tags"]
    assert savings["source"] == "ctx_hooks"
    assert savings["tokens_after"] == usage["prompt_tokens"]
    assert savings["tokens_saved"] == figures["tokens_saved"] == day["compression_saved_tokens"] > 0
    assert day["compression_savings_spend"] == pytest.approx(figures["dollars_saved"])
    cost = usage["prompt_tokens"] * INPUT + usage["completion_tokens"] * OUTPUT
    assert row["spend"] == day["spend"] == pytest.approx(cost), "the team pays what the provider bills"
    (query,) = blocks("sql")
    of_the_team = [line.split("|") for line in database.rows(query.text) if line.startswith(team)]
    assert of_the_team == [[team, "1", "0", str(figures["tokens_saved"]), str(figures["dollars_saved"])]], (
        "docs/telemetry.md"
    )
