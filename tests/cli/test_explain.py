"""`ctx-hooks explain` says what would be done with a request, and why; nothing is sent."""

import json
from pathlib import Path

import pytest
import yaml
from strategies import called

from ctx_hooks.cli import main
from ctx_hooks.testing import agent_session

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def long_session(tmp_path):
    """The file of a request that is larger than the window of the project's configuration."""
    request = tmp_path / "request.json"
    request.write_text(json.dumps(agent_session("openai-chat", turns=60, result_chars=4_000)))
    return str(request)


CONFIG = ["--model", "local", "--config", str(ROOT / "litellm_config.yaml")]


def test_explain_shows_policy_window_steps_and_request(long_session, capsys):
    arguments = ["explain", long_session, *CONFIG]
    assert main([*arguments, "--diff"]) == 0
    printed = capsys.readouterr().out
    for expected in (
        "the window of 12,000 (model_info)",
        "(model_info.ctx_hooks)",
        "compressed: ",
        "oldest_turns",
        "--- received",
    ):
        assert expected in printed
    assert main([*arguments, "--sent"]) == 0
    assert '"role": "user"' in capsys.readouterr().out


def test_every_message_stands_with_its_size_before_and_after_and_the_reason(long_session, capsys):
    received = json.loads(Path(long_session).read_text())
    assert main(["explain", long_session, *CONFIG, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert main(["explain", long_session, *CONFIG, "--sent"]) == 0
    sent = json.loads(capsys.readouterr().out)
    messages = told["messages"]
    assert [m["received"] for m in messages if m["received"]] == list(range(1, len(received["messages"]) + 1))
    assert [m["sent"] for m in messages if m["sent"]] == list(range(1, len(sent["messages"]) + 1))
    assert {m["became"] for m in messages} >= {"kept", "changed"}
    for message in messages:
        one, other = message["received"], message["sent"]
        same = bool(one and other) and received["messages"][one - 1] == sent["messages"][other - 1]
        assert same == (message["became"] == "kept")
        assert bool(message["why"]) != same
    assert sum(m["tokens_before"] for m in messages) == pytest.approx(told["tokens_before"], rel=0.01)
    assert sum(m["tokens_after"] for m in messages) == pytest.approx(told["tokens_after"], rel=0.01)


class TestAPolicyThatIsTried:
    def test_its_fields_hold_over_those_of_the_file(self, long_session, capsys):
        assert main(["explain", long_session, *CONFIG, "--policy", "{max_turns: 1, mode: enforce}", "--json"]) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["policy"]["max_turns"] == {"value": 1, "set_by": "--policy"}
        assert told["policy"]["tool_result_max_fraction"]["set_by"] == "model_info.ctx_hooks"
        assert [m["sent"] for m in told["messages"] if m["sent"]] == [1, 2]

    def test_it_may_be_a_presets_name(self, long_session, capsys):
        assert main(["explain", long_session, *CONFIG, "--policy", "nanobot", "--json"]) == 0
        policy = json.loads(capsys.readouterr().out)["policy"]
        assert policy["reserve_tokens"] == {"value": 4_096, "set_by": "--policy"}

    def test_a_preset_of_the_defaults_says_that_it_sets_nothing(self, long_session, capsys):
        assert main(["explain", long_session, *CONFIG, "--policy", "pi"]) == 0
        assert "--policy pi: sets no field" in capsys.readouterr().out

    def test_a_lock_of_the_file_holds(self, long_session, tmp_path, capsys):
        config = tmp_path / "config.yaml"
        defaults = {"reserve_tokens": 9, "locked": ["reserve_tokens"]}
        config.write_text(yaml.safe_dump({"callback_settings": {"ctx_hooks": {"defaults": defaults}}}))
        tried = ["--config", str(config), "--model", "gpt-4o", "--policy", "nanobot", "--json"]
        assert main(["explain", long_session, *tried]) == 0
        told = json.loads(capsys.readouterr().out)
        assert told["policy"]["reserve_tokens"] == {"value": 9, "set_by": "defaults"}
        assert any("locked by defaults" in line for line in told["ignored"])


def test_nothing_is_written_to_an_archive(long_session, tmp_path, capsys):
    config = tmp_path / "config.yaml"
    defaults = {"window_tokens": 12_000, "archive": {"backend": "disk", "path": str(tmp_path / "kept")}}
    config.write_text(yaml.safe_dump({"callback_settings": {"ctx_hooks": {"defaults": defaults}}}))
    assert main(["explain", long_session, "--model", "gpt-4o", "--config", str(config)]) == 0
    assert "compressed:" in capsys.readouterr().out
    assert not (tmp_path / "kept").exists()


@pytest.mark.parametrize(("fields", "result_chars", "expected"), [
    ({}, 4_000, "summary by small, once written: stands in message 2,"),
    ({"max_turns": 50}, 4_000, "summary by small, once written: none with"),
    ({}, 0, "summary by small, once written: no place"),
], ids=["exchanges give way", "newest turns only", "results alone are shortened"])  # fmt: skip
def test_the_place_of_a_summary_that_a_model_writes_is_printed(fields, result_chars, expected, tmp_path, capsys):
    request, config = tmp_path / "request.json", tmp_path / "config.yaml"
    payload = agent_session("openai-chat", turns=60, result_chars=result_chars) if result_chars else one_large_result()
    request.write_text(json.dumps(payload))
    settings = {"defaults": {"summary": {"model": "small"}, "window_tokens": 12_000, **fields}}
    config.write_text(yaml.safe_dump({"callback_settings": {"ctx_hooks": settings}}))
    assert main(["explain", str(request), "--model", "gpt-4o", "--config", str(config), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["summary"].startswith(expected)


def one_large_result():
    """Return a request that fits as soon as one old result is shortened."""
    read = called("".join(f"line {n} of a file\n" for n in range(3_000)))
    done = [{"role": "assistant", "content": "I have read it."}, {"role": "user", "content": "Good."}]
    return {"messages": [{"role": "user", "content": "read it"}, *read, *done]}


@pytest.mark.parametrize("fmt", ["openai-chat", "anthropic", "openai-responses"])
def test_a_request_of_every_format_is_known_and_a_small_one_stays_as_it_is(fmt, tmp_path, capsys):
    request = tmp_path / "request.json"
    payload = agent_session(fmt, turns=1, result_chars=100)
    request.write_text(json.dumps(payload))
    assert main(["explain", str(request), "--model", "gpt-4o", "--diff"]) == 0
    printed = capsys.readouterr().out
    assert "fits: " in printed
    assert "--- received" not in printed


def test_a_request_of_anthropics_format_is_known_by_its_tools_alone(tmp_path, capsys):
    request = tmp_path / "request.json"
    tools = [{"name": "read", "input_schema": {"type": "object"}}]
    request.write_text(json.dumps({"messages": [{"role": "user", "content": "hello"}], "tools": tools}))
    assert main(["explain", str(request), "--model", "gpt-4o", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["format"] == "anthropic"


def test_the_policy_of_a_team_and_a_key_is_printed_with_its_scopes(tmp_path, capsys):
    request, config = tmp_path / "request.json", tmp_path / "config.yaml"
    request.write_text(json.dumps({"messages": [{"role": "user", "content": "hello"}]}))
    settings = {"teams": {"red": {"language": "zh"}}, "keys": {"ci": {"max_turns": 7}}}
    config.write_text(yaml.safe_dump({"callback_settings": {"ctx_hooks": settings}}))
    arguments = ["explain", str(request), "--model", "gpt-4o", "--config", str(config), "--team", "red", "--key", "ci"]
    assert main([*arguments, "--json"]) == 0
    policy = json.loads(capsys.readouterr().out)["policy"]
    assert policy["language"] == {"value": "zh", "set_by": "teams.red"}
    assert policy["max_turns"] == {"value": 7, "set_by": "keys.ci"}
    assert policy["repair"] == {"value": "auto", "set_by": "default"}
    assert main(arguments) == 0
    printed = capsys.readouterr().out
    assert "language: 'zh' (teams.red)" in printed
    assert "max_turns: 7 (keys.ci)" in printed


@pytest.mark.parametrize("option", [["--model", "nosuch"], ["--team", "rad"], ["--key", "nosuch"]], ids="".join)
def test_a_name_that_the_configuration_does_not_have_is_told(option, tmp_path, capsys):
    request, config = tmp_path / "request.json", tmp_path / "config.yaml"
    request.write_text(json.dumps({"model": "m", "messages": [{"role": "user", "content": "hello"}]}))
    listed = [{"model_name": "m", "litellm_params": {"model": "openai/gpt-4o"}}]
    settings = {"teams": {"red": {"language": "zh"}}, "keys": {"ci": {"max_turns": 7}}}
    config.write_text(yaml.safe_dump({"model_list": listed, "callback_settings": {"ctx_hooks": settings}}))
    assert main(["explain", str(request), "--config", str(config)]) == 0
    assert main(["explain", str(request), "--config", str(config), *option]) == 1
    assert f"nothing for the {'model group' if option[0] == '--model' else option[0][2:]}" in capsys.readouterr().err


def test_a_lower_output_is_printed_with_its_field_and_both_values(tmp_path, capsys):
    request = tmp_path / "request.json"
    request.write_text(json.dumps({"messages": [{"role": "user", "content": "hello " * 9_000}], "max_tokens": 16_000}))
    config = tmp_path / "config.yaml"
    listed = [{"model_name": "m", "litellm_params": {"model": "openai/x"}, "model_info": {"max_input_tokens": 16_384}}]
    config.write_text(yaml.safe_dump({"model_list": listed}))
    arguments = ["explain", str(request), "--model", "m", "--config", str(config)]
    assert main([*arguments, "--json"]) == 0
    (change,) = json.loads(capsys.readouterr().out)["fields"].values()
    assert change["received"] == 16_000 > change["sent"]
    assert main(arguments) == 0
    assert f"max_tokens 16000 -> {change['sent']}" in " ".join(capsys.readouterr().out.split())


def test_a_model_behind_a_wildcard_has_its_own_window(tmp_path, capsys):
    request, config = tmp_path / "request.json", tmp_path / "config.yaml"
    request.write_text(json.dumps({"model": "any/gpt-4", "messages": [{"role": "user", "content": "hello"}]}))
    config.write_text(yaml.safe_dump({"model_list": [{"model_name": "any/*", "litellm_params": {"model": "openai/*"}}]}))
    assert main(["explain", str(request), "--config", str(config), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["model"], found["window_tokens"], found["window_source"]) == ("openai/gpt-4", 8_192, "model_map")
