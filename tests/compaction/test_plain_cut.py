"""The cut by position keeps calls with their results, the instructions and the newest request, in every format."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import FIELDS, every_format, items_of, payloads

from ctx_hooks.compaction.plain_cut import json_bytes, plain_cut
from ctx_hooks.testing import agent_session, violations


@every_format
@settings(max_examples=40)
@given(data=st.data(), most_bytes=st.integers(0, 6_000))
def test_plain_cut_breaks_no_rule(fmt, data, most_bytes):
    items = data.draw(payloads(fmt))
    kept = plain_cut(items, most_bytes)
    assert violations(fmt, {FIELDS[fmt]: kept, "tools": [{"name": "read_file"}]}) == []
    assert [item for item in items if any(item is k for k in kept)] == kept


@every_format
@pytest.mark.parametrize("most_bytes", [8_000, 20_000])
def test_plain_cut_keeps_the_newest_items_that_have_room(fmt, most_bytes):
    items = items_of(agent_session(fmt, turns=30))[:-1]
    kept = plain_cut(items, most_bytes)
    assert most_bytes / 2 < sum(map(json_bytes, kept)) <= most_bytes
    assert kept[-2:] == items[-2:]
