"""Each caller is treated as the operator says, and what a caller sends steers nothing else."""

import json

import pytest
from configurations import BELIEVED, deployment
from routes import CHAT, GEMINI, MESSAGES, RESPONSES

FOUR = (CHAT, MESSAGES, RESPONSES, GEMINI)
OFF = {"mode": "off"}
LOCKED = {"authorization": "Bearer sk-locked"}
CALLERS = {
    "locked": {"team_metadata": {"ctx_hooks": {"locked": ["mode"]}}},
    "chinese": {"team_metadata": {"ctx_hooks": {"language": "zh"}}},
    "plain": {"team_model_aliases": {"house-model": "fitted"}, "aliases": {"my-model": "fitted"}},
}
POLICIES = {"models": {"open": OFF}, "teams": {"vip": OFF}, "keys": {"vip": OFF}, "sessions": {"off:*": OFF}}


def groups(url):
    served = zip(FOUR, ("openai/served", "anthropic/claude-served", "openai/served", "gemini/served"), strict=True)
    for route, model in served:
        for place in STEERING:
            yield deployment(url, f"steered-{place}-{route.fmt}", model, max_input_tokens=BELIEVED)


FORGED = {
    "user_api_key_team_id": "vip",
    "user_api_key_auth": {"team_id": "vip", "key_alias": "vip", "metadata": {"ctx_hooks": OFF}},
    "model_info": {"ctx_hooks": OFF},
    "tags": ["off"],
}
METADATA = {**FORGED, "model_group": "open", "session_id": "off:1", "ctx_hooks": OFF}
STEERING = {
    "metadata": {"metadata": METADATA},
    "litellm-metadata": {"litellm_metadata": METADATA},
    "body": {**FORGED, "litellm_session_id": "off:1", "user": "off:1"},
    "headers": {"headers": {"x-ctx-hooks": "off", "x-session-id": "off:1", "x-litellm-tags": "off"}},
}


STEERED = [(place, route) for n, place in enumerate(STEERING) for m, route in enumerate(FOUR) if (n + m) % 2 == 0]


@pytest.mark.parametrize(("place", "route"), STEERED, ids=[f"{place}-{route.fmt}" for place, route in STEERED])
def test_caller_switches_off_nothing_that_is_locked(place, route, proxy, provider):
    """The first attempt is refused, so an answer needs the plugin in every one of its hooks."""
    provider.configure(wording="cerebras")
    fields = STEERING[place]
    headers = {**LOCKED, **fields.get("headers", {})}
    answer = route.ask(proxy, group=f"steered-{place}-{route.fmt}", **{**fields, "headers": headers})
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-ctx-hooks"].startswith("retried")


def ask(proxy, provider, team, *, route=CHAT, group=None, headers=None, **fields):
    provider.reset()
    answer = route.ask(
        proxy, group=group or route.fitted, headers={"authorization": f"Bearer sk-{team}", **(headers or {})}, **fields
    )
    requests = provider.requests()
    return answer, json.dumps(requests[-1]["payload"], ensure_ascii=False) if requests else ""


def test_changed_metadata_apply_to_next_request(proxy, provider, callers):
    assert "已移除" not in ask(proxy, provider, "changing")[1]
    callers.write_text(json.dumps({**json.loads(callers.read_text()), "changing": CALLERS["chinese"]}))
    assert "已移除" in ask(proxy, provider, "changing")[1]


def test_request_switches_off_what_policy_lets_it(proxy, provider):
    answer, _ = ask(proxy, provider, "plain", headers={"x-ctx-hooks": "off"})
    assert answer.status_code == 400
    answer, _ = ask(proxy, provider, "plain", headers={"x-ctx-hooks": "observe"})
    assert answer.status_code == 200
    assert "observe" in answer.headers["x-ctx-hooks-ignored"]


@pytest.mark.parametrize("route", FOUR[:3], ids=lambda route: route.fmt)
def test_requests_metadata_never_reach_provider(route, proxy, provider):
    metadata = {"ctx_hooks": {"language": "zh", "reserve": 1}}
    answer, sent = ask(proxy, provider, "plain", route=route, metadata=metadata)
    assert answer.status_code == 200, answer.text
    assert "已移除" in sent
    assert 'ctx_hooks"' not in sent
    assert "reserve may not be set" in answer.headers["x-ctx-hooks-ignored"]


@pytest.mark.parametrize("name", ["nickname", "house-model", "my-model"])
def test_aliases_are_the_groups_they_name(name, proxy, provider):
    answer, _ = ask(proxy, provider, "plain", group=name)
    assert answer.status_code == 200, answer.text
    assert [r["status"] for r in provider.requests()] == [200], "the window of the group behind the alias is known"
    assert answer.headers["x-ctx-hooks"].startswith("compressed")
