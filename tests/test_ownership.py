"""Whatever a caller does to what it gave or got, later results are those of a fresh process."""

from copy import deepcopy

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import FIELDS, every_format, items_of, payloads

import ctx_hooks
from ctx_hooks.addons.retrieval import tool
from ctx_hooks.attempts.request import Request
from ctx_hooks.compaction.cut_points import Thresholds
from ctx_hooks.compaction.history import history_of, message_stats
from ctx_hooks.compaction.prefix_stable import compacted
from ctx_hooks.formats import MessageReader
from ctx_hooks.runtime import content_cache
from ctx_hooks.testing import agent_session
from ctx_hooks.tokens.budget import Budget
from ctx_hooks.tokens.counter import Counter


def deface(value):
    """Change everything in a JSON value in place: texts, numbers, fields, and what stands in lists."""
    if isinstance(value, dict):
        for name, inner in list(value.items()):
            value[name] = deface(inner)
        value["defaced"] = True
    elif isinstance(value, list):
        value[:] = [deface(inner) for inner in value] + ["<MASKED>"]
    else:
        return "<MASKED>"
    return value


@every_format
@settings(max_examples=8)
@given(data=st.data(), budget_tokens=st.integers(100, 1_500), target_tokens=st.sampled_from([None, "auto"]))
def test_callers_changes_reach_no_later_result(fmt, data, budget_tokens, target_tokens):
    clean, limits = data.draw(payloads(fmt)), {"budget_tokens": budget_tokens, "target_tokens": target_tokens}
    content_cache.clear_all()
    fresh = deepcopy(ctx_hooks.compress(deepcopy(clean), format=fmt, **limits))
    content_cache.clear_all()
    for _ in range(3):
        given_now = deepcopy(clean)
        got = ctx_hooks.compress(given_now, format=fmt, **limits)
        assert got == fresh
        deface(got.messages)
        deface(given_now)


@every_format
def test_changes_during_a_request_reach_nobody(fmt):
    """A compaction is remembered by digests: messages that change behind these must not be remembered by them."""
    clean = items_of(agent_session(fmt, turns=40))

    def sent(change):
        given, counter = deepcopy(clean), Counter("o200k_base")
        reader = MessageReader(fmt, given)
        history = history_of(reader, message_stats(reader, counter), counter)
        change(given)
        return compacted(history, Thresholds(Budget(9_000, 12_000, counter)))[0].conversation

    content_cache.clear_all()
    fresh = sent(lambda _: None)
    content_cache.clear_all()
    sent(deface)
    assert sent(lambda _: None).messages == fresh.messages


@pytest.mark.parametrize("fmt", ["openai-chat", "anthropic", "openai-responses"])
def test_each_request_owns_its_tool_definition(fmt):
    request = Request(fmt, {FIELDS[fmt]: [], "tools": []})
    first = deepcopy(request.with_tool(tool.definition(fmt)))
    deface(request.with_tool(tool.definition(fmt)))
    assert request.with_tool(tool.definition(fmt)) == first
