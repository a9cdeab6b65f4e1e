"""Each caller is treated as the operator says, and what a caller sends steers nothing else."""

import json

import pytest
from configurations import deployment
from routes import CHAT, GEMINI, MESSAGES, RESPONSES, size_before

from ctx_hooks.testing import agent_session

FOUR = {CHAT: "openai/served", MESSAGES: "anthropic/claude-served", RESPONSES: "openai/served", GEMINI: "gemini/served"}
OFF, CHINESE = {"mode": "off"}, {"team_metadata": {"ctx_hooks": {"language": "zh"}}}
TPM = 20_000
CALLERS = {
    "locked": {"team_metadata": {"ctx_hooks": {"locked": ["mode"]}}},
    "plain": {"team_model_aliases": {"house-model": "fitted"}, "aliases": {"my-model": "fitted"}},
    "throttled": {"tpm_limit": TPM},
}
POLICIES = {"models": {"open": OFF}, "teams": {"vip": OFF}, "keys": {"vip": OFF}, "sessions": {"off:*": OFF}}
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


def named(case):
    return f"{case[0]}-{case[1].fmt}"


def groups(url):
    return [deployment(url, f"steered-{named(case)}", FOUR[case[1]]) for case in STEERED]


def ask(proxy, provider, team, *, route=CHAT, group=None, headers=None, **fields):
    """Return the answer to a team's request, and what the provider read last."""
    headers = {"authorization": f"Bearer sk-{team}", **(headers or {})}
    answer = route.ask(proxy, group=group or route.fitted, headers=headers, **fields)
    requests = provider.requests()
    return answer, json.dumps(requests[-1]["payload"], ensure_ascii=False) if requests else ""


@pytest.mark.parametrize("case", STEERED, ids=named)
def test_caller_switches_off_nothing_that_is_locked(case, proxy, provider):
    """The first attempt is refused, so an answer needs the plugin in every one of its hooks."""
    provider.configure(wording="cerebras")
    place, route = case
    answer, _ = ask(proxy, provider, "locked", route=route, group=f"steered-{named(case)}", **STEERING[place])
    assert answer.status_code == 200, answer.text
    assert answer.headers["x-ctx-hooks"].startswith("retried")


def test_changed_metadata_apply_to_next_request(proxy, provider, callers):
    assert "已移除" not in ask(proxy, provider, "changing")[1]
    callers.write_text(json.dumps({**json.loads(callers.read_text()), "changing": CHINESE}))
    assert "已移除" in ask(proxy, provider, "changing")[1]


def test_request_switches_off_what_policy_lets_it(proxy, provider):
    answer, _ = ask(proxy, provider, "plain", headers={"x-ctx-hooks": "off"})
    assert answer.status_code == 400
    answer, _ = ask(proxy, provider, "plain", headers={"x-ctx-hooks": "observe"})
    assert (answer.status_code, "observe" in answer.headers["x-ctx-hooks-ignored"]) == (200, True)


@pytest.mark.parametrize("route", list(FOUR)[:3], ids=lambda route: route.fmt)
def test_requests_metadata_never_reach_provider(route, proxy, provider):
    metadata = {"ctx_hooks": {"language": "zh", "reserve": 1}}
    answer, sent = ask(proxy, provider, "plain", route=route, metadata=metadata)
    assert answer.status_code == 200, answer.text
    assert ("已移除" in sent, 'ctx_hooks"' in sent) == (True, False)
    assert "reserve may not be set" in answer.headers["x-ctx-hooks-ignored"]


@pytest.mark.parametrize("name", ["nickname", "house-model", "my-model"])
def test_aliases_are_the_groups_they_name(name, proxy, provider):
    answer, _ = ask(proxy, provider, "plain", group=name)
    assert answer.status_code == 200, answer.text
    assert [r["status"] for r in provider.requests()] == [200], "the window of the group behind the alias is known"
    assert answer.headers["x-ctx-hooks"].startswith("compressed")


@pytest.mark.parametrize(("name", "status"), [("proxy", 429), ("checking", 200)])
def test_long_request_passes_tpm_limit_without_reservation(request, name, status):
    """LiteLLM reserves the tokens of a request as it was sent, unless told not to, as at the checking proxy."""
    session = agent_session("openai-chat", turns=40, result_chars=4_000, model="fitted")
    assert len(json.dumps(session)) > 4 * TPM
    answer = CHAT.post(request.getfixturevalue(name), session, headers={"authorization": "Bearer sk-throttled"})
    assert answer.status_code == status
    if status == 200:
        assert answer.headers["x-ctx-hooks-decision"] == "compressed"
        assert size_before(answer) > TPM, "it is fitted before the Router chooses, and reported with its received size"


def test_requests_mode_in_metadata_never_reaches_provider(proxy, provider):
    """LiteLLM itself passes metadata of texts on."""
    answer, sent = ask(proxy, provider, "plain", route=RESPONSES, metadata={"ctx_hooks": "observe", "purpose": "a test"})
    assert json.loads(sent)["metadata"] == {"purpose": "a test"}, answer.text
