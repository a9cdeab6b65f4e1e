"""Events become metrics: every figure once, under labels that whatever callers send cannot multiply."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
import told_events
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.multiprocess import MultiProcessCollector
from proxies import printed_by
from told_events import ARCHIVE, FAULT, IGNORED, RETRIEVAL, START, SUMMARY

from ctx_hooks.telemetry.events import CallNames, FailureEvent, LimitEvent
from ctx_hooks.telemetry.listeners import attach, emit
from ctx_hooks.telemetry.prometheus import MOST_NAMED, Metrics
from ctx_hooks.tokens.usage import Billed

ROOT = Path(__file__).resolve().parents[2]
TEAMS = 3 * MOST_NAMED
CALL = CallNames("r", "c", "gpt", "id:openai/gpt", "openai/gpt", "t1", "Team", "key", "org", "acompletion", "cli/1")
CALLER = {"requested_model": "gpt", "team": "t1", "team_alias": "Team", "api_key_alias": "key"}
DECISION = replace(
    told_events.DECISION, call=CALL, window_tokens=128_000, steps=(), milliseconds={"total": 40.0, "counting": 30.0}
)
ANSWER = replace(told_events.ANSWER, call=CALL, dollars_saved=0.25)
OVERFLOW = replace(told_events.OVERFLOW, call=CALL, mode="enforce")


@pytest.fixture
def registry():
    found = CollectorRegistry()
    end = attach("Prometheus", Metrics(found).listeners)
    yield found
    end()


@pytest.fixture
def value(registry):
    return lambda name, **labels: registry.get_sample_value(f"ctx_hooks_{name}", labels)


def label_sets(registry, name):
    (metric,) = (m for m in registry.collect() if m.name == f"ctx_hooks_{name}")
    return [s for s in metric.samples if s.name.endswith(("_total", "_count"))]


ENFORCED = {"mode": "enforce", **CALLER}
BY_DEPLOYMENT = {"deployment": CALL.deployment}
DONE = {"decision": "compressed", "trigger": "budget"}
LOSS = replace(ANSWER, provider_tokens_saved=-70, dollars_saved=-0.5)
NEWER = [DECISION, replace(DECISION, window_tokens=7_000)]
LIMITS = [LimitEvent("limit_learned", CALL.deployment, "limit", tokens, 128_000) for tokens in (9_000, 8_000)]
LOST = [replace(SUMMARY, call=CALL, outcome=o, dollars=d) for o, d in (("failed", None), ("rejected", 0.5))]
UNSTORED = [replace(ARCHIVE, outcome="failed", texts=3), replace(ARCHIVE, backend="redis", outcome="dropped", texts=2)]
COUNTED = [
    ([DECISION, DECISION], "attempts_total", {**DONE, **ENFORCED}, 2),
    ([OVERFLOW], "overflows_total", {"kind": "input", **ENFORCED}, 1),
    ([ANSWER], "saved_provider_tokens_total", ENFORCED, 5_500), ([ANSWER], "saved_dollars_total", ENFORCED, 0.25),
    ([ANSWER], "spent_dollars_total", ENFORCED, None),
    ([ANSWER], "spent_provider_tokens_total", ENFORCED, None),
    ([LOSS], "spent_provider_tokens_total", ENFORCED, 70), ([LOSS], "spent_dollars_total", ENFORCED, 0.5),
    ([LOSS], "saved_provider_tokens_total", ENFORCED, None), ([LOSS], "saved_dollars_total", ENFORCED, None),
    (LOST, "summaries_total", {"outcome": "failed", **CALLER}, 1), (LOST, "summary_dollars_total", CALLER, 0.5),
    ([replace(RETRIEVAL, call=CALL, source="none")] * 2, "retrievals_total", {"source": "none", **CALLER}, 2),
    ([ARCHIVE, *UNSTORED], "archive_texts_total", {"outcome": "stored", "backend": "disk"}, 50),
    (UNSTORED, "archive_texts_total", {"outcome": "failed", "backend": "disk"}, 3),
    ([ANSWER], "cached_prompt_tokens_total", ENFORCED, 1_000), ([ANSWER], "uncached_prompt_tokens_total", ENFORCED, 3_400),
    ([replace(ANSWER, billed=Billed(70))], "cached_prompt_tokens_total", ENFORCED, 0),
    ([replace(DECISION, timed_out=True), DECISION], "compression_timeouts_total", ENFORCED, 1),
    ([replace(ANSWER, rereads={"read": 2, "grep": 1})], "rereads_total", ENFORCED, 3),
    ([FAULT, FAULT], "fail_open_total", {"consequence": "forwards the request unchanged"}, 2),
    ([replace(FAULT, consequence="", sink="log")], "sinks_disabled_total", {"sink": "log"}, 1),
    ([replace(IGNORED, call=CALL)], "ignored_settings_total", {"scope": "team", **CALLER}, 1),
    ([START], "build_info", {"version": "1.2", "litellm_version": "1.106.2"}, 1),
    ([START], "policy_info", {"digest": "0a1b2c", "mode": "observe"}, 1),
    ([replace(START, mistakes=2)], "settings_mistakes", {"digest": "0a1b2c"}, 2),
    ([DECISION], "phase_seconds_sum", {"phase": "total"}, 0.04),
    (NEWER, "window_tokens", BY_DEPLOYMENT, 7_000),
    ([replace(DECISION, local_tokens_before=None)], "window_tokens", BY_DEPLOYMENT, None),
    (LIMITS, "learned_limit_tokens", {"kind": "limit", **BY_DEPLOYMENT}, 8_000),
]  # fmt: skip


@pytest.mark.parametrize(("events", "name", "labels", "figure"), COUNTED, ids=[name for _, name, _, _ in COUNTED])
def test_each_event_is_counted_once_under_its_words_and_its_caller(events, name, labels, figure, value):
    for event in events:
        emit(event)
    assert value(name, **labels) == figure


def test_a_request_is_counted_once_by_what_it_ended_in_however_many_attempts_it_took(value):
    for attempt, decision in enumerate(("fits", "retried", "retried", "failed")):
        emit(replace(DECISION, decision=decision, trigger="overflow", attempt=attempt))
    emit(FailureEvent("failure", 0.0, DECISION.call, "enforce", 3, "retried"))
    emit(replace(ANSWER, decision="retried"))
    assert value("requests_total", decision="failed", mode="enforce", **CALLER) == 1
    assert value("requests_total", decision="retried", mode="enforce", **CALLER) == 1
    assert value("requests_total", decision="fits", mode="enforce", **CALLER) is None
    assert value("attempts_total", decision="retried", trigger="overflow", mode="enforce", **CALLER) == 2


def test_any_number_of_teams_is_a_bounded_number_of_label_sets_and_lose_no_figure(registry):
    for n in range(TEAMS):
        call = replace(CALL, team_id=f"team-{n}", team_alias=f"Team {n}", model_group=f"model-{n}", deployment=f"d-{n}")
        emit(replace(DECISION, call=call))
        emit(replace(ANSWER, call=call))
        emit(LimitEvent("limit_learned", call.deployment, "limit", 9_000, 128_000))
        emit(replace(OVERFLOW, call=call))
    for name in ("attempts", "overflows", "saved_provider_tokens", "saved_dollars"):
        assert len(label_sets(registry, name)) == MOST_NAMED + 1, name
    assert sum(s.value for s in label_sets(registry, "attempts")) == TEAMS
    assert sum(s.value for s in label_sets(registry, "saved_provider_tokens")) == 5_500 * TEAMS
    (others,) = (s for s in label_sets(registry, "attempts") if s.labels["team"] == "other")
    assert others.value == TEAMS - MOST_NAMED
    (windows,) = (m for m in registry.collect() if m.name == "ctx_hooks_window_tokens")
    assert len(windows.samples) == MOST_NAMED + 1


@pytest.mark.parametrize(
    "name",
    ["\ud800", 'line\nbreak "quoted"\\', "\u2028\x00", "x" * 1_000_000],
    ids=["half a surrogate", "line break", "control characters", "a megabyte"],
)
def test_whatever_a_caller_calls_a_model_the_metrics_can_be_read(registry, name):
    emit(replace(DECISION, call=replace(CALL, model_group=name)))
    text = generate_latest(registry).decode()
    (line,) = (line for line in text.split("\n") if line.startswith("ctx_hooks_attempts_total{"))
    assert line.endswith(" 1.0")
    assert len(line) < 400


HANDLERS = """
import sys
BEFORE
import litellm
from ctx_hooks.hook import CtxHooks
from ctx_hooks.telemetry.events import FaultEvent
from ctx_hooks.telemetry.listeners import emit

