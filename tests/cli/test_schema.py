"""`ctx-hooks schema` prints a JSON Schema of the configuration, by which an editor finds a mistake."""

import json
from pathlib import Path

import pytest
import yaml
from jsonschema import Draft202012Validator

from ctx_hooks.cli import main
from ctx_hooks.policy.settings import Policy, Settings

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def schema(capsys):
    assert main(["schema"]) == 0
    return json.loads(capsys.readouterr().out)


def test_every_field_stands_in_the_schema_with_its_description(schema):
    for model in (Settings, Policy):
        fields = schema["$defs"][model.__name__]["properties"]
        assert all(fields[name]["description"] for name in model.model_fields)


def test_a_right_configuration_is_valid_and_a_mistake_is_found(schema):
    judge = Draft202012Validator(schema)
    config = yaml.safe_load((ROOT / "litellm_config.yaml").read_text(encoding="utf-8"))
    assert judge.is_valid(config)
    for settings in ({"default": {}}, {"defaults": {"reserve": "much"}}, {"teams": {"a": {"reserve_tokens": 1}}}):
        assert not judge.is_valid({**config, "callback_settings": {"ctx_hooks": settings}})
