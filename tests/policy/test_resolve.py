"""The most specific scope wins unless a wider one locks; a caller sets what it may, and nothing grows with what it sends."""

import logging
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from ctx_hooks.litellm_compat.call import Call, Deployment
from ctx_hooks.policy.loading import load_settings
from ctx_hooks.policy.resolve import LINE_CHARS, MOST_LINES, Caller, Policies, as_text
from ctx_hooks.policy.settings import Policy, Settings
from ctx_hooks.runtime.warnings import LONGEST_CHARS, one_line, warn_once
from ctx_hooks.telemetry.headers import of_ignored


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


def test_named_policy_begins_with_preset_only():
    settings = {
        "policies": {"careful": {"policy": "mycodeagent", "language": "zh"}, "more": {"policy": "careful", "reserve": 5}},
        "teams": {"alpha": {"policy": "careful", "max_turns": 9}, "beta": "more"},
    }
    alpha = resolve(settings, team_names=("alpha",)).policy
    assert (alpha.max_turns, alpha.language, alpha.tool_results.max_lines) == (9, "zh", 2_000)
    beta = resolve(settings, team_names=("beta",))
    assert beta.policy == Policy(mode="observe", reserve=5)
    assert "policies.more.policy: 'careful' is no policy" in beta.ignored[0]


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
    ({"policies": {"x": {"policy": "x"}}}, "policies.x"), ("nonsense", "callback_settings.ctx_hooks"),
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
    assert resolve({"policies": {"p": {"policy": False}}, "defaults": "p"}).policy.mode == "off"


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


OFF = {"mode": "off"}
CHOSEN = {"sessions": {"s:*": OFF}}
TEXTS = ("deployment", "organization", "project", "team", "key")


def ask(fields):
    """Return the caller of a chat request."""
    return Call({"metadata": {}, **fields}).caller(Deployment("m", {}), "group")


LOCKED = {"locked": ["mode"]}


@pytest.mark.parametrize(("settings", "caller"), [
    *(({}, {scope: LOCKED}) for scope in TEXTS), ({"teams": {"x": LOCKED}}, {"team_names": ("x",)}),
    ({"keys": {"x": LOCKED}}, {"key_names": ("x",)}), ({"models": {"x": LOCKED}}, {"group": "x"}),
], ids=str)  # fmt: skip
def test_session_sets_nothing_that_an_operator_locks(settings, caller):
    found = resolve({**CHOSEN, **settings}, session="s:1", **caller)
    assert found.policy.mode == "enforce"
    assert any("mode is locked by" in line for line in found.ignored)


def test_session_locks_requests_and_no_operator():
    locking = {"reserve": 1, "locked": ["reserve"]}
    settings = {"sessions": {"s:*": locking}, "defaults": {"request_may_set": ["reserve"]}}
    assert resolve(settings, session="s:1", team={"reserve": 7}).policy.reserve == 7
    assert resolve(settings, session="s:1", request={"reserve": 7}).policy.reserve == 1


def test_the_environment_stands_above_the_request_and_every_lock(monkeypatch):
    monkeypatch.setenv("TOOL_OUTPUT_MAX_LINES", "77")
    asked = {"tool_results": {"max_lines": 5, "max_chars": 9_000}}
    settings = {"defaults": {"request_may_set": ["tool_results"], "tool_results": {"direction": "head"}}}
    found = resolve(settings, request=asked)
    limits = found.policy.tool_results
    assert (limits.max_lines, limits.max_chars, limits.direction) == (77, 9_000, "head")
    assert found.origins["tool_results"] == "environment"
    locked = resolve({"defaults": {**settings["defaults"], "locked": ["tool_result_max_lines"]}}, request=asked)
    assert (locked.policy.tool_results.max_lines, locked.policy.tool_results.max_chars) == (77, 400_000)


@pytest.mark.parametrize("overrides", [
    {"x" * 1_000_000: 1}, {"language": "x" * 1_000_000}, {f"field {n}": n for n in range(3_000)},
    {f"field {n}": n for n in range(200)}, {"a": {}, 1: {}}, {"mode": "\r\n\0\u2028\x1b[2J" * 400},
    [["x"] * 100_000], "name\r\n" * 900,
], ids=["name", "value", "3,000 fields", "200 fields", "kinds of keys", "control", "list", "policy"])  # fmt: skip
def test_what_cannot_be_overrides_is_not_believed_and_told_in_short(overrides):
    for part in ("request", "team"):
        found = resolve({"defaults": {"request_may_set": ["language"]}}, **{part: overrides})
        unreadable = found.policy.mode == "off"  # the operator's own: it may have said so
        assert not unreadable or part == "team"
        assert found.policy == Policy(mode=found.policy.mode, request_may_set=("language",))
        assert 0 < len(found.ignored) <= MOST_LINES
        assert all(len(line) <= LINE_CHARS and line.isprintable() for line in found.ignored)


def test_a_nesting_without_end_is_no_crash():
    nested = {}
    for _ in range(100_000):
        nested = {"a": nested}
    circle = {}
    circle["a"] = circle
    for overrides in (nested, circle):
        assert resolve({}, request=overrides).policy == Policy()


def test_too_long_names_match_nothing():
    long = "s:" + "x" * 1_000_000
    caller = ask({"user": long, "proxy_server_request": {"headers": {"x-ctx-hooks": long}}})
    assert (caller.session, caller.request_policy) == ("", "")


def test_memory_is_bounded_by_bytes_whatever_callers_send():
    """150 requests, each with a field of its own of 1 MB and as many other names, leave less than 2 MB."""
    policies, headers = Policies(Settings.model_validate(CHOSEN)), []
    tracemalloc.start()
    try:
        for n in range(150):
            name = f"{n:03}" + "x" * 1_000_000
            asked = {"ctx_hooks": {name: n}, "session_id": name}
            caller = ask({"metadata": asked, "user": name, "proxy_server_request": {"headers": {"x-ctx-hooks": name}}})
            found = policies.resolve(caller)
            headers.append(of_ignored(found.ignored))
            warn_once(f"a caller says {name}")
            del name, asked, caller
        held, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert held < 2_000_000


@given(st.text(st.characters(), max_size=1_000))
def test_what_a_log_quotes_is_one_bounded_line(text):
    line = one_line(text)
    assert line.isprintable()
    assert len(line) <= LONGEST_CHARS


def test_no_message_of_the_package_begins_a_line_that_a_caller_wrote(caplog):
    logging.getLogger("ctx_hooks").warning("the window of %s is small", "a model\nWARNING: all is lost\x1b[2J")
    (record,) = caplog.records
    assert record.getMessage() == "the window of a model\\nWARNING: all is lost\\x1b[2J is small"