litellm.callback_settings = {"ctx_hooks": {}}
CtxHooks()
CtxHooks()
emit(FaultEvent("fault", 0.0, "does nothing"))
figure = None
if sys.modules.get("prometheus_client"):
    labels = {"consequence": "does nothing"}
    figure = sys.modules["prometheus_client"].REGISTRY.get_sample_value("ctx_hooks_fail_open_total", labels)
print("figure", figure)
"""
HIDDEN = 'sys.modules["prometheus_client"] = None'
TAKEN = 'import prometheus_client; prometheus_client.Counter("ctx_hooks_requests", "of somebody else")'


@pytest.mark.parametrize(
    ("before", "expected"),
    [("", "1.0"), (HIDDEN, "None"), (TAKEN, "None")],
    ids=["as it comes", "not installed", "its names are taken"],
)
def test_a_process_counts_once_in_litellms_registry_unless_it_cannot(before, expected):
    """However many handlers it makes; without prometheus_client it starts all the same, and says nothing of it."""
    code = HANDLERS.replace("BEFORE", before)
    printed = printed_by(code)
    assert printed.split()[-2:] == ["figure", expected]
    assert ("ctx_hooks failed and records nothing for Prometheus" in printed) == (before == TAKEN)
    assert ("Prometheus" in printed) == (before == TAKEN)


WORKER = """
import sys
from dataclasses import replace

