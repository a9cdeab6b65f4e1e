"""`ctx-hooks check` finds every mistake of a configuration, or prints what each model and team comes to."""

import json
from pathlib import Path

import pytest
import yaml

from ctx_hooks.cli import main

ROOT = Path(__file__).resolve().parents[2]
LISTED = {"litellm_settings": {"callbacks": ["ctx_hooks.proxy_handler_instance"]}}
MODELS = [{"model_name": "m", "litellm_params": {"model": "openai/x"}}]


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


def test_the_table_names_the_scope_of_every_field_that_is_set(tmp_path, capsys):
    model = {"model_name": "m", "litellm_params": {"model": "openai/x"}, "model_info": {"ctx_hooks": {"max_turns": 7}}}
    settings = {"defaults": {"reserve_tokens": 9}, "teams": {"red": {"language": "zh"}}}
    path = tmp_path / "config.yaml"
    plain = {"model_name": "plain", "litellm_params": {"model": "openai/y"}}
    path.write_text(yaml.safe_dump({**LISTED, "model_list": [model, plain], "callback_settings": {"ctx_hooks": settings}}))
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
    path.write_text(yaml.safe_dump({**LISTED, "callback_settings": {"ctx_hooks": settings}}))
    assert main(["check", str(path), "--json"]) == 0
    found = [(r["models"], r["caller"], r["field"], r["value"]) for r in told(capsys)["policies"]]
    assert found == [([], "", "reserve_tokens", 9), ([], "teams.red", "language", "zh")]


def test_a_model_without_settings_has_the_defaults(tmp_path, capsys):
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump({**LISTED, "model_list": MODELS}))
    assert main(["check", str(path)]) == 0
    assert "Every policy is the default." in capsys.readouterr().out
    assert main(["check", str(path), "--json"]) == 0
    assert told(capsys)["policies"] == []


@pytest.mark.parametrize(("config", "told_of"), [
    ({"model_list": MODELS}, "not in litellm_settings.callbacks"),
    (
        {"model_list": MODELS, "litellm_settings": {"success_callback": LISTED["litellm_settings"]["callbacks"]}},
        "no effect",
    ),
    ({**LISTED, "model_list": [{**MODELS[0], "model_info": {"max_input_tokens": "128k"}}]}, "max_input_tokens: a number"),
    ({**LISTED, "model_list": [{**MODELS[0], "model_info": {"max_input_tokens": 128}}]}, "such as 128000, not 128"),
    ({**LISTED, "model_list": MODELS, "callback_settings": {"ctx_hooks": {"models": {"n": "off"}}}}, "no such model group"),
    (
        {**LISTED, "callback_settings": {"ctx_hooks": {"defaults": {"window_tokens": "128k"}}}},
        "it has to be a valid integer",
    ),
    ({**LISTED, "model_list": {"model_name": "m"}}, "model_list: a list of deployments"),
    ({**LISTED, "model_list": [{"model_name": "m"}]}, "model_list.0.litellm_params.model"),
    ({**LISTED, "general_settings": ["master_key"]}, "general_settings: a mapping"),
], ids=lambda value: value if isinstance(value, str) else "")  # fmt: skip
def test_a_configuration_that_does_not_do_what_it_says_fails(config, told_of, tmp_path, capsys):
    path = tmp_path / "config.yaml"
    path.write_text(yaml.safe_dump(config))
    assert main(["check", str(path)]) == 1
    printed = " ".join(capsys.readouterr().out.split())
    assert told_of in printed
    assert "no mistakes" not in printed
    assert "Input should" not in printed


def test_a_policy_of_a_group_by_wildcard_alias_or_database_is_no_mistake(tmp_path):
    path = tmp_path / "config.yaml"
    wild = [{"model_name": "openai/*", "litellm_params": {"model": "openai/*"}}]
    named = {"callback_settings": {"ctx_hooks": {"models": {"openai/gpt-4o": "gentle", "four": "gentle", "*": "gentle"}}}}
    router = {"router_settings": {"model_group_alias": {"four": "openai/gpt-4o"}}}
    path.write_text(yaml.safe_dump({**LISTED, "model_list": wild, **named, **router}))
    assert main(["check", str(path)]) == 0
    stored = {"general_settings": {"store_model_in_db": True}}
    path.write_text(yaml.safe_dump({**LISTED, "model_list": MODELS, **named, **stored}))
    assert main(["check", str(path)]) == 0


def test_a_wildcard_has_the_window_of_no_model(tmp_path, capsys):
    path = tmp_path / "config.yaml"
    wild = [{"model_name": "openai/*", "litellm_params": {"model": "openai/*"}}]
    path.write_text(yaml.safe_dump({**LISTED, "model_list": wild}))
    assert main(["check", str(path), "--json"]) == 0
    assert told(capsys)["deployments"][0]["window_tokens"] is None
    assert main(["check", str(path)]) == 0
    assert "128,000" not in capsys.readouterr().out
