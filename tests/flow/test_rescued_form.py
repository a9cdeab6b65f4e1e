"""What a rescue has sent, and was answered, is what the conversation's next request begins with."""

import pytest
from engine_requests import COUNTER, Deployment, tokens_of
from strategies import FIELDS

from ctx_hooks.attempts.request import Request
from ctx_hooks.compaction.history import message_stats, request_points
from ctx_hooks.flow.decision import Compressed
from ctx_hooks.formats import MessageReader
from ctx_hooks.testing import agent_session

LIMIT_TOKENS = 12_000


def requests_of(fmt, turns):
    """Return the requests that the client of a session sends."""
    whole = agent_session(fmt, turns=turns)
    messages = whole[FIELDS[fmt]]
    points = request_points(message_stats(MessageReader(fmt, messages), COUNTER))
    return [Request(fmt, {**whole, FIELDS[fmt]: messages[:n]}) for n in points]


@pytest.mark.parametrize(("fmt", "named", "first", "ratio"), [
    ("openai-chat", "nothing", 0, 1.0), ("openai-chat", "its limit", 0, 1.3), ("openai-chat", "both", 14, 1.0),
    ("anthropic", "its limit", 0, 1.0), ("anthropic", "both", 0, 1.3), ("openai-responses", "nothing", 0, 1.0),
    ("gemini", "both", 0, 1.3), ("gemini", "its limit", 0, 1.0),
])  # fmt: skip
def test_next_request_begins_with_rescued_form(fmt, named, first, ratio):
    """A session that grows until it is refused, and one whose first request here is too long; no compaction is due again."""
    deployment = Deployment(named, lambda request: tokens_of(request) * ratio, LIMIT_TOKENS)
    rescued, before = 0, None
    for request in requests_of(fmt, turns=30)[first:]:
        decisions, now = deployment.answer(request)
        if before is not None:
            assert now[: len(before)] == before
            rescued += 1
        before = now if len(decisions) > 1 else None
    assert 1 <= rescued <= 1 + (named == "nothing"), "without a figure one more refusal shows how much the window holds"


@pytest.mark.parametrize("fmt", ["openai-chat", "gemini"])
def test_refusal_just_above_limit_is_compacted_for_it(fmt):
    """Not for what is smaller by a margin than what was refused: the next request has nothing but the limit to go by."""
    requests = requests_of(fmt, turns=30)
    refused = requests[14]
    deployment = Deployment("both", tokens_of, int(tokens_of(refused) * 0.99), reserve=0)
    (_, rescued), before = deployment.answer(refused)
    assert isinstance(rescued, Compressed)
    _, now = deployment.answer(requests[15])
    assert now[: len(before)] == before
