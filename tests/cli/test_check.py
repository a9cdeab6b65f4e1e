"""`ctx-hooks check` finds every mistake of a configuration, or prints what each model and team comes to."""

import json
import re

import pytest
import yaml

from ctx_hooks.cli import main
from ctx_hooks.cli.configuration import configuration_of
from ctx_hooks.policy.resolve import Caller

LISTED = {"litellm_settings": {"callbacks": ["ctx_hooks.proxy_handler_instance"]}}
MODELS = [{"model_name": "m", "litellm_params": {"model": "openai/x"}}]
WILD = {**LISTED, "model_list": [{"model_name": "openai/*", "litellm_params": {"model": "openai/*"}}]}


@pytest.fixture
def checked(tmp_path, monkeypatch, capsys):
    """Return what is printed of a configuration: what JSON says, or the text."""
    monkeypatch.chdir(tmp_path)  # a line breaks where the name of a file is long

    def check(config, *, as_json=False, code=0):
        path = tmp_path / "config.yaml"
        path.write_text(yaml.safe_dump(config))
        assert main(["check", path.name, *(["--json"] if as_json else [])]) == code
        printed = capsys.readouterr().out
        return json.loads(printed) if as_json else " ".join(printed.split())

    return check


def settings(**sections):
    return {"callback_settings": {"ctx_hooks": sections}}


SCOPED = {**LISTED, **settings(defaults={"reserve": 9}, teams={"red": {"language": "zh"}})}


def test_table_names_the_scope_of_every_field(checked):
    found = [(r["whom"], r["field"], r["value"]) for r in checked(SCOPED, as_json=True)["policies"]]
    assert found == [("", "reserve", 9), ("teams.red", "language", "zh")], "also without a listed model"
    models = [{**MODELS[0], "model_info": {"ctx_hooks": {"max_turns": turns}}} for turns in (7, 8, 7)]
    rows = checked({**SCOPED, "model_list": [*models, {**MODELS[0], "model_name": "plain"}]}, as_json=True)["policies"]
    assert {(r["whom"], r["field"], r["value"], r["set_by"]) for r in rows} == {
        ("m", "max_turns", 7, "model_info.ctx_hooks"),
        ("m", "max_turns", 8, "model_info.ctx_hooks"),
        ("", "reserve", 9, "defaults"),
        ("teams.red", "language", "zh", "teams.red"),
    }


def test_table_says_when_limits_apply(checked):
    late = "applies once a request is compressed"
    printed = checked({**LISTED, **settings(defaults={"tool_results": {"max_lines": 9}})})
    assert "tool_results max_lines: 9 - defaults" in printed
    assert "max_chars" not in printed
    assert late in printed
    assert late not in checked({**LISTED, **settings(defaults={"tool_results": {"max_lines": 9, "apply": "always"}})})


def test_environment_is_checked_too(checked, monkeypatch):
    monkeypatch.setenv("TOOL_OUTPUT_DIR", "/cuts")
    (row,) = checked(LISTED, as_json=True)["policies"]
    assert (row["field"], row["value"]["path"], row["set_by"]) == ("archive", "/cuts", "environment")
    monkeypatch.setenv("TOOL_OUTPUT_MAX_LINES", "0")
    assert "TOOL_OUTPUT_MAX_LINES" in (printed := checked(LISTED, code=1))
    assert "1 mistake in" in printed


WRONG = settings(defaults={"reserve": "many"}, teams={"t": {"tool_results": {"direction": "up"}}})


@pytest.mark.parametrize(("config", "told_of"), [
    ({"model_list": [{**MODELS[0], "model_info": {"ctx_hooks": {"langage": "en"}}}], **WRONG}, "did you mean 'language'"),
    (WRONG, "teams.t.tool_results.direction"), (WRONG, "2 mistakes"),
    ({"model_list": MODELS}, "not in litellm_settings.callbacks"),
    ({**LISTED, "model_list": [{**MODELS[0], "model_info": {"max_input_tokens": "128k"}}]}, "max_input_tokens: a number"),
    ({**LISTED, "model_list": MODELS, "callback_settings": {"ctx_hooks": {"models": {"n": "off"}}}}, "no such model group"),
    (
        {**LISTED, "callback_settings": {"ctx_hooks": {"defaults": {"window_tokens": "128k"}}}},
        "it has to be a valid integer",
    ),
], ids=lambda value: value if isinstance(value, str) else "")  # fmt: skip
def test_wrong_configuration_fails(config, told_of, checked):
    printed = checked(config, code=1)
    assert told_of in printed
    assert "What could be better" not in printed
    assert "no mistakes" not in printed


def test_wildcard_alias_or_database_names_a_group(checked):
    named = settings(models={"openai/gpt-4o": "observe", "four": "observe", "*": "observe"})
    checked({**WILD, **named, "router_settings": {"model_group_alias": {"four": "openai/gpt-4o"}}})
    checked({**LISTED, "model_list": MODELS, **named, "general_settings": {"store_model_in_db": True}})


def test_wildcard_has_no_window(checked):
    assert checked(WILD, as_json=True)["deployments"][0]["window_tokens"] is None
    assert "128,000" not in checked(WILD)


