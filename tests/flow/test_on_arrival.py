"""Tool results that the policy limits in every request are cut as they arrive; nothing else of a fitting request changes."""

import json
from dataclasses import replace

import pytest
from engine_requests import DEAR_CACHE, NOW, by_size, decided, sent, tokens_of
from engine_requests import to as target
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import FIELDS, every_format, spoken, tool_round

from ctx_hooks.attempts.attempt import Limits, limits_of
from ctx_hooks.attempts.observations import DeploymentStats
from ctx_hooks.attempts.request import Request
from ctx_hooks.conversation.handles import Retrievable, handle_of
from ctx_hooks.flow import engine
from ctx_hooks.flow.decision import Compressed, Untouched
from ctx_hooks.overflow.recognise import Overflow
from ctx_hooks.runtime.deadline import Deadline, Timings
from ctx_hooks.testing import agent_session, violations
from ctx_hooks.tokens.units import ProviderTokens

ALWAYS = {"max_lines": 2_000, "max_bytes": 51_200, "direction": "head", "apply": "always"}
LONG = "\n".join(f"row {n}" for n in range(6_000))
WIDE = "字 " * 40_000


def request(fmt, results):
    """Return a conversation in which each result answers a call of its own."""
    items = [spoken(fmt, "user", "Read them.")]
    for n, result in enumerate(results):
        items += tool_round(fmt, [(f"call_{n}", result)])
    return Request(fmt, {**agent_session(fmt, turns=1), FIELDS[fmt]: [*items, spoken(fmt, "user", "Well?")]})


def as_sent(asked, where):
    found, _ = decided(asked, where)
    return sent(asked, found), found


@every_format
@pytest.mark.parametrize("long", [LONG, WIDE], ids=["lines", "bytes"])
def test_oversized_result_of_fitting_request_is_cut(fmt, long):
    asked = request(fmt, ["short", long, "short again"])
    whole, left = as_sent(asked, target(tool_results={**ALWAYS, "apply": "compressed"}))
    assert isinstance(left, Untouched)
    assert whole.fields == asked.fields
    cut, found = as_sent(asked, target(tool_results=ALWAYS))
    assert isinstance(found, Compressed)
    assert not violations(fmt, cut.fields)
    assert by_size(asked, target(tool_results=ALWAYS)) is None
    assert tokens_of(cut) == found.figures.tokens_after < tokens_of(asked) / 1.5
    differing = [n for n, (a, b) in enumerate(zip(asked.items, cut.items, strict=True)) if a != b]
    assert len(differing) == 1
    assert long[:200] in json.dumps(cut.items[differing[0]], ensure_ascii=False).replace("\\n", "\n")


@every_format
@settings(max_examples=20, deadline=None)
@given(lengths=st.lists(st.integers(1, 4_000), min_size=2, max_size=6), window=st.sampled_from([12_000, 60_000, 400_000]))
def test_cut_depends_only_on_its_message(fmt, lengths, window):
    """The messages before the question are sent alike in every request, until a compaction is due."""
    where = target(window, tool_results={"max_lines": 300, "direction": "head", "apply": "always"})
    before = []
    for n in range(1, len(lengths) + 1):
        asked = request(fmt, ["\n".join("x" * 4 for _ in range(length)) for length in lengths[:n]])
        found, attempt = decided(asked, where)
        items = list(sent(asked, found).items)
        if attempt.rewrites:
            return
        assert items[: len(before)] == before
        before = items[:-1]


def test_short_results_need_no_counting():
    where = target(tool_results=ALWAYS)
    (found, _) = by_size(request("openai-chat", ["short"]), where)
    assert isinstance(found, Untouched)
    assert as_sent(request("openai-chat", ["row\n" * 1_000]), where)[1].changes == {}


@pytest.mark.parametrize("compaction", ["full", "cost_aware", "client_first"])
def test_no_compaction_sends_oversized_result_whole(compaction):
    where = target(compaction=compaction, prices=DEAR_CACHE, tool_results=ALWAYS)
    asked = request("openai-chat", [LONG, *["words " * 1_500] * 60])
    assert LONG not in [m["content"] for m in as_sent(asked, where)[0].items]


@pytest.mark.parametrize("number", [1, 2, 3])
def test_no_retry_sends_oversized_result_whole(number):
    asked, where = request("openai-chat", [LONG, *["words " * 500] * 9]), target(tool_results=ALWAYS)
    refused = decided(asked, where)[1]
    limit = ProviderTokens(refused.sent_tokens - 100)  # the whole request would be above it, the refused one too
    refused = replace(refused, failed=True, overflow=Overflow("input", "x", limit, refused.sent_tokens))
    where = replace(where, attempt=number)
    found, again = decided(asked, where, limits_of(where, DeploymentStats(), NOW, refused))
    assert LONG not in [m["content"] for m in sent(asked, found).items]
    assert again.sent_tokens == tokens_of(sent(asked, found)) <= limit


def test_cut_text_is_archived_by_its_handle():
    asked, stored = request("openai-chat", [LONG]), {}
    where = target(tool_results=ALWAYS, archive={})
    where = replace(where, retrievable=Retrievable(b"tenant", 7, None, stored.update))
    found = engine.decide(asked, where, Limits(where.window), Deadline(60), Timings())
    assert stored == {handle_of(b"tenant", LONG): LONG}
    assert handle_of(b"tenant", LONG) in json.dumps(sent(asked, found.decision).items)


@every_format
def test_fitting_request_is_repaired_only_if_wanted(fmt):
    """An orphaned result is left to its provider, whether another one is cut or not."""
    asked = request(fmt, [LONG])
    orphan = tool_round(fmt, [("never_asked", "done")])[1:]
    with_orphan = Request(fmt, {**asked.fields, FIELDS[fmt]: [*asked.items, *orphan]})
    cut, found = as_sent(with_orphan, target(tool_results=ALWAYS))
    assert set(found.changes) == {FIELDS[fmt]}
    assert sum(a != b for a, b in zip(with_orphan.items, cut.items, strict=True)) == 1
    repaired, found = as_sent(with_orphan, target(repair="always"))
    assert set(found.changes) == {FIELDS[fmt]}
    assert violations(fmt, repaired.fields) == []
    assert not as_sent(asked, target(repair="always"))[1].changes
