"""Whatever number of teams asks, and whatever each of them names, what is remembered of them is bounded."""

import gc
import os
from collections import Counter, defaultdict
from functools import partial

import pytest
from litellm.proxy._types import UserAPIKeyAuth
from prometheus_client import CollectorRegistry

from ctx_hooks import litellm_compat
from ctx_hooks.learning.attempts import Attempt
from ctx_hooks.learning.learned import MOST_DEPLOYMENTS
from ctx_hooks.learning.stats import DeploymentStats
from ctx_hooks.policy.resolve import RESOLVED_AT_ONCE
from ctx_hooks.policy.settings import Policy, Settings
from ctx_hooks.request import target
from ctx_hooks.request.request import Request
from ctx_hooks.serving import running, startup
from ctx_hooks.serving.request_flow import RequestFlow
from ctx_hooks.serving.running import RequestState
from ctx_hooks.serving.startup import attach_sinks, detach_sinks
from ctx_hooks.telemetry.call import CallNames
from ctx_hooks.telemetry.event_file import MOST_AT_ONCE, EventFile
from ctx_hooks.telemetry.events import AnswerEvent, DecisionEvent
from ctx_hooks.telemetry.listeners import attach
from ctx_hooks.telemetry.prometheus import MOST_CALLERS, MOST_MODELS, Metrics

WAITING = 500
WRITABLE = WAITING + MOST_AT_ONCE
RUNNING_REQUESTS = 500
TEAMS = RUNNING_REQUESTS + WRITABLE + 500
KEPT = (Attempt, DecisionEvent, AnswerEvent, CallNames, Policy, target.Target, DeploymentStats)
WINDOW = 60
"""Holds the question, which is counted for it: only of what was counted an answer teaches anything."""
FEW = 20
"""Of each kind there are some as defaults and in modules."""


@pytest.fixture
def registry(tmp_path, monkeypatch):
    """Every sink, with an event file that stands still: nobody reads from the pipe in its place."""
    path = tmp_path / "events.1.jsonl"
    os.mkfifo(path)
    reader = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb")
    monkeypatch.setattr(startup, "EventFile", partial(EventFile, most_waiting=WAITING))
    attach_sinks(Settings(prometheus=False, events={"path": str(tmp_path)}))
    found = CollectorRegistry()
    end = attach("Prometheus", Metrics(found).listeners)
    yield found
    end()
    reader.close()  # what waits is refused now
    detach_sinks()


def asked_by(team):
    """Return the arguments of an attempt for a team with a policy, a deployment and a client of its own."""
    own_policy = {"ctx_hooks": {"error_text": f"Ask the admins of team {team}.", "reserve_tokens": 5}}
    auth = UserAPIKeyAuth(team_id=f"t{team}", team_alias=f"Team {team}", team_metadata=own_policy)
    metadata = {
        "user_api_key_auth": auth,
        "model_group": f"group-{team}",
        "model_info": {"id": f"d{team}", "max_input_tokens": WINDOW},
    }
    headers = {"user-agent": f"client-{team}/1.0", "x-session-id": f"session-{team}"}
    messages = [{"role": "user", "content": "Where does the log say why the build of last night was slower?"}]
    fields = {"model": f"openai/m{team}", "messages": messages, "proxy_server_request": {"headers": headers}}
    return litellm_compat.with_request_id({**fields, "metadata": metadata, "litellm_call_id": f"call-{team}"})


async def test_any_number_of_teams_leaves_a_bounded_number_of_objects_labels_and_bytes(registry, monkeypatch):
    monkeypatch.setattr(running, "RUNNING_REQUESTS", RUNNING_REQUESTS)
    before = counted()
    flow = RequestFlow(Settings(defaults={"warn_below_tokens": 0}))
    answers = []
    for team in range(TEAMS):
        fields = asked_by(team)
        request = Request("openai-chat", fields)
        await flow.fitted(request, target.of_attempt(request.call, flow.policies, 0))
        answers.append(litellm_compat.Call(fields).request_id)
    kept = counted() - before
    assert kept[Attempt] <= RUNNING_REQUESTS
    assert kept[DecisionEvent] <= RUNNING_REQUESTS + WRITABLE + FEW
    assert kept[CallNames] <= RUNNING_REQUESTS + WRITABLE + FEW
    assert kept[Policy] <= RESOLVED_AT_ONCE + FEW
    assert kept[target.Target] <= FEW
    assert kept[RequestState] <= RUNNING_REQUESTS
    for request_id in answers:
        answered = await flow.runner.answered(request_id, {"prompt_tokens": 20, "completion_tokens": 5})
        if answered is not None:
            flow.recorder.answered(request_id, answered, {"litellm_params": {"metadata": {}}})
            flow.running.end(request_id)
    kept = counted() - before
    assert kept[RequestState] <= FEW
    assert kept[Attempt] <= FEW
    assert kept[DecisionEvent] + kept[AnswerEvent] <= WRITABLE + FEW
    assert kept[DeploymentStats] <= MOST_DEPLOYMENTS + FEW
    named = named_in(registry)
    assert len(named["ctx_hooks_attempts_total"]) == MOST_CALLERS + 1
    assert len(named["ctx_hooks_request_sent_provider_tokens_count"]) == MOST_MODELS + 1
    assert max(map(len, named.values())) == MOST_CALLERS + 1


def named_in(registry):
    """Return the different names that each metric has values for."""
    labels = ("requested_model", "team", "team_alias", "api_key_alias", "deployment")
    named = defaultdict(set)
    for sample in (s for metric in registry.collect() for s in metric.samples):
        named[sample.name].add(tuple(map(sample.labels.get, labels)))
    return named


def counted():
    """Return how many objects of each kind there are."""
    gc.collect()
    return Counter(type(found) for found in gc.get_objects() if type(found) in KEPT)