import prometheus_client
import told_events

from ctx_hooks.telemetry.listeners import attach, emit
from ctx_hooks.telemetry.prometheus import Metrics

attach("Prometheus", Metrics(prometheus_client.REGISTRY).listeners)
emit(replace(told_events.DECISION, window_tokens=int(sys.argv[1])))
"""


def test_several_workers_are_counted_together_and_a_gauge_is_the_newest(tmp_path):
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tests")])
    environment = {**os.environ, "PYTHONPATH": paths, "PROMETHEUS_MULTIPROC_DIR": str(tmp_path)}
    for window_tokens in ("100", "200"):
        subprocess.run([sys.executable, "-c", WORKER, window_tokens], env=environment, check=True)
    registry = CollectorRegistry()
    MultiProcessCollector(registry, str(tmp_path))
    figures = {s.name: s.value for metric in registry.collect() for s in metric.samples if not s.name.endswith("_bucket")}
    assert figures["ctx_hooks_attempts_total"] == 2
    assert figures["ctx_hooks_phase_seconds_count"] == 2
    assert figures["ctx_hooks_window_tokens"] == 200


def test_label_has_a_short_id_of_a_deployment(registry):
    emit(replace(DECISION, call=replace(CALL, deployment=f"{'0a1b2c3d' * 8}:openai/local")))
    (windows,) = (m for m in registry.collect() if m.name == "ctx_hooks_window_tokens")
    assert windows.samples[0].labels["deployment"] == "0a1b2c3d:openai/local"
