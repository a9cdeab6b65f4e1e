"""Field by field the most specific scope wins; locks hold; a mistake stays where it was made."""

import pytest
from pydantic import ValidationError

from ctx_hooks.policy.loading import load_settings
from ctx_hooks.policy.resolve import Caller, Policies, as_text
from ctx_hooks.policy.settings import Policy, Settings


def resolve(settings, **caller):
    texts = {"deployment", "organization", "project", "team", "key", "request"}
    fields = {k: as_text(v) if k in texts else v for k, v in caller.items()}
    return Policies(Settings.model_validate(settings)).resolve(Caller(**fields))


SCOPES = {
    "defaults": {"reserve": 1},
    "models": {"gpt": {"reserve": 2}},
    "sessions": {"group:*": {"reserve": 4}},
    "teams": {"alpha": {"reserve": 8}},
    "keys": {"ci": {"reserve": 10}},
}


@pytest.mark.parametrize(("caller", "expected"), [
    ({}, 1), ({"group": "gpt"}, 2), ({"group": "gpt", "deployment": {"reserve": 3}}, 3),
    ({"group": "gpt", "session": "group:42"}, 4), ({"session": "group:42", "organization": {"reserve": 6}}, 6),
    ({"organization": {"reserve": 6}, "project": {"reserve": 7}}, 7),
    ({"project": {"reserve": 7}, "team_names": ("t-1", "alpha")}, 8),
    ({"team_names": ("t-1", "alpha"), "team": {"reserve": 9}}, 9),
    ({"team": {"reserve": 9}, "key_names": ("ci",)}, 10),
    ({"key_names": ("ci",), "key": {"reserve": 11}}, 11),
])  # fmt: skip
def test_each_scope_wins_over_the_wider_ones(caller, expected):
    assert resolve(SCOPES, **caller).policy.reserve == expected


def test_fields_are_taken_one_by_one_and_say_where_they_came_from():
    found = resolve(SCOPES, group="gpt", team={"language": "zh"})
    assert (found.policy.reserve, found.policy.language) == (2, "zh")
    assert found.origins == {"reserve": "models.gpt", "language": "team"}


def test_a_scope_sets_the_limits_of_tool_results_that_it_names():
    settings = {"defaults": {"tool_results": {"max_lines": 9}}, "teams": {"a": {"tool_results": {"direction": "tail"}}}}
    limits = resolve(settings, team_names=("a",)).policy.tool_results
    assert (limits.max_lines, limits.max_chars, limits.direction) == (9, 400_000, "tail")
    named = {"policies": {"short": {"tool_results": {"max_chars": 5_000}}}}
    own = {"policy": "short", "tool_results": {"max_lines": 7, "direction": "up"}}
    allowed = {"request_may_set": ["tool_results", "short"]}
    asked = {"request": {"tool_results": {"max_lines": 7}}, "request_policy": "short"}
    for settings, caller in (({"defaults": own}, {}), ({"defaults": allowed}, asked)):
        limits = resolve({**named, **settings}, **caller).policy.tool_results
        assert (limits.max_lines, limits.max_chars, limits.direction) == (7, 5_000, "head_tail")


def test_a_locked_field_stays_and_the_attempt_is_told():
    settings = {"defaults": {"reserve": 9_000, "locked": ["reserve"]}}
    found = resolve(settings, team={"reserve": 1, "language": "zh"})
    assert (found.policy.reserve, found.policy.language) == (9_000, "zh")
    assert any("locked by defaults" in line for line in found.ignored)


def test_named_policies_extend_each_other_and_the_presets():
    settings = {
        "policies": {"careful": {"extends": "balanced", "language": "zh"}, "more": {"extends": "careful", "reserve": 5}},
        "teams": {"alpha": "more", "beta": {"policy": "careful", "max_turns": 9}},
    }
    alpha = resolve(settings, team_names=("alpha",)).policy
    assert (alpha.reserve, alpha.language, alpha.keep_recent) == (5, "zh", 20_000)
    assert resolve(settings, team_names=("beta",)).policy.max_turns == 9


def test_policies_that_extend_each_other_in_a_circle_are_a_mistake():
    settings = {"policies": {"a": {"extends": "b"}, "b": {"extends": "a"}}, "defaults": "a"}
    assert Policies(Settings.model_validate(settings)).mistakes()


