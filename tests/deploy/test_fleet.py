"""docs/clients.md on a fleet of Claude Code and Codex, with the real clients: its configuration, and its way to opt out."""

import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest
import yaml
from environments import ROOT

from ctx_hooks.testing import FakeProvider, ProviderSettings, ProxyProcess

sys.path.append(str(ROOT / "benchmarks" / "clients"))

from descriptions import claude_code, codex
from installing import install
from model import DONE, Model
from session import prepare, run

pytestmark = pytest.mark.deploy

PAGE = (ROOT / "docs" / "clients.md").read_text(encoding="utf-8").split("\n## A fleet of Claude Code and Codex\n")[1]
BLOCKS = dict(re.findall(r"```(yaml|sh|toml)\n(.*?)```", PAGE.split("\n## ")[0], re.DOTALL))
GROUPS = {"anthropic": "claude-sonnet-4-5", "openai": "gpt-5-codex"}
CLAUDE_CODE = replace(claude_code.CLIENT, environment={**claude_code.CLIENT.environment, "MAX_THINKING_TOKENS": "0"})
"""With a name of Claude's it asks for thinking, which the scripted model has none of."""
WINDOW_TOKENS = 60_000
AUTH = """
from litellm.proxy._types import UserAPIKeyAuth

async def user_api_key_auth(request, api_key):
    return UserAPIKeyAuth(api_key=api_key, team_alias=api_key.removeprefix("sk-"))
"""


@pytest.fixture(scope="module")
def model():
    return Model()


@pytest.fixture(scope="module")
def provider(model):
    with FakeProvider(ProviderSettings(window_tokens=WINDOW_TOKENS), model) as running:
        yield running


@pytest.fixture(scope="module")
def proxy(provider, tmp_path_factory):
    """The proxy of the page, before the fake provider instead of the real ones; a key names its team."""
    folder = tmp_path_factory.mktemp("fleet")
    (folder / "fleet_auth.py").write_text(AUTH)
    config = yaml.safe_load(BLOCKS["yaml"])
    assert [deployment["model_name"] for deployment in config["model_list"]] == list(GROUPS.values())
    for deployment, path in zip(config["model_list"], ("", "/v1"), strict=True):
        deployment["litellm_params"] |= {"api_base": provider.url + path, "api_key": "none"}
        deployment["model_info"] = {"max_input_tokens": WINDOW_TOKENS}
    config["general_settings"] = {"custom_auth": "fleet_auth.user_api_key_auth"}
    with ProxyProcess(config, {"PYTHONPATH": f"{ROOT}:{folder}"}) as running:
        yield running


def opted_out(client):
    """Return a client with what the page tells a developer to set."""
    name, value = re.fullmatch(r'export (\w+)="(.*)"\n', BLOCKS["sh"]).groups()
    table = BLOCKS["toml"].splitlines()[0]
    files = {path: text.replace(f"{table}\n", BLOCKS["toml"]) for path, text in client.files.items()}
    return replace(client, environment={**client.environment, name: value}, files=files)


@pytest.mark.parametrize("is_out", [False, True], ids=["pilot", "opted out"])
@pytest.mark.parametrize("client", [CLAUDE_CODE, codex.CLIENT], ids=lambda client: client.name)
def test_session_passes_window_unless_opted_out(client, is_out, model, provider, proxy, tmp_path):
    if shutil.which("npm") is None:
        pytest.skip("without npm")
    try:
        installed = install(client, Path(tempfile.gettempdir(), "ctx_hooks_clients"))
    except subprocess.SubprocessError as error:
        pytest.skip(f"{client.name} cannot be installed: {error}")
    model.begin(prepare(tmp_path))
    provider.reset(wording="openai_responses" if client is codex.CLIENT else "anthropic")
    values = {"url": proxy.url, "key": "sk-pilot", "model": GROUPS[client.provider]}
    ended = run(opted_out(client) if is_out else client, installed, tmp_path, values)
    requests = provider.requests()
    refused = [r for r in requests if r["status"] != 200]
    assert (bool(refused), DONE in ended.output) == (is_out, not is_out), ended.output[-2_000:]
    largest_tokens = max(r["input_tokens"] for r in requests if r["status"] == 200)
    assert largest_tokens > 0.85 * WINDOW_TOKENS, "a client that compacts by itself is waited for"
