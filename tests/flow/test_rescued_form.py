"""What a rescue has sent, and was answered, is what the conversation's next request begins with."""

import json
from dataclasses import replace

import pytest
from engine_requests import COUNTER, NOW, decided, sent, to, tokens_of
from strategies import FIELDS

from ctx_hooks.attempts import updates
from ctx_hooks.attempts.attempt import limits_of
from ctx_hooks.attempts.observations import DeploymentStats
from ctx_hooks.attempts.request import Request
from ctx_hooks.compaction.history import message_stats, request_points
from ctx_hooks.flow.decision import Compressed
from ctx_hooks.formats import MessageReader
from ctx_hooks.overflow.recognise import Overflow
from ctx_hooks.testing import agent_session

LIMIT_TOKENS = 12_000


def overflow_of(named, tokens, limit_tokens):
    """Return what a refusal of so many tokens says: nothing, its limit, or also the count."""
    limit = limit_tokens if named != "nothing" else None
    return Overflow("input", "x", limit, tokens if named == "both" else None)


class Deployment:
    """A deployment of a limit that nobody has stated, and what is learned of it."""

    def __init__(self, named, ratio, limit_tokens=LIMIT_TOKENS, **policy):
        self.named = named
        self.limit_tokens = limit_tokens
        self.policy = policy
        self.ratio = ratio
        self.stats = DeploymentStats()
        self.now = NOW

    def answer(self, request):
        """Return the decisions about a request up to the one that was answered, and what that sends."""
        decisions, refused = [], None
        for number in range(4):
            self.now += 1
            target = to(attempt=number, **self.policy)
            decision, attempt = decided(request, target, limits_of(target, self.stats, self.now, refused))
            decisions.append(decision)
            now = sent(request, decision)
            tokens = int(tokens_of(now) * self.ratio)
            if tokens <= self.limit_tokens:
                self.stats = self.stats.merged(updates.of_answer(self.stats, attempt, tokens, self.now), self.now)
                return decisions, [json.dumps(m, sort_keys=True) for m in now.fields[FIELDS[request.format]]]
            refused = replace(attempt, overflow=overflow_of(self.named, tokens, self.limit_tokens), failed=True)
            shown = updates.of_refusal(self.stats, refused, refused.overflow, self.now)
            self.stats = self.stats.merged(shown, self.now)
        raise AssertionError("refused to the end")


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
    deployment = Deployment(named, ratio)
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
    deployment = Deployment("both", 1.0, limit_tokens=int(tokens_of(refused) * 0.99), reserve=0)
    (_, rescued), before = deployment.answer(refused)
    assert isinstance(rescued, Compressed)
    _, now = deployment.answer(requests[15])
    assert now[: len(before)] == before
