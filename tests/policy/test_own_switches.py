"""A field of the policy that is a switch turns off itself alone."""

import pytest

from ctx_hooks.policy.scopes import read_scope


@pytest.mark.parametrize("value", [False, True])
def test_own_switch_leaves_mode(value):
    scope = read_scope("defaults", {"compaction_api": value}, {})
    assert (scope.fields, scope.mistakes) == ({"compaction_api": value}, ())
