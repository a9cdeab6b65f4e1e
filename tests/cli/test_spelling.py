"""`check` says what an unknown name may have meant; requests get the name only."""

import pytest

from ctx_hooks.cli.configuration import configuration_of
from ctx_hooks.policy.resolve import Caller


def mistakes(settings):
    return configuration_of({"callback_settings": {"ctx_hooks": settings}}).mistakes


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
    assert "did you mean" not in " ".join(seen)
