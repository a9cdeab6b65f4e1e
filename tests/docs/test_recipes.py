"""What each recipe of the documentation promises, seen at the provider: one proxy serves all of them."""

import os
import subprocess
import sys
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import yaml
from documentation import ROOT, blocks, recipes
from proxies import Proxy

from ctx_hooks.testing import LOOPBACK, MASTER_KEY, ProviderSettings, agent_session, violations

QUICK_START = "docs/index.md"
LATER = ("pip install", "ctx-hooks init", "ctx-hooks demo", "litellm --config")
"""Steps of it that tests/deploy and tests/cli run, and the start of the proxy, which runs here already."""
CODEX_WINDOW, LARGE_WINDOW = 272_000, 1_000_000
PROVIDER = (ProviderSettings(window_tokens=LARGE_WINDOW),)
PARTS = """
from litellm.integrations.custom_logger import CustomLogger
from litellm.proxy._types import UserAPIKeyAuth

class Answers(CustomLogger):
    async def async_log_success_event(self, kwargs, response_obj, start_time, end_time):
        print("heard of the answer to", kwargs.get("litellm_call_id"), flush=True)

async def user_api_key_auth(request, api_key):
    return UserAPIKeyAuth(api_key=api_key, team_id=api_key.removeprefix("sk-team-"))

answers = Answers()
"""
"""Says of a key what a database would, its team; and when the plugin, a callback before it, has learned from an answer."""


def merged(configurations):
    """Return one configuration with the models and settings of several, which must not contradict each other."""
    models, scopes, router = [], {}, {}
    for configuration in configurations:
        assert configuration["litellm_settings"] == {"callbacks": ["ctx_hooks.proxy_handler_instance"]}
        models += configuration["model_list"]
        router |= configuration.get("router_settings", {})
        for section, entries in configuration.get("callback_settings", {}).get("ctx_hooks", {}).items():
            known = scopes.setdefault(section, {})
            assert not known.keys() & entries.keys()
            known.update(entries)
    return {
        "model_list": models,
        "litellm_settings": {"callbacks": ["ctx_hooks.proxy_handler_instance", "recipes_parts.answers"], "num_retries": 0},
        "router_settings": router,
        "callback_settings": {"ctx_hooks": scopes},
        "general_settings": {
            "master_key": "os.environ/LITELLM_MASTER_KEY",
            "custom_auth": "recipes_parts.user_api_key_auth",
        },
    }


def quick_start():
    """Return the configuration that the quick start makes in its steps, without the one that observes."""
    found = [yaml.safe_load(block.text) for block in blocks("yaml") if block.page == QUICK_START]
    return {section: value for part in found for section, value in part.items() if section != "callback_settings"}


def point(configuration, provider_url):
    """Point every deployment at the provider, at the path that its own address has."""
    for model in configuration["model_list"]:
        params = model["litellm_params"]
        usual = "" if params["model"].startswith("anthropic/") else "/v1"
        path = urlsplit(params["api_base"]).path if "api_base" in params else usual
        params.update(api_base=provider_url + path, api_key="not-a-key")


@pytest.fixture(scope="module")
def proxy(provider, tmp_path_factory):
    folder = tmp_path_factory.mktemp("recipes")
    (folder / "recipes_parts.py").write_text(PARTS)
    configuration = merged([yaml.safe_load(text) for text in recipes().values()])
    configuration["model_list"] += quick_start()["model_list"]
    point(configuration, provider.url)
    with Proxy(configuration, {"PYTHONPATH": os.pathsep.join([str(folder), str(ROOT)])}) as running:
        yield running


@pytest.fixture(autouse=True)
def _fresh_provider(provider):
    provider.reset(window_tokens=LARGE_WINDOW, windows={}, wording="openai", counts_output=False)


def ask(proxy, path, payload, key=MASTER_KEY, user_agent="a client"):
    """Return the answer to a request, which has to be one, when it was learned from."""
    headers = {"Authorization": f"Bearer {key}", "User-Agent": user_agent}
    answer = LOOPBACK.post(proxy.url + path, json=payload, headers=headers, timeout=300)
    assert answer.status_code == 200, answer.text
    said = f"heard of the answer to {answer.headers['x-litellm-call-id']}"
    proxy.wait_until(lambda: said in proxy.log(), said)
    return answer


def accepted(provider):
    """Return the only request that the provider has answered; what it got kept its rules."""
    (only,) = [r for r in provider.requests() if r["status"] == 200]
    assert violations(only["format"], only["payload"]) == []
    return only


def texts(payload):
    """Return the texts of a chat request's messages."""
    return [message["content"] for message in payload["messages"]]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
