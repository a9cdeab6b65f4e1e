"""Teams with policies of their own, on a real proxy: each is treated as it was told, and none harms another."""

import json

import pytest
from routes import CHAT, MESSAGES, RESPONSES

CALLERS = {
    "chinese": {"team_metadata": {"ctx_hooks": {"language": "zh"}}},
    "plain": {"team_model_aliases": {"house-model": "fitted"}, "aliases": {"my-model": "fitted"}},
}


def ask(proxy, provider, team, *, route=CHAT, group=None, headers=None, **fields):
    provider.reset()
    answer = route.ask(
        proxy, group=group or route.fitted, headers={"authorization": f"Bearer sk-{team}", **(headers or {})}, **fields
    )
    requests = provider.requests()
    return answer, json.dumps(requests[-1]["payload"], ensure_ascii=False) if requests else ""


def test_a_change_of_metadata_takes_effect_with_the_next_request(proxy, provider, callers):
    assert "已移除" not in ask(proxy, provider, "changing")[1]
    callers.write_text(json.dumps({**json.loads(callers.read_text()), "changing": CALLERS["chinese"]}))
    assert "已移除" in ask(proxy, provider, "changing")[1]


def test_a_request_may_switch_off_what_the_policy_lets_it(proxy, provider):
    answer, _ = ask(proxy, provider, "plain", headers={"x-ctx-hooks": "off"})
    assert answer.status_code == 400
    answer, _ = ask(proxy, provider, "plain", headers={"x-ctx-hooks": "observe"})
    assert answer.status_code == 200
    assert "observe" in answer.headers["x-ctx-hooks-ignored"]


@pytest.mark.parametrize("route", [CHAT, MESSAGES, RESPONSES], ids=["chat", "messages", "responses"])
def test_fields_in_the_requests_metadata_hold_where_allowed_and_never_reach_the_provider(route, proxy, provider):
    metadata = {"ctx_hooks": {"language": "zh", "reserve": 1}}
    answer, sent = ask(proxy, provider, "plain", route=route, metadata=metadata)
    assert answer.status_code == 200, answer.text
    assert "已移除" in sent
    assert 'ctx_hooks"' not in sent
    assert "reserve may not be set" in answer.headers["x-ctx-hooks-ignored"]


@pytest.mark.parametrize("name", ["nickname", "house-model", "my-model"])
def test_aliases_of_the_router_of_a_team_and_of_a_key_are_the_groups_they_stand_for(name, proxy, provider):
    answer, _ = ask(proxy, provider, "plain", group=name)
    assert answer.status_code == 200, answer.text
    assert [r["status"] for r in provider.requests()] == [200], "the window of the group behind the alias is known"
    assert answer.headers["x-ctx-hooks"].startswith("compressed")
