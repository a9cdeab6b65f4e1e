"""What a caller may set, name and say: locks hold, the environment stands above, and nothing grows with what is sent."""

import logging
import tracemalloc

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctx_hooks.litellm_compat.call import Call, Deployment
from ctx_hooks.policy.resolve import LINE_CHARS, MOST_LINES, Caller, Policies, as_text
from ctx_hooks.policy.settings import Policy, Settings
from ctx_hooks.runtime.warnings import LONGEST_CHARS, one_line, warn_once
from ctx_hooks.telemetry.headers import of_ignored

OFF = {"mode": "off"}
CHOSEN = {"sessions": {"s:*": OFF}}
TEXTS = ("deployment", "organization", "project", "team", "key")


def resolve(settings, **caller):
    fields = {k: as_text(v) if k in {*TEXTS, "request"} else v for k, v in caller.items()}
    return Policies(Settings.model_validate(settings)).resolve(Caller(**fields))


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


def test_the_longest_policy_that_makes_sense_is_not_too_long():
    summary = {"model": "small", "prompt": "界" * 2_000}
    full = Policy(summary=summary, window_tokens=10**9, max_turns=10**6).model_dump(mode="json")
    found = resolve({}, team=full)
    assert not found.ignored
    assert found.policy.summary.prompt == "界" * 2_000


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
        assert 0 < len(found.ignored) <= MOST_LINES + 1
        assert all(len(line) <= LINE_CHARS and line.isprintable() for line in found.ignored)


def test_a_nesting_without_end_is_no_crash():
    nested = {}
    for _ in range(100_000):
        nested = {"a": nested}
    circle = {}
    circle["a"] = circle
    for overrides in (nested, circle):
        assert resolve({}, request=overrides).policy == Policy()


def test_names_that_are_too_long_match_nothing():
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
