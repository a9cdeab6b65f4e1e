"""A renamed field works under its old name wherever a field can be set or named, and its old name is told of."""

from __future__ import annotations

import pytest
import yaml

from ctx_hooks.cli import main
from ctx_hooks.errors import ConfigurationError
from ctx_hooks.policy.caller import Caller, as_text
from ctx_hooks.policy.loading import load_settings
from ctx_hooks.policy.renamed import RENAMED
from ctx_hooks.policy.resolve import Policies
from ctx_hooks.policy.settings import Policy, Settings

LISTED = {"callbacks": ["ctx_hooks.proxy_handler_instance"]}
VALUES = {"recall_fraction": 0.25, "recall_max_tokens": 123}
every_old_name = pytest.mark.parametrize("old", RENAMED)


def resolve(settings, **caller):
    texts = {"deployment", "organization", "project", "team", "key", "request"}
    fields = {k: as_text(v) if k in texts else v for k, v in caller.items()}
    return Policies(Settings.model_validate(settings)).resolve(Caller(**fields))


SCOPES = {
    "defaults": lambda fields: ({"defaults": fields}, {}),
    "models": lambda fields: ({"models": {"m": fields}}, {"group": "m"}),
    "sessions": lambda fields: ({"sessions": {"s": fields}}, {"session": "s"}),
    "tags": lambda fields: ({"tags": {"t": fields}}, {"tags": ("t",)}),
    "teams": lambda fields: ({"teams": {"t": fields}}, {"team_names": ("t",)}),
    "keys": lambda fields: ({"keys": {"k": fields}}, {"key_names": ("k",)}),
    "a named policy": lambda fields: ({"policies": {"p": fields}, "defaults": "p"}, {}),
    "an extended policy": lambda fields: ({"policies": {"p": fields, "q": {"extends": "p"}}, "defaults": "q"}, {}),
    "a scope that begins from a policy": lambda fields: ({"defaults": {"policy": "nanobot", **fields}}, {}),
    "model_info": lambda fields: ({}, {"deployment": fields}),
    "organization metadata": lambda fields: ({}, {"organization": fields}),
    "project metadata": lambda fields: ({}, {"project": fields}),
    "team metadata": lambda fields: ({}, {"team": fields}),
    "key metadata": lambda fields: ({}, {"key": fields}),
    "request metadata": lambda fields: ({"defaults": {"request_may_set": sorted(fields)}}, {"request": fields}),
}
every_scope = pytest.mark.parametrize("scope", SCOPES)


def test_every_old_name_stands_for_a_field_and_is_none_itself():
    assert set(RENAMED.values()) <= set(Policy.model_fields)
    assert not set(RENAMED) & set(Policy.model_fields)
    assert set(VALUES) == set(RENAMED)


@every_old_name
@every_scope
def test_an_old_name_sets_the_field_in_every_scope(scope, old):
    settings, caller = SCOPES[scope]({old: VALUES[old]})
    found = resolve(settings, **caller)
    assert getattr(found.policy, RENAMED[old]) == VALUES[old]
    assert not found.ignored
    assert RENAMED[old] in found.origins


@every_old_name
@every_scope
def test_a_scope_with_both_names_of_a_field_is_faulty(scope, old):
    settings, caller = SCOPES[scope]({old: VALUES[old], RENAMED[old]: VALUES[old]})
    found = resolve(settings, **caller)
    assert getattr(found.policy, RENAMED[old]) == getattr(Policy(), RENAMED[old])
    assert any(f"`{old}` is the old name of `{RENAMED[old]}`" in line for line in found.ignored)


