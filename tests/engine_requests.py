"""Requests, targets and statistics for tests of the engine, and how it decides about them."""

import json
from dataclasses import replace

from strategies import called

from ctx_hooks.attempts import updates
from ctx_hooks.attempts.attempt import Attempt, Limits, limits_of
from ctx_hooks.attempts.observations import DeploymentStats, Observation
from ctx_hooks.attempts.request import Request, counted_history
from ctx_hooks.attempts.target import Target
from ctx_hooks.compaction.cost import Prices
from ctx_hooks.flow import engine, uncounted
from ctx_hooks.overflow.recognise import Overflow
from ctx_hooks.policy.settings import Policy
from ctx_hooks.runtime.deadline import Deadline, Timings
from ctx_hooks.testing import agent_session
from ctx_hooks.tokens.budget import Window
from ctx_hooks.tokens.counter import Counter, vocabulary_of

NOW = 1_000_000_000.0
MODEL = "openai/gpt-4o"
COUNTER = Counter(vocabulary_of(MODEL))
DEAR_CACHE = Prices(plain=3.0, cache_read=0.03, cache_write=3.75)
"""Reading is so cheap that no compaction pays."""
NO_CACHE = Prices(plain=1.0, cache_read=1.0, cache_write=1.0)


def session(fmt="openai-chat", turns=20, **fields):
    return Request(fmt, {**agent_session(fmt, turns=turns), **fields})


def tokens_of(request):
    return counted_history(request, COUNTER).tokens


def sent(request, decision):
    """Return the request as the decision sends it."""
    return Request(request.format, {**request.fields, **decision.changes})


def to(window_tokens=200_000, *, model=MODEL, attempt=0, prices=None, request_id="request", **policy):
    window = Window(window_tokens, "model_info")
    return Target(model, f"deployment:{model}", window, Policy(**policy), request_id, "ann", prices, attempt)


def attempted(
    window_tokens, sent=None, *, deployment="deployment", tenant="ann", factor=1.0, number=0, deployment_id=None, **fields
):
    """Return an attempt at a deployment that has counted and sent so many tokens."""
    window = Window(window_tokens, "model_info")
    own_id = deployment_id or deployment.partition(":")[0]
    model = deployment.removeprefix(own_id).removeprefix(":") or MODEL
    where = Target(model, deployment, window, Policy(), "", tenant, attempt=number, deployment_id=own_id)
    return Attempt(where, Limits(window, factor), "openai-chat", **{"received_tokens": sent, "sent_tokens": sent, **fields})


def decided(request, target, limits=None):
    """Return the decision and the attempt."""
    return engine.decide(request, target, limits or Limits(target.window), Deadline(60), Timings())[:2]


def by_size(request, target, limits=None):
    """Return the same of what is decided by the size alone, None where that is not enough."""
    found = uncounted.decide_by_size(request, target, limits or Limits(target.window), request.bound.tokens)
    return found and found[:2]


def only_newest_loop():
    """Return a request whose one large part is the result that the model is about to read."""
    output = "\n".join(f"line {n} of the output" for n in range(3_000))
    messages = [{"role": "user", "content": "q"}, *called(output)]
    return Request("openai-chat", {"model": MODEL, "messages": messages})


class Deployment:
    """A deployment that counts in its own way, and what is learned of it."""

    def __init__(self, named, count, limit_tokens, window_tokens=200_000, **policy):
        """Let its refusals name nothing, `its limit`, or `both` that and the count."""
        self.named, self.count, self.limit_tokens = named, count, limit_tokens
        self.target = to(window_tokens, **policy)
        self.stats = DeploymentStats()
        self.now = NOW

    def answer(self, request):
        """Return the decisions about a request up to the one that was answered, and what that sends."""
        decisions, refused = [], None
        for number in range(4):
            self.now += 1
            target = replace(self.target, attempt=number)
            decision, attempt = decided(request, target, limits_of(target, self.stats, self.now, refused))
            decisions.append(decision)
            now = sent(request, decision)
            tokens = int(self.count(now))
            if tokens <= self.limit_tokens:
                self.stats = self.stats.merged(updates.of_answer(self.stats, attempt, tokens, self.now), self.now)
                return decisions, [json.dumps(m, sort_keys=True) for m in now.items]
            limit, counted = {"both": (self.limit_tokens, tokens), "its limit": (self.limit_tokens, None)}.get(
                self.named, (None, None)
            )
            refused = replace(attempt, overflow=Overflow("input", "x", limit, counted), failed=True)
            shown = updates.of_refusal(self.stats, refused, refused.overflow, self.now)
            self.stats = self.stats.merged(shown, self.now)
        raise AssertionError("refused to the end")


_LONG = agent_session("openai-responses", turns=40)
_ANSWER = {"type": "function_call_output", "call_id": "kept_there", "output": "done"}
STORED = Request("openai-responses", {**_LONG, "input": [*_LONG["input"], _ANSWER], "previous_response_id": "resp_1"})
"""A session whose last item is the result of a call in the history that the provider keeps."""


def stats_of(*shown):
    """Return statistics of (kind, tenant, values...)."""
    return DeploymentStats({(kind, tenant): Observation(tuple(values), NOW - 1) for kind, tenant, *values in shown})