def test_claude_code_is_answered_past_the_window_of_a_local_model_that_counts_the_output(stream, proxy, provider):
    for turns, more_than_tokens in ((70, 0), (34, 65_536 - 32_000)):
        provider.reset(window_tokens=65_536, wording="openai_requested", counts_output=True)
        payload = agent_session("anthropic", model="local-coder", turns=turns)
        ask(proxy, "/v1/messages", {**payload, "max_tokens": 32_000, "stream": stream})
        sent = accepted(provider)
        assert sent["input_tokens"] > more_than_tokens, "no message gives way to the requested output"
        assert sent["input_tokens"] + sent["max_tokens"] <= 65_536


@pytest.mark.parametrize(("turns", "whole"), [(207, True), (240, False)], ids=["reserve used", "beyond the window"])
def test_codex_is_left_to_compact_by_itself_until_the_window_is_full(turns, whole, proxy, provider):
    """257,000 tokens are more than the window less the reserve, and less than the window and the error of an estimate."""
    provider.reset(window_tokens=CODEX_WINDOW)
    payload = agent_session("openai-responses", model="codex", turns=turns)
    ask(proxy, "/v1/responses", payload, user_agent="codex_exec/0.169.0")
    sent = accepted(provider)
    assert sent["input_tokens"] <= CODEX_WINDOW
    assert (sent["payload"]["input"] == payload["input"]) is whole


def test_a_team_is_held_to_its_limit_and_the_others_are_not(proxy, provider):
    payload = agent_session("anthropic", model="sonnet", turns=60)
    ask(proxy, "/v1/messages", payload, "sk-team-interns")
    assert accepted(provider)["input_tokens"] <= 40_000
    provider.reset()
    ask(proxy, "/v1/messages", {**payload, "metadata": {"ctx_hooks": {"window_tokens": 200_000}}}, "sk-team-interns")
    assert accepted(provider)["input_tokens"] <= 40_000, "no request raises it"
    provider.reset()
    ask(proxy, "/v1/messages", payload, "sk-team-seniors")
    assert accepted(provider)["payload"]["messages"] == payload["messages"]


def test_a_large_max_tokens_is_lowered_and_no_message_is_cut(proxy, provider):
    for turns, team in ((3, "a"), (15, "b"), (15, "c")):  # the second has 18,500 tokens
        provider.reset(window_tokens=32_768, wording="openai_requested", counts_output=True)
        payload = agent_session("openai-chat", model="qwen", turns=turns)
        ask(proxy, "/v1/chat/completions", {**payload, "max_tokens": 32_000}, f"sk-team-{team}")
        sent = accepted(provider)
        assert sent["max_tokens"] < 32_000
        assert texts(sent["payload"]) == texts(payload)


def test_a_window_smaller_than_the_reserve_is_used(proxy, provider):
    provider.reset(window_tokens=16_384, wording="llamacpp")
    ask(proxy, "/v1/chat/completions", agent_session("openai-chat", model="llama", turns=30))
    assert 4_000 < accepted(provider)["input_tokens"] <= 16_384
    assert [r["status"] for r in provider.requests()] == [200], "it was fitted before the call"


def test_a_long_request_goes_whole_to_the_deployment_that_holds_it(proxy, provider):
    """Three times: by itself the Router chooses either."""
    provider.reset(windows={"small": 16_000})
    payload = agent_session("openai-chat", model="assistant", turns=24)
    for _ in range(3):
        ask(proxy, "/v1/chat/completions", payload)
    assert [(r["model"], texts(r["payload"])) for r in provider.requests()] == [("gpt-4.1", texts(payload))] * 3


def test_the_quick_start_ends_in_the_answer_that_it_and_the_readme_show(proxy, provider, tmp_path, monkeypatch):
    """Its commands run in their order, in a folder with its configuration."""
    provider.reset(window_tokens=12_000)
    (tmp_path / "litellm_config.yaml").write_text(yaml.safe_dump(quick_start()))
    commands = [line for block in blocks("sh") if block.page == QUICK_START for line in block.commands]
    program = "\n".join(line for line in commands if not line.startswith(LATER)).replace("http://localhost:4000", proxy.url)
    monkeypatch.setenv("PATH", str(Path(sys.executable).parent), prepend=os.pathsep)
    monkeypatch.setenv("LITELLM_MASTER_KEY", MASTER_KEY)
    shell = ["bash", "-euo", "pipefail", "-c", program]
    shown = subprocess.run(shell, cwd=tmp_path, capture_output=True, text=True, check=True).stdout
    told = [block.text for block in blocks("text") if block.page in ("README.md", QUICK_START)]
    for line in "".join(told).splitlines():
        assert line in shown.splitlines(), shown
    assert "Answer to" in (tmp_path / "answer.json").read_text()
    assert accepted(provider)["input_tokens"] <= 12_000
