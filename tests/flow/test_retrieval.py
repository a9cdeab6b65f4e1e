"""What is cut is referred to and handed over; where the model may retrieve it, the tool is part of the budget."""

import json
from dataclasses import replace

import engine_requests
import pytest
from engine_requests import COUNTER, NOW, sent, to, tokens_of
from strategies import FIELDS, every_format, spoken

from ctx_hooks.addons.retrieval import tool
from ctx_hooks.attempts.attempt import Limits, limits_of
from ctx_hooks.attempts.observations import DeploymentStats
from ctx_hooks.compaction.history import message_stats
from ctx_hooks.compaction.quoting import asks
from ctx_hooks.conversation.handles import Retrievable, handle_of
from ctx_hooks.conversation.placeholders import RETRIEVE
from ctx_hooks.flow import engine
from ctx_hooks.flow.decision import NotRetried, Untouched
from ctx_hooks.formats import MessageReader
from ctx_hooks.overflow.recognise import Overflow
from ctx_hooks.overflow.retry_plan import SMALLER_FRACTION
from ctx_hooks.policy.addon_settings import ArchiveSettings
from ctx_hooks.runtime import content_cache
from ctx_hooks.runtime.deadline import Deadline, Timings
from ctx_hooks.testing import violations
from ctx_hooks.tokens.budget import Budget
from ctx_hooks.tokens.units import LocalTokens, ProviderTokens

STORED = {}
OFFERING = ("openai-chat", "anthropic", "openai-responses")


@pytest.fixture(autouse=True)
def _nothing_remembered():
    content_cache.clear_all()
    STORED.clear()


def session(fmt="openai-chat", turns=20, **fields):
    """Return a request whose answer the provider does not keep."""
    kept_by_nobody = {"store": False} if fmt == "openai-responses" else {}
    return engine_requests.session(fmt, turns, **{**kept_by_nobody, **fields})


def target(window_tokens=12_000, **policy):
    return to(window_tokens, **policy)


def archived(request, where):
    offered = tool.definition(request.format) if tool.may_be_offered(request, where.policy) else None
    return replace(
        where, retrievable=Retrievable(b"tenant", where.policy.archive_in_use.retention_days, offered, STORED.update)
    )


def decided(request, where, *, archives=True):
    where = archived(request, where) if archives else where
    return engine.decide(request, where, Limits(where.window), Deadline(60), Timings())


@every_format
def test_tool_is_within_the_budget(fmt):
    request = session(fmt, turns=30)
    found = decided(request, target(retrieval=True))
    whole = sent(request, found.decision)
    assert found.offers == (fmt in OFFERING)
    assert (RETRIEVE in json.dumps(whole.fields["tools"])) == found.offers
    assert tokens_of(whole) == found.attempt.sent_tokens <= found.decision.figures.budget_tokens
    assert not violations(fmt, whole.fields)
    assert STORED
    assert all(handle_of(b"tenant", text) == handle for handle, text in STORED.items())


@pytest.mark.parametrize("turns", [3, 8, 30])
@pytest.mark.parametrize("share", [0.3, 0.95, 1.0])
def test_retry_with_the_tool_is_smaller(turns, share):
    """The definition of the tool is part of what is sent and of what was refused."""
    request, where = session(turns=turns), target(100_000, retrieval=True)
    refused = decided(request, where).attempt
    refused = replace(refused, sent_tokens=tokens_of(request), failed=True)
    for number in (1, 2, 3):
        limit = ProviderTokens(int(tokens_of(request) * share))
        refused = replace(refused, overflow=Overflow("input", "x", limit, refused.sent_tokens))
        retry = archived(request, replace(where, attempt=number))
        limits = limits_of(retry, DeploymentStats(), NOW, refused)
        found = engine.decide(request, retry, limits, Deadline(60), Timings())
        if isinstance(found.decision, NotRetried):
            return
        whole = sent(request, found.decision)
        assert tokens_of(whole) == found.attempt.sent_tokens
        assert tokens_of(whole) <= refused.sent_tokens * SMALLER_FRACTION
        refused = replace(found.attempt, failed=True)


@pytest.mark.parametrize("fmt", OFFERING)
def test_definition_follows_clients_tools(fmt):
    tools = [decided(session(fmt, turns=n), target(retrieval=True)).decision.changes["tools"] for n in (30, 40)]
    ours = [own for *others, own in tools]
    assert ours[0] == ours[1]
    assert [others for *others, own in tools] == [session(fmt).fields["tools"]] * 2


@pytest.mark.parametrize("fmt", OFFERING)
@pytest.mark.parametrize("turns", [2, 30])
def test_tool_needs_retrieval_and_archived_texts(fmt, turns):
    found = decided(session(fmt, turns=turns), target(retrieval=True), archives=turns == 2)
    assert not found.offers
    assert not STORED
    assert RETRIEVE not in json.dumps(found.decision.changes)
    assert isinstance(found.decision, Untouched) == (turns == 2)
    if turns == 30:
        found = decided(session(fmt, turns=turns), target(archive=ArchiveSettings()))
        assert STORED
        assert (found.offers, found.decision.changes.keys()) == (False, {FIELDS[fmt]})


@pytest.mark.parametrize(("fmt", "fields"), [
    ("openai-chat", {"tools": []}), ("openai-chat", {"tool_choice": "required"}),
    ("openai-chat", {"tool_choice": {"type": "function", "function": {"name": "read_file"}}}), ("openai-chat", {"n": 2}),
    ("openai-chat", {"response_format": {"type": "json_object"}}),
    ("openai-responses", {"text": {"format": {"type": "json_schema"}}}),
    ("anthropic", {"output_format": {"type": "json_schema"}}),
    ("anthropic", {"output_config": {"format": {"type": "json_schema"}}}),
    ("openai-chat", {"tools": [{"type": "function", "function": {"name": RETRIEVE}}]}),
    ("anthropic", {"tools": [{"name": RETRIEVE, "input_schema": {"type": "object"}}]}),
    ("anthropic", {"tool_choice": {"type": "any"}}), ("anthropic", {"tools": "nonsense"}),
    ("openai-responses", {"tools": [{"type": "function", "name": RETRIEVE}]}),
    ("openai-responses", {"tools": [{"type": "mcp", "server_label": "litellm"}]}),
    ("openai-responses", {"tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": []}}),
    ("openai-responses", {"previous_response_id": "resp_1"}), ("openai-responses", {"store": True}),
    ("openai-responses", {"store": None}),
])  # fmt: skip
def test_harmful_tool_is_not_offered(fmt, fields):
    found = decided(session(fmt, turns=30, **fields), target(retrieval=True))
    assert STORED
    assert not found.offers
    assert RETRIEVE not in json.dumps(found.decision.changes[FIELDS[fmt]])


@every_format
@pytest.mark.parametrize(("ending", "given"), [("?", True), (".", False)])
def test_question_behind_results_gets_earlier_text(fmt, ending, given):
    """A client's reminder, new with each request, would be given another text each time."""
    turn = spoken(fmt, "user", f"Who has tuned the piano{ending}")
    index = message_stats(MessageReader(fmt, [*session(fmt, turns=3).items[:-1], turn]), COUNTER)
    budget = Budget(LocalTokens(16_000), ProviderTokens(20_000), COUNTER)
    assert not index[-2].is_request
    assert asks(index, len(index) - 1, budget) == given
    assert asks(index[-1:], 0, budget), "elsewhere no question is needed"
