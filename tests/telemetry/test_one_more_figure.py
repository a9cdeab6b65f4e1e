"""One more figure is one field of its event's class: every sink has it, and none knows it by name."""

import logging
from dataclasses import dataclass, field, fields, replace

import pytest
from prometheus_client import CollectorRegistry
from told_events import ANSWER, CALL, DECISION, SUMMARY

from ctx_hooks.policy.settings import Settings
from ctx_hooks.serving.startup import attach_sinks, detach_sinks
from ctx_hooks.telemetry import litellm_sinks
from ctx_hooks.telemetry.event_file import to_json
from ctx_hooks.telemetry.events import AnswerEvent, DecisionEvent
from ctx_hooks.telemetry.figures import CALLER, counter, gauge, shown
from ctx_hooks.telemetry.headers import with_decision
from ctx_hooks.telemetry.listeners import EVENTS, attach, emit
from ctx_hooks.telemetry.litellm_sinks import figures_of, notes_of
from ctx_hooks.telemetry.prometheus import Metrics

TOYS = counter("toys", "Toys", ("mode", CALLER))
LAST = gauge("last_toy", "The newest toy", ("mode",), needs="toys")


@dataclass(frozen=True, slots=True)
class ToyDecision(DecisionEvent):
    toys: int | None = field(default=None, metadata=shown("log", "span", "spend", "header", TOYS, LAST, span="toys.all"))


@dataclass(frozen=True, slots=True)
class ToyAnswer(AnswerEvent):
    toys: int | None = field(default=None, metadata=shown("log", "spend", TOYS))


def toy(event, kind, toys):
    return kind(**{each.name: getattr(event, each.name) for each in fields(event)}, toys=toys)


DECIDED, ANSWERED = toy(DECISION, ToyDecision, 7), toy(ANSWER, ToyAnswer, 5)
WITHOUT = replace(DECIDED, toys=None)
KINDS = {**EVENTS, "decision": ToyDecision, "answer": ToyAnswer}


@pytest.mark.parametrize(("event", "word"), [(DECIDED, "toys=7"), (ANSWERED, "toys=5")], ids=["decision", "answer"])
def test_a_log_line_has_it(caplog, event, word):
    attach_sinks(Settings())
    caplog.set_level(logging.INFO, "ctx_hooks")
    emit(event)
    detach_sinks()
    assert word in caplog.records[0].getMessage().split()


def test_the_spend_log_has_it_of_the_attempt_and_of_its_answer():
    assert figures_of(DECIDED, {})["toys"] == 7
    assert notes_of(ANSWERED, None)[0]["toys"] == 5
    assert "toys" not in figures_of(WITHOUT, {})


def test_a_response_header_has_it_where_it_has_a_value():
    assert with_decision({}, DECIDED, {}, is_changed=True)["x-ctx-hooks-toys"] == "7"
    assert "x-ctx-hooks-toys" not in with_decision({}, WITHOUT, {}, is_changed=True)


def test_a_span_has_it_under_its_own_name():
    noted = {}

    class Span:
        def is_recording(self):
            return True

        def set_attributes(self, attributes):
            noted.update(attributes)

        def add_event(self, name, attributes=None):
            noted[name] = attributes

    litellm_sinks.record_on(Span(), DECIDED)
    assert noted["ctx_hooks.toys.all"] == noted["ctx_hooks.decision"]["ctx_hooks.toys.all"] == 7


def test_the_metrics_add_it_up_under_the_callers_labels():
    registry = CollectorRegistry()
    end = attach("Prometheus", Metrics(registry, KINDS).listeners)
    for event in (DECIDED, DECIDED, ANSWERED, WITHOUT):
        emit(event)
    end()
    caller = {
        "requested_model": CALL.model_group,
        "team": CALL.team_id,
        "team_alias": CALL.team_alias,
        "api_key_alias": CALL.key_alias,
    }
    assert registry.get_sample_value("ctx_hooks_toys_total", {"mode": "enforce", **caller}) == 19
    assert registry.get_sample_value("ctx_hooks_last_toy", {"mode": "enforce"}) == 7


def test_the_event_file_has_it():
    assert '"toys":7' in to_json(DECIDED)


def test_a_summary_that_is_only_about_to_be_written_is_neither_logged_nor_counted(caplog):
    attach_sinks(Settings())
    registry = CollectorRegistry()
    end = attach("Prometheus", Metrics(registry).listeners)
    caplog.set_level(logging.INFO, "ctx_hooks")
    emit(replace(SUMMARY, name="before_summary", calls=0, outcome="", dollars=None, milliseconds=None))
    end()
    detach_sinks()
    assert not caplog.records
    assert not [s for metric in registry.collect() for s in metric.samples]
