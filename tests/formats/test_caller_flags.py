"""The flags by which callers protect messages are read, and not sent on; all else of a message is."""

from copy import deepcopy

import pytest

from ctx_hooks.formats.caller_flags import is_pinned, without_flags

PINNED = {"role": "user", "content": "Keep this.", "context": {"pin": True}}
BARE = {"role": "user", "content": "Keep this."}
SPARED = {"type": "tool_result", "tool_use_id": "a", "content": "text", "context": {"truncation_skip": True}}


@pytest.mark.parametrize(("item", "sent"), [
    (PINNED, BARE), ({**BARE, "context": {"pin": False}}, BARE),
    ({**BARE, "context": {"pin": True, "citations": []}}, {**BARE, "context": {"citations": []}}),
    (
        {"role": "user", "content": [SPARED, {"type": "text", "text": "Go on."}]},
        {
            "role": "user",
            "content": [{"type": "tool_result", "tool_use_id": "a", "content": "text"}, {"type": "text", "text": "Go on."}],
        },
    ),
    (
        {"role": "user", "parts": [{"text": "Keep this.", "context": {"pin": True}}]},
        {"role": "user", "parts": [{"text": "Keep this."}]},
    ),
], ids=["message", "unset", "beside other fields", "block", "part"])  # fmt: skip
def test_flags_go_and_all_else_stays(item, sent):
    items = [BARE, item, "no message"]
    before = deepcopy(items)
    assert without_flags(items) == [BARE, sent, "no message"]
    assert items == before


@pytest.mark.parametrize("items", [
    [], [BARE], "a text", None, [None, 1, "context"], [{**BARE, "context": {"citations": []}}],
    [{**BARE, "context": "pin"}], [{**BARE, "context": None}],
    [{"role": "user", "content": [{"type": "text", "text": '{"context": {"pin": true}}'}, "text", None]}],
])  # fmt: skip
def test_what_has_no_flag_is_not_written_again(items):
    assert without_flags(items) is None


@pytest.mark.parametrize("value", [BARE, "text", None, {"context": {"pin": 1}}, {"context": ["pin"]}, {"pin": True}])
def test_only_what_is_true_in_the_field_is_a_flag(value):
    assert not is_pinned(value)
    assert is_pinned(PINNED)
