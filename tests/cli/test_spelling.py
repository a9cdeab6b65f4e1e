"""`check` says what an unknown name may have meant; requests get the name only."""

import re

import pytest
import yaml

from ctx_hooks.cli.configuration import KNOWN_ELSEWHERE, configuration_of
from ctx_hooks.policy.resolve import Caller


def mistakes(settings):
    return configuration_of({"callback_settings": {"ctx_hooks": settings}}).mistakes


OTHER_SYSTEMS = {
    "reserveTokens": "reserve", "keepRecentTokens": "keep_recent", "context_window_override": "max_input_tokens",
    "historyLimit": "max_turns", "dmHistoryLimit": "max_turns", "soft_trim_ratio": "tool_results",
    "hard_trim_ratio": "tool_results", "max_overflow_compaction_attempts": "rescue_attempts", "max_lines": "tool_results",
    "TOOL_OUTPUT_MAX_LINES": "tool_results", "TOOL_OUTPUT_MAX_BYTES": "tool_results", "TOOL_OUTPUT_DIR": "archive",
    "TOOL_OUTPUT_TRUNCATE_DIRECTION": "tool_results", "TOOL_OUTPUT_RETENTION_DAYS": "archive",
}  # fmt: skip


@pytest.mark.parametrize(("name", "field"), OTHER_SYSTEMS.items())
def test_name_of_another_system_gets_hint(name, field):
    line, *_ = mistakes({"defaults": {name: 7}})
    assert f"defaults.{name}: there is no such field; " in line
    assert re.search(rf"`{field}[`:]", line)


@pytest.mark.parametrize("hint", sorted(hint for hint in KNOWN_ELSEWHERE.values() if "write" in hint))
def test_every_hint_is_a_valid_setting(hint):
    written = re.search("`(.+?)`", hint)[1].replace("FOLDER", "/folder")
    assert not mistakes({"defaults": yaml.safe_load(written)})


@pytest.mark.parametrize(("settings", "hint"), [
    ({"default": {}}, "default: there is no such field; did you mean 'defaults'?"),
    ({"mode": "observe"}, "mode: there is no such field; it belongs under `defaults`"),
    ({"teams": {"a": {"languag": "zh"}}}, "; did you mean 'language'?"),
    ({"teams": {"a": {"tool_results": {"max_line": 9}}}}, "; did you mean 'max_lines'?"),
    ({"defaults": {"archive": {"scoop": "team"}}}, "; did you mean 'scope'?"),
    ({"defaults": "observed"}, "; did you mean 'observe'?"), ({"defaults": {"locked": ["mod"]}}, "; did you mean 'mode'?"),
    ({"defaults": {"request_may_set": ["balance"]}}, "; did you mean 'balanced'?"),
])  # fmt: skip
def test_check_alone_suggests_spellings(settings, hint):
    found = configuration_of({"callback_settings": {"ctx_hooks": settings}})
    assert hint in " ".join(found.mistakes)
    seen = found.policies.resolve(Caller(team_names=("a",))).ignored
    assert not any(word in " ".join(seen) for word in ("did you mean", "write `"))
