"""The documentation names every field there is, and no other."""

import re
from typing import get_args

import pytest
import yaml
from documentation import ROOT
from pydantic import BaseModel

from ctx_hooks.policy.settings import PRESETS, Policy, Settings

PAGE = (ROOT / "docs" / "policies.md").read_text(encoding="utf-8")


def test_every_field_is_documented_and_no_other():
    documented = set(re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE))
    assert documented == {*Policy.model_fields, *Settings.model_fields, *PRESETS}


def test_there_are_few_settings():
    """An operator reads all of them in one sitting: 19 fields and 8 sections at most."""
    assert len(Policy.model_fields) <= 17
    assert len(Settings.model_fields) <= 8


FIELDS = {**Policy.model_fields, **Settings.model_fields}


@pytest.mark.parametrize("name", FIELDS)
def test_the_documentation_states_each_default_and_every_value_that_a_field_may_have(name):
    (row,) = re.findall(rf"^\| `{name}` \| (.*) \|$", PAGE, re.MULTILINE)
    stated, described = row.split(" | ", 1)
    default = FIELDS[name].get_default()
    as_yaml = (
        default.model_dump() if isinstance(default, BaseModel) else list(default) if isinstance(default, tuple) else default
    )
    assert stated == ("unset" if default is None else f"`{stated.strip('`')}`")
    assert default is None or yaml.safe_load(stated.strip("`")) == as_yaml
    values = [v for kind in (FIELDS[name].annotation, *get_args(FIELDS[name].annotation)) for v in get_args(kind)]
    assert [v for v in values if isinstance(v, str) and not re.search(rf"`{v}`|`{v}:", described)] == []


@pytest.mark.parametrize("name", PRESETS)
def test_the_documentation_has_what_a_preset_sets_and_nothing_else(name):
    (row,) = re.findall(rf"^\| `{name}` \| (.*) \|$", PAGE, re.MULTILINE)
    fields = [yaml.safe_load(field) for field in re.findall(r"`(\w+: (?:\w+|\{[^}]*\}))`", row)]
    found = {k: v for field in fields for k, v in field.items()}
    assert set(found) == set(PRESETS[name])
    assert Policy(**found) == Policy(**PRESETS[name])  # YAML reads `off` as false
