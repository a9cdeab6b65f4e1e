"""`check` finds every mistake, `explain` says what would be done, `replay` what a session would have cost."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from ctx_hooks.cli import main
from ctx_hooks.testing import agent_session

ROOT = Path(__file__).resolve().parents[2]


def test_the_configuration_of_the_project_is_right(capsys):
    assert main(["check", str(ROOT / "litellm_config.yaml")]) == 0
    assert "local: " in capsys.readouterr().out


def test_every_mistake_of_a_configuration_is_printed(tmp_path, capsys):
    model = {"model_name": "m", "litellm_params": {"model": "openai/x"}, "model_info": {"ctx_hooks": {"langage": "en"}}}
    settings = {"defaults": {"reserve_tokens": "many"}, "teams": {"t": {"tool_result_direction": "up"}}}
    config = {"model_list": [model], "callback_settings": {"ctx_hooks": settings}}
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(config))
    assert main(["check", str(path)]) == 1
    printed = capsys.readouterr().out
    for expected in ("defaults.reserve_tokens", "teams.t.tool_result_direction", "did you mean 'language'", "3 mistakes"):
        assert expected in printed


@pytest.mark.parametrize("text", ["", "{", "[]"])
def test_a_file_that_is_no_configuration_is_no_crash(text, tmp_path):
    path = tmp_path / "config.yaml"
    path.write_text(text)
    assert main(["check", str(path)]) in (0, 1)
    assert main(["check", str(tmp_path / "absent.yaml")]) == 1


def test_the_schema_names_every_section(capsys):
    assert main(["schema"]) == 0
    schema = json.loads(capsys.readouterr().out)
    assert {"defaults", "teams", "policies"} <= set(schema["settings"]["properties"])
    assert "description" in schema["policy"]["properties"]["reserve_tokens"]


def test_explain_shows_policy_window_steps_and_request(tmp_path, capsys):
    request = tmp_path / "request.json"
    request.write_text(json.dumps(agent_session("openai-chat", turns=60, result_chars=4_000)))
    arguments = ["explain", str(request), "--model", "local", "--config", str(ROOT / "litellm_config.yaml")]
    assert main([*arguments, "--diff"]) == 0
    printed = capsys.readouterr().out
    for expected in (
        "window: 12000 tokens (model_info)",
        "(model_info.ctx_hooks)",
        "compressed: ",
        "oldest_turns",
        "--- received",
    ):
        assert expected in printed
    assert main(arguments) == 0
    assert '"role": "user"' in capsys.readouterr().out


def test_replay_prints_each_request_and_the_cost(tmp_path, capsys):
    sessions = tmp_path / "sessions.jsonl"
    messages = agent_session("openai-chat", turns=40)["messages"]
    sessions.write_text(json.dumps({"id": "one", "format": "openai-chat", "messages": messages}) + "\n")
    assert main(["replay", str(sessions), "--budget", "6000"]) == 0
    printed = capsys.readouterr().out
    for expected in ("one: ", "compactions", "replayed", "uncompressed", "sliding", "cache share"):
        assert expected in printed