@every_old_name
@pytest.mark.parametrize("swapped", [False, True], ids=["new over old", "old over new"])
def test_old_and_new_name_in_two_scopes_are_one_field_and_the_narrower_scope_wins(old, swapped):
    wide, narrow = (RENAMED[old], old) if swapped else (old, RENAMED[old])
    found = resolve({"defaults": {wide: 0}}, team={narrow: VALUES[old]})
    assert getattr(found.policy, RENAMED[old]) == VALUES[old]
    extended = {"policies": {"p": {wide: 0}, "q": {"extends": "p", narrow: VALUES[old]}}, "defaults": "q"}
    assert getattr(resolve(extended).policy, RENAMED[old]) == VALUES[old]


@every_old_name
@pytest.mark.parametrize("renames_lock", [False, True], ids=["old lock", "new lock"])
@pytest.mark.parametrize("renames_field", [False, True], ids=["old field", "new field"])
def test_a_lock_holds_a_field_under_both_names(old, renames_lock, renames_field):
    lock, field = (RENAMED[old] if renames else old for renames in (renames_lock, renames_field))
    found = resolve({"defaults": {old: 0, "locked": [lock]}}, team={field: VALUES[old]})
    assert getattr(found.policy, RENAMED[old]) == 0
    assert any("is locked by defaults" in line for line in found.ignored)


@every_old_name
@pytest.mark.parametrize("renamed", [False, True], ids=["old in the list", "new in the list"])
def test_what_a_request_may_set_it_may_set_under_both_names(old, renamed):
    listed = RENAMED[old] if renamed else old
    for asked in (old, RENAMED[old]):
        found = resolve({"defaults": {"request_may_set": [listed]}}, request={asked: VALUES[old]})
        assert getattr(found.policy, RENAMED[old]) == VALUES[old]


@every_old_name
def test_a_policy_made_in_python_takes_the_old_name(old):
    assert Policy(**{old: VALUES[old]}) == Policy(**{RENAMED[old]: VALUES[old]})


@every_old_name
@pytest.mark.parametrize(
    "scope", [lambda old: {old: VALUES[old]}, lambda old: {"locked": [old]}, lambda old: {"request_may_set": [old]}]
)
def test_an_old_name_is_told_once_at_the_start_and_is_no_mistake(old, scope, caplog):
    settings = load_settings({"strict": True, "teams": {"alpha": scope(old)}})
    told = [r.getMessage() for r in caplog.records if "deprecated" in r.getMessage()]
    assert len(told) == 1
    assert f"`{old}` is deprecated, its name is `{RENAMED[old]}`" in told[0]
    Policies(settings).resolve(Caller(team_names=("alpha",)))
    assert len([r for r in caplog.records if "deprecated" in r.getMessage()]) == 1


@every_old_name
def test_both_names_in_the_settings_refuse_to_start_where_mistakes_do(old):
    with pytest.raises(ConfigurationError, match=old):
        load_settings({"strict": True, "defaults": {old: VALUES[old], RENAMED[old]: VALUES[old]}})


@every_old_name
def test_check_names_the_new_field_and_accepts_the_configuration(old, tmp_path, capsys):
    model = {"model_name": "m", "litellm_params": {"model": "openai/x"}, "model_info": {"ctx_hooks": {old: VALUES[old]}}}
    settings = {"defaults": {old: VALUES[old]}, "teams": {"t": {"locked": [old]}}}
    path = tmp_path / "config.yaml"
    path.write_text(
        yaml.safe_dump({"model_list": [model], "callback_settings": {"ctx_hooks": settings}, "litellm_settings": LISTED})
    )
    assert main(["check", str(path)]) == 0
    printed = capsys.readouterr().out
    for place in (f"defaults.{old}", "teams.t.locked", f"model_list.0.model_info.ctx_hooks.{old}"):
        assert f"{place}: `{old}` is deprecated, its name is `{RENAMED[old]}`" in printed


@every_old_name
def test_the_schema_has_the_new_names_alone(old, capsys):
    assert main(["schema"]) == 0
    printed = capsys.readouterr().out
    assert f'"{RENAMED[old]}"' in printed
    assert f'"{old}"' not in printed