def test_a_request_sets_what_it_may_and_nothing_else():
    settings = {
        "defaults": {"request_may_set": ["language", "mycodeagent", "off"]},
        "policies": {"language": {"mode": "off"}},
    }
    found = resolve(settings, request={"language": "zh", "reserve": 1}, request_policy="mycodeagent")
    assert (found.policy.language, found.policy.tool_results.max_lines, found.policy.reserve) == ("zh", 2_000, None)
    assert any("reserve may not be set" in line for line in found.ignored)
    assert resolve(settings, request_policy="off").policy.mode == "off"
    assert resolve(settings, request_policy="language").policy.mode == "enforce"  # only the field is allowed
    assert resolve({}, request_policy="off").policy.mode == "enforce"


@pytest.mark.parametrize(("raw", "path"), [
    ({"defaultz": {}}, "callback_settings.ctx_hooks.defaultz"),
    ({"defaults": {"reserve": -1}}, "defaults.reserve"),
    ({"teams": {"a": {"languag": "en"}}}, "teams.a.languag"), ({"models": {"gpt": "no such policy"}}, "models.gpt.policy"),
    ({"defaults": {"locked": ["reserv"]}}, "defaults.locked"),
    ({"defaults": {"request_may_set": ["balance"]}}, "'balance' is no field and no policy"),
    ({"teams": {"alpha": {"locked": ["reserve_token"]}}}, "'reserve_token' is no field"),
    ({"teams": {"alpha": {"locked": "reserve"}}}, "teams.alpha.locked: 'reserve' is no field"),
    ({"policies": {"x": {"extends": "y"}}}, "policies.x"), ("nonsense", "callback_settings.ctx_hooks"),
])  # fmt: skip
def test_every_mistake_is_logged_with_its_path(raw, path, caplog):
    load_settings(raw)
    assert path in caplog.text


@pytest.mark.parametrize(
    "wrong", [{"teems": {}}, {"teams": {"a": ["b"]}}, {"models": None}, {"cache_bytes": -1}, {None: {}}], ids=str
)
def test_a_section_that_cannot_be_read_leaves_the_others_in_force_and_is_not_all_that_is_told(wrong, caplog):
    settings, _ = load_settings({"defaults": "observe", "keys": {"k": {"languag": "zh"}}, **wrong})
    assert Policies(settings).resolve(Caller()).policy.mode == "observe"
    assert f"callback_settings.ctx_hooks.{next(iter(wrong))}" in caplog.text
    assert "callback_settings.ctx_hooks.keys.k.languag" in caplog.text


@pytest.mark.parametrize("scope", ["off", {"policy": "off"}, {"policy": False}, False], ids=str)
def test_the_policy_off_may_be_named_without_quotation_marks_though_yaml_reads_it_as_false(scope):
    assert resolve({"teams": {"a": scope}}, team_names=("a",)).policy.mode == "off"
    assert resolve({"policies": {"p": {"extends": False}}, "defaults": "p"}).policy.mode == "off"


def test_patterns_match_model_groups_and_an_exact_name_wins():
    settings = {"models": {"openai/*": {"reserve": 1}, "openai/gpt-4o": {"reserve": 2}}}
    assert resolve(settings, group="openai/o3").policy.reserve == 1
    assert resolve(settings, group="openai/gpt-4o").policy.reserve == 2


LEAST_AND_MOST = {
    "window_tokens": (1_000, None), "block_below_tokens": (0, None), "reserve": (0, None), "keep_recent": (0, None),
    "rescue_attempts": (0, 3), "max_turns": (1, None),
}  # fmt: skip


@pytest.mark.parametrize("name", LEAST_AND_MOST)
def test_a_figure_has_its_bounds_and_may_be_either_of_them(name):
    least, most = LEAST_AND_MOST[name]
    for value in (v for v in (least, most) if v is not None):
        assert getattr(Policy(**{name: value}), name) == value
    for value in (least - 1, *(() if most is None else (most + 1,))):
        with pytest.raises(ValidationError):
            Policy(**{name: value})


@pytest.mark.parametrize(
    "limits", [{"max_chars": 1_999}, {"max_lines": 0}, {"max_bytes": 199}, {"max_fraction": 0}, {"direction": "up"}]
)
def test_limit_of_results_has_its_bounds(limits):
    with pytest.raises(ValidationError):
        Policy(tool_results=limits)
