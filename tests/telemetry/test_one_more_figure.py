"""One more figure is one field of its event's class: every sink has it, and none knows it by name."""

import logging
from dataclasses import dataclass, field, fields, replace

from prometheus_client import CollectorRegistry
from told_events import ANSWER, CALL, DECISION

from ctx_hooks.flow.startup import attach_sinks, detach_sinks
from ctx_hooks.policy.settings import Settings
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


class Span:
    """Keeps what LiteLLM's span would show."""

    def __init__(self):
        self.noted = {}

    def is_recording(self):
        return True

    def set_attributes(self, attributes):
        self.noted |= attributes

    def add_event(self, name, attributes=None):
        self.noted[name] = attributes


def test_every_sink_shows_one_more_field(caplog):
    attach_sinks(Settings())
    caplog.set_level(logging.INFO, "ctx_hooks")
    emit(DECIDED)
    emit(ANSWERED)
    detach_sinks()
    assert [word for record in caplog.records for word in record.getMessage().split() if "toys" in word] == [
        "toys=7",
        "toys=5",
    ]
    assert (figures_of(DECIDED, {})["toys"], notes_of(ANSWERED, None)[0]["toys"]) == (7, 5)
    assert with_decision({}, DECIDED, {}, is_changed=True)["x-ctx-hooks-toys"] == "7"
    assert "toys" not in figures_of(WITHOUT, {})
    assert "x-ctx-hooks-toys" not in with_decision({}, WITHOUT, {}, is_changed=True)
    assert '"toys":7' in to_json(DECIDED)
    span = Span()
    litellm_sinks.record_on(span, DECIDED)
    assert span.noted["ctx_hooks.toys.all"] == span.noted["ctx_hooks.decision"]["ctx_hooks.toys.all"] == 7


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
