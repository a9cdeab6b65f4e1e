"""The flags by which callers protect messages are read, and not sent on; all else of a message is."""

from copy import deepcopy

import pytest

from ctx_hooks.formats.wire_format import is_pinned, without_flags

BARE = {"role": "user", "content": "Keep this."}
TEXT = {"type": "text", "text": "Go on."}
RESULT = {"type": "tool_result", "tool_use_id": "a", "content": "text"}
SPARED, FLAG = {"context": {"truncation_skip": True}}, {"context": {"pin": True}}
OTHERS = {"context": {"citations": []}}


@pytest.mark.parametrize(("item", "sent", "pins"), [
    ({**BARE, **FLAG}, BARE, True), ({**BARE, "context": {"pin": False}}, BARE, False),
    ({**BARE, "context": {"pin": 1}}, BARE, False),
    ({**BARE, "context": {"pin": True, "citations": []}}, BARE | OTHERS, True),
    ({"role": "user", "content": [RESULT | SPARED, TEXT]}, {"role": "user", "content": [RESULT, TEXT]}, True),
    ({"role": "user", "parts": [{"text": "Keep."} | FLAG]}, {"role": "user", "parts": [{"text": "Keep."}]}, True),
], ids=["message", "unset", "no flag", "beside other fields", "block", "part"])  # fmt: skip
def test_flags_go_and_all_else_stays(item, sent, pins):
    items = [BARE, item, "no message"]
    before = deepcopy(items)
    assert without_flags(items) == [BARE, sent, "no message"]
    assert items == before
    assert is_pinned(item) is pins


@pytest.mark.parametrize("items", [
    [], [BARE], "a text", None, [None, 1, "context"], [BARE | OTHERS], [{**BARE, "context": "pin"}],
    [{**BARE, "context": ["pin"]}], [{"role": "user", "content": [{**TEXT, "text": str(FLAG)}, "text", None]}],
])  # fmt: skip
def test_messages_without_flags_are_not_written_again(items):
    assert without_flags(items) is None
    assert not any(map(is_pinned, items or ()))
