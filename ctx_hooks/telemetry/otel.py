"""Decisions and overflows on LiteLLM's own OpenTelemetry span of the request.

The span's attributes say what holds for the request in the end, its events what happened to each attempt. Names of the
GenAI semantic conventions are used where they mean the same; ours begin with `ctx_hooks.`. Nothing is imported: where
LiteLLM traces no request there is no span.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from ctx_hooks.telemetry.call import figures_for

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_hooks.telemetry.events import DecisionEvent, FailureEvent, OverflowEvent


class Span(Protocol):
    """What is needed of an OpenTelemetry span."""

    def is_recording(self) -> bool:
        """Whether the span has not ended and is sampled."""

    def set_attributes(self, attributes: Mapping[str, Any]) -> None:
        """Set attributes."""

    def add_event(self, name: str, attributes: Mapping[str, Any] | None = None) -> None:
        """Add an event."""


def record_decision(span: Span, event: DecisionEvent) -> None:
    """Set a decision's attributes on the span and add it as an event `ctx_hooks.decision`."""
    if not span.is_recording():
        return
    others = {"gen_ai.request.model": event.call.model, "gen_ai.request.max_tokens": event.sent_output_tokens}
    attributes = _attributes(event, others)
    span.set_attributes(attributes)
    phases = {f"ctx_hooks.milliseconds.{phase}": round(spent, 3) for phase, spent in event.milliseconds.items()}
    span.add_event("ctx_hooks.decision", {**attributes, **phases})


def record_overflow(span: Span, event: OverflowEvent) -> None:
    """Add an overflow to the span as an event `ctx_hooks.overflow`."""
    if span.is_recording():
        span.add_event("ctx_hooks.overflow", _attributes(event, {"error.type": "context_window_exceeded"}))


def record_failure(span: Span, event: FailureEvent) -> None:
    """Set on the span what the request ended in."""
    if span.is_recording():
        span.set_attributes(_attributes(event, {}))


def _attributes(event: DecisionEvent | OverflowEvent | FailureEvent, others: Mapping[str, Any]) -> dict[str, Any]:
    """Return attributes and the fields that the event's class declares for spans, without those that have no value."""
    found = dict(others)
    for name, value in figures_for("span", event).items():
        found[f"ctx_hooks.{name}"] = ",".join(step.name for step in value) if isinstance(value, tuple) else value
    return {name: value for name, value in found.items() if value is not None and value != ""}
