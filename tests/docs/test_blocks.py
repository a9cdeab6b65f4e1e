"""Every block of the documentation is of a kind that is tested: configurations are valid, programs run, links hold."""

import ast
import inspect
import itertools
import json
import re
import shlex
import sys

import litellm
import pytest
import yaml
from documentation import ROOT, SHELL, blocks, pages

import ctx_hooks
from ctx_hooks.cli.check import weak_spots
from ctx_hooks.cli.configuration import configuration_of
from ctx_hooks.testing import FakeProvider, ProviderSettings, agent_session

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib  # pytest needs it where Python has none

TESTED = {
    "yaml": "here", "toml": "here", "python": "here", "json": "here", "sql": "tests/proxy/test_database.py",
    **dict.fromkeys(SHELL, "tests/docs/test_commands.py"), "text": "tests/docs/test_recipes.py, which sees it printed",
    "promql": "tests/telemetry/test_operations.py",
}  # fmt: skip
"""Where the blocks of a language are tested."""
SECTIONS = {
    "model_list", "litellm_settings", "callback_settings", "general_settings", "router_settings", "environment_variables",
}  # fmt: skip
"""Of a proxy configuration. What stands outside of them LiteLLM does not read."""
LARGEST_PICTURE_CHARS = 100_000
LINK = re.compile(r"\]\((?!https?:)([^)#\s]+)(?:#[\w-]+)?\)")


def test_no_block_is_of_another_kind():
    assert {str(block): block.language for block in blocks() if block.language not in TESTED} == {}


@pytest.mark.parametrize("block", blocks("yaml"), ids=str)
def test_a_configuration_has_no_mistake(block):
    raw = yaml.safe_load(block.text)
    assert raw.keys() <= SECTIONS
    found = configuration_of(raw)
    assert found.mistakes == ()
    is_whole = "master_key" in block.text
    assert not is_whole or not [finding for finding in weak_spots(found) if finding.level == "fails"]


@pytest.mark.parametrize("block", [b for b in blocks("sh") if " -d " in b.text and "{" in b.text], ids=str)
def test_a_policy_in_a_call_of_an_api_has_no_mistake(block):
    words = shlex.split(block.text)
    bodies = [json.loads(body) for option, body in itertools.pairwise(words) if option == "-d"]
    assert bodies
    for body in bodies:
        policy = body.get("metadata", body.get("model_info"))["ctx_hooks"]
        assert configuration_of({"callback_settings": {"ctx_hooks": {"teams": {"T": policy}}}}).mistakes == ()


@pytest.mark.parametrize("block", blocks("toml", "json"), ids=str)
def test_a_block_is_what_it_says(block):
    assert {"toml": tomllib.loads, "json": json.loads}[block.language](block.text)


@pytest.mark.parametrize("block", blocks("python"), ids=str)
async def test_a_program_runs(block, monkeypatch):
    """What a page leaves to its reader is given here: messages, an error, deployments."""
    monkeypatch.setattr(litellm, "callbacks", [])
    with FakeProvider(ProviderSettings(window_tokens=8_000)) as provider:
        params = {"model": "openai/served", "api_base": f"{provider.url}/v1", "api_key": "not-a-key"}
        given = {
            "messages": agent_session("openai-chat" if "Router" in block.text else "anthropic", turns=2)["messages"],
            "error": "prompt is too long: 210000 tokens > 200000 maximum",
            "model_list": [{"model_name": "group", "litellm_params": params}],
        }
        code = compile(block.text, str(block), "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        running = eval(code, given)  # noqa: S307 - a block of our own pages, with `await` at its top
        if inspect.isawaitable(running):
            await running
    if "result" in given:
        assert given["result"].fits
        assert ctx_hooks.recognise_overflow(given["error"]).limit_tokens == 200_000


@pytest.mark.parametrize("picture", sorted((ROOT / "docs").glob("*.svg")), ids=lambda path: path.name)
def test_a_picture_is_small_and_loads_nothing(picture):
    text = picture.read_text(encoding="utf-8")
    assert len(text) < LARGEST_PICTURE_CHARS
    assert re.findall(r"<script|<image|href=|src=|@import|url\((?!#)", text) == []


@pytest.mark.parametrize("page", [*pages(), *(ROOT / ".github").glob("*.md")], ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_to_a_file(page):
    """Anchors, too, are looked at when the site is built."""
    missing = [link for link in LINK.findall(page.read_text(encoding="utf-8")) if not (page.parent / link).exists()]
    assert missing == []
