"""`ctx-hooks check` finds every mistake of a configuration, or prints what each model and team comes to."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from ctx_hooks.cli import main

ROOT = Path(__file__).resolve().parents[2]


def told(capsys):
    return json.loads(capsys.readouterr().out)


def test_the_configuration_of_the_project_is_right(capsys):
    assert main(["check", str(ROOT / "litellm_config.yaml")]) == 0
    assert "litellm_config.yaml: no mistakes" in capsys.readouterr().out


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


def test_the_table_names_the_scope_of_every_field_that_is_set(tmp_path, capsys):
    model = {"model_name": "m", "litellm_params": {"model": "openai/x"}, "model_info": {"ctx_hooks": {"max_turns": 7}}}
    settings = {"defaults": {"reserve_tokens": 9}, "teams": {"red": {"language": "zh"}}}
    path = tmp_path / "config.yaml"
    plain = {"model_name": "plain", "litellm_params": {"model": "openai/y"}}
    path.write_text(yaml.safe_dump({"model_list": [model, plain], "callback_settings": {"ctx_hooks": settings}}))
    assert main(["check", str(path), "--json"]) == 0
    found = {(*r["models"], r["caller"], r["field"], r["value"], r["set_by"]) for r in told(capsys)["policies"]}
    assert found == {
        ("m", "", "max_turns", 7, "model_info.ctx_hooks"),
        ("", "reserve_tokens", 9, "defaults"),
        ("teams.red", "language", "zh", "teams.red"),
    }


def test_the_policies_of_a_proxy_whose_models_are_in_the_database_are_listed_too(tmp_path, capsys):
    settings = {"defaults": {"reserve_tokens": 9}, "teams": {"red": {"language": "zh"}}}
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump({"callback_settings": {"ctx_hooks": settings}}))
    assert main(["check", str(path), "--json"]) == 0
    found = [(r["models"], r["caller"], r["field"], r["value"]) for r in told(capsys)["policies"]]
    assert found == [([], "", "reserve_tokens", 9), ([], "teams.red", "language", "zh")]


def test_a_model_without_settings_has_the_defaults(tmp_path, capsys):
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump({"model_list": [{"model_name": "m", "litellm_params": {"model": "openai/x"}}]}))
    assert main(["check", str(path)]) == 0
    assert "Every policy is the default." in capsys.readouterr().out
    assert main(["check", str(path), "--json"]) == 0
    assert told(capsys)["policies"] == []