def test_section_written_twice_is_a_mistake(tmp_path, capsys):
    observed = "callback_settings: {ctx_hooks: {defaults: observe}}\n"
    (tmp_path / "config.yaml").write_text(f"{observed}{yaml.safe_dump(LISTED)}callback_settings: {{}}\n")
    assert main(["check", str(tmp_path / "config.yaml")]) == 1
    assert "callback_settings: written 2 times; only the last one is read" in capsys.readouterr().out


WINDOWS = """\
model_list:
  - {model_name: small, litellm_params: {model: hosted_vllm/a}, model_info: {max_input_tokens: 65536}}
  - {model_name: small, litellm_params: {model: hosted_vllm/b}, model_info: {max_input_tokens: 131072}}
  - {model_name: large, litellm_params: {model: anthropic/claude-sonnet-4-5}, model_info: {max_input_tokens: 200000}}
  - {model_name: unknown, litellm_params: {model: hosted_vllm/c}}
litellm_settings: {callbacks: ["ctx_hooks.proxy_handler_instance"]}
"""


def test_clients_prints_settings_that_clients_can_read(tmp_path, capsys):
    tomllib = pytest.importorskip("tomllib", reason="Python 3.10 has none")
    (tmp_path / "config.yaml").write_text(WINDOWS)
    asked = ["clients", str(tmp_path / "config.yaml"), "--url", "http://proxy:4000/"]
    assert main([*asked, "--json"]) == 0
    small, large = json.loads(capsys.readouterr().out)
    assert (small["name"], small["window_tokens"], large["window_tokens"]) == ("small", 65_536, 200_000)
    assert small["compact_at_tokens"] == int(0.9 * (65_536 - 16_384))
    assert main(asked) == 0
    printed = capsys.readouterr().out
    sections = {part.split(":")[0]: part.split("\n", 1)[1] for part in printed.split("# large")[1].split("## ")[1:]}
    codex = tomllib.loads(sections["Codex"])
    assert codex["model_context_window"] == 200_000
    assert codex["model_auto_compact_token_limit"] < 200_000 - 16_384
    kimi = tomllib.loads(sections["Kimi Code"])
    assert kimi["models"]["large"]["max_context_size"] == 200_000
    assert kimi["loop_control"]["reserved_context_size"] == 200_000 - codex["model_auto_compact_token_limit"]
    cline = json.loads(sections["cline"])["providers"]["openai-compatible"]["settings"]
    assert int(0.9 * cline["contextWindow"]) <= codex["model_auto_compact_token_limit"]
    for name in ("opencode", "pi", "qwen-code", "Gemini CLI"):
        assert json.loads(sections[name])
    assert "unknown" not in printed
    assert "http://proxy:4000/v1" in printed
    assert "CLAUDE_CODE_AUTO_COMPACT_WINDOW=100000\nexport CLAUDE_AUTOCOMPACT_PCT_OVERRIDE=55" in printed
    (tmp_path / "config.yaml").write_text(yaml.safe_dump({"model_list": MODELS}))
    assert main(asked) == 2
    assert "--probe" in capsys.readouterr().err


def mistakes(settings):
    return configuration_of({"callback_settings": {"ctx_hooks": settings}}).mistakes


OTHER_SYSTEMS = {
    "reserveTokens": "reserve", "keepRecentTokens": "keep_recent", "context_window_override": "max_input_tokens",
    "contextTokens": "window_tokens", "historyLimit": "max_turns", "dmHistoryLimit": "max_turns",
    "soft_trim_ratio": "tool_results", "hard_trim_ratio": "tool_results", "max_lines": "tool_results",
    "max_overflow_compaction_attempts": "rescue_attempts", "TOOL_OUTPUT_MAX_LINES": "tool_results",
    "TOOL_OUTPUT_MAX_BYTES": "tool_results", "TOOL_OUTPUT_DIR": "archive",
    "TOOL_OUTPUT_TRUNCATE_DIRECTION": "tool_results", "TOOL_OUTPUT_RETENTION_DAYS": "archive",
}  # fmt: skip


@pytest.mark.parametrize(("name", "field"), OTHER_SYSTEMS.items())
def test_name_of_another_system_gets_a_valid_hint(name, field):
    line, *_ = mistakes({"defaults": {name: 7}})
    assert f"defaults.{name}: there is no such field; " in line
    assert re.search(rf"`{field}[`:]", line)
    for written in re.findall("write `(.+?)`", line):
        assert not mistakes({"defaults": yaml.safe_load(written.replace("FOLDER", "/folder"))})


@pytest.mark.parametrize(("settings", "hint"), [
    ({"default": {}}, "default: there is no such field; did you mean 'defaults'?"),
    ({"mode": "observe"}, "mode: there is no such field; it belongs under `defaults`"),
    ({"teams": {"a": {"languag": "zh"}}}, "; did you mean 'language'?"),
    ({"teams": {"a": {"tool_results": {"max_line": 9}}}}, "; did you mean 'max_lines'?"),
    ({"defaults": "observed"}, "; did you mean 'observe'?"), ({"defaults": {"locked": ["mod"]}}, "; did you mean 'mode'?"),
    ({"defaults": {"request_may_set": ["obserb"]}}, "; did you mean 'observe'?"),
])  # fmt: skip
def test_check_alone_suggests_spellings(settings, hint):
    found = configuration_of({"callback_settings": {"ctx_hooks": settings}})
    assert hint in " ".join(found.mistakes)
    seen = found.policies.resolve(Caller(team_names=("a",))).ignored
    assert not any(word in " ".join(seen) for word in ("did you mean", "write `"))
