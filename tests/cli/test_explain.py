"""`ctx-hooks explain` says what would be done with a request, and why; nothing is sent."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from ctx_hooks.cli import main
from ctx_hooks.testing import agent_session

ROOT = Path(__file__).resolve().parents[2]


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


@pytest.mark.parametrize(
    ("fields", "result_chars", "expected"),
    [
        ({}, 4_000, "summary by small, once written: stands in message 1,"),
        ({"max_turns": 50}, 4_000, "summary by small, once written: none with"),
        ({}, 0, "summary by small, once written: no place"),
    ],
    ids=["exchanges give way", "newest turns only", "results alone are shortened"],
)
def test_the_place_of_a_summary_that_a_model_writes_is_printed(fields, result_chars, expected, tmp_path, capsys):
    request, config = tmp_path / "request.json", tmp_path / "config.yaml"
    payload = agent_session("openai-chat", turns=60, result_chars=result_chars) if result_chars else one_large_result()
    request.write_text(json.dumps(payload))
    settings = {"defaults": {"summary": {"model": "small"}, "window_tokens": 12_000, **fields}}
    config.write_text(yaml.safe_dump({"callback_settings": {"ctx_hooks": settings}}))
    assert main(["explain", str(request), "--model", "gpt-4o", "--config", str(config), "--diff"]) == 0
    assert expected in capsys.readouterr().out


def one_large_result():
    """Return a request that fits as soon as one old result is shortened."""
    call = {"id": "a", "type": "function", "function": {"name": "read", "arguments": "{}"}}
    messages = [
        {"role": "user", "content": "read it"},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "a", "content": "".join(f"line {n} of a file\n" for n in range(3_000))},
        {"role": "assistant", "content": "I have read it."},
        {"role": "user", "content": "Good."},
    ]
    return {"messages": messages}


@pytest.mark.parametrize("fmt", ["openai-chat", "anthropic", "openai-responses"])
def test_a_request_of_every_format_is_known_and_a_small_one_stays_as_it_is(fmt, tmp_path, capsys):
    request = tmp_path / "request.json"
    payload = agent_session(fmt, turns=1, result_chars=100)
    request.write_text(json.dumps(payload))
    assert main(["explain", str(request), "--model", "gpt-4o", "--diff"]) == 0
    printed = capsys.readouterr().out
    assert "untouched: " in printed
    assert "--- received" not in printed


def test_the_policy_of_a_team_and_a_key_is_printed_with_its_scopes(tmp_path, capsys):
    request, config = tmp_path / "request.json", tmp_path / "config.yaml"
    request.write_text(json.dumps({"messages": [{"role": "user", "content": "hello"}]}))
    settings = {"teams": {"red": {"language": "zh"}}, "keys": {"ci": {"max_turns": 7}}}
    config.write_text(yaml.safe_dump({"callback_settings": {"ctx_hooks": settings}}))
    arguments = ["explain", str(request), "--model", "gpt-4o", "--config", str(config), "--team", "red", "--key", "ci"]
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    assert "language: 'zh' (teams.red)" in printed
    assert "max_turns: 7 (keys.ci)" in printed
    assert "repair: 'auto' (default)" in printed
