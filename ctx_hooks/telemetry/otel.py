"""Decisions and overflows on LiteLLM's own OpenTelemetry span of the request.

The span's attributes say what holds for the request in the end, its events what happened to each attempt. Names of the
GenAI semantic conventions are used where they mean the same; ours begin with `ctx_hooks.`. Nothing is imported: where
LiteLLM traces no request there is no span.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_hooks.telemetry.events import DecisionEvent, FailureEvent, OverflowEvent

Value: TypeAlias = str | int | float


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
    attributes = decision_attributes(event)
    span.set_attributes(attributes)
    phases = {f"ctx_hooks.milliseconds.{phase}": round(spent, 3) for phase, spent in event.milliseconds.items()}
    span.add_event("ctx_hooks.decision", {**attributes, **phases})


def record_overflow(span: Span, event: OverflowEvent) -> None:
    """Add an overflow to the span as an event `ctx_hooks.overflow`."""
    if not span.is_recording():
        return
    found = {
        "error.type": "context_window_exceeded",
        "ctx_hooks.overflow.kind": event.kind,
        "ctx_hooks.overflow.limit_tokens": event.limit_tokens,
        "ctx_hooks.overflow.refused_tokens": event.refused_tokens,
        "ctx_hooks.attempt": event.attempt,
    }
    span.add_event("ctx_hooks.overflow", _stated(found))


def record_failure(span: Span, event: FailureEvent) -> None:
    """Set on the span what the request ended in."""
    if span.is_recording():
        span.set_attributes({"ctx_hooks.decision": event.decision})


def decision_attributes(event: DecisionEvent) -> dict[str, Value]:
    """Return a decision as attributes of a span, without those that it states no value of."""
    found = {
        "gen_ai.request.model": event.call.model,
        "gen_ai.request.max_tokens": event.sent_output_tokens,
        "ctx_hooks.mode": event.mode,
        "ctx_hooks.decision": event.decision,
        "ctx_hooks.trigger": event.trigger,
        "ctx_hooks.reason": event.reason,
        "ctx_hooks.attempt": event.attempt,
        "ctx_hooks.input_tokens.before": event.provider_tokens_before,
        "ctx_hooks.input_tokens.after": event.provider_tokens_after,
        "ctx_hooks.budget_tokens": event.budget_tokens,
        "ctx_hooks.window_tokens": event.window_tokens,
        "ctx_hooks.window_source": event.window_source,
        "ctx_hooks.steps": ",".join(step.name for step in event.steps),
    }
    return _stated(found)


def _stated(found: Mapping[str, Value | None]) -> dict[str, Value]:
    return {name: value for name, value in found.items() if value is not None and value != ""}
