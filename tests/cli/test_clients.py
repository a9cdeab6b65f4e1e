"""`clients` prints settings that hold the windows of a configuration."""

import json

import pytest

from ctx_hooks.cli import main

tomllib = pytest.importorskip("tomllib", reason="Python 3.10 has none")

CONFIG = """\
model_list:
  - {model_name: small, litellm_params: {model: hosted_vllm/a}, model_info: {max_input_tokens: 65536}}
  - {model_name: small, litellm_params: {model: hosted_vllm/b}, model_info: {max_input_tokens: 131072}}
  - {model_name: large, litellm_params: {model: anthropic/claude-sonnet-4-5}, model_info: {max_input_tokens: 200000}}
  - {model_name: unknown, litellm_params: {model: hosted_vllm/c}}
litellm_settings: {callbacks: ["ctx_hooks.proxy_handler_instance"]}
"""


@pytest.fixture
def config(tmp_path):
    (tmp_path / "config.yaml").write_text(CONFIG)
    return str(tmp_path / "config.yaml")


def test_group_has_its_smallest_window(config, capsys):
    assert main(["clients", config, "--json"]) == 0
    small, large = json.loads(capsys.readouterr().out)
    assert (small["name"], small["window_tokens"], large["window_tokens"]) == ("small", 65_536, 200_000)
    assert small["compact_at_tokens"] == int(0.9 * (65_536 - 16_384))


def test_settings_can_be_read_by_clients(config, capsys):
    assert main(["clients", config, "--url", "http://proxy:4000/"]) == 0
    printed = capsys.readouterr().out
    sections = {part.split(":")[0]: part.split("\n", 1)[1] for part in printed.split("# large")[1].split("## ")[1:]}
    codex = tomllib.loads(sections["Codex"])
    assert codex["model_context_window"] == 200_000
    assert codex["model_auto_compact_token_limit"] < 200_000 - 16_384
    assert tomllib.loads(sections["Kimi Code"])["models"]["large"]["max_context_size"] == 200_000
    for name in ("opencode", "pi", "qwen-code", "Gemini CLI"):
        assert json.loads(sections[name])
    assert "unknown" not in printed
    assert "http://proxy:4000/v1" in printed
    assert "CLAUDE_CODE_AUTO_COMPACT_WINDOW=100000\nexport CLAUDE_AUTOCOMPACT_PCT_OVERRIDE=55" in printed


def test_no_known_window_is_an_error(tmp_path, capsys):
    (tmp_path / "config.yaml").write_text("model_list: [{model_name: unknown, litellm_params: {model: hosted_vllm/c}}]\n")
    assert main(["clients", str(tmp_path / "config.yaml")]) == 2
    assert "--probe" in capsys.readouterr().err
