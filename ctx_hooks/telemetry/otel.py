"""Decisions and overflows on LiteLLM's own OpenTelemetry span of the request.

The span's attributes say what holds for the request in the end, its events what happened to each attempt. Names of the
GenAI semantic conventions are used where they mean the same; ours begin with `ctx_hooks.`. Nothing is imported: where
LiteLLM traces no request there is no span.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

from ctx_hooks.telemetry.figures import figures_for

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ctx_hooks.telemetry.events import DecisionEvent, FailureEvent, OverflowEvent


CONVENTIONS: Mapping[str, Mapping[str, Callable[[Any], Any]]] = {
    "decision": {
        "gen_ai.request.model": lambda event: event.call.model,
        "gen_ai.request.max_tokens": lambda event: event.sent_output_tokens,
    },
    "overflow": {"error.type": lambda _: "context_window_exceeded"},
}
"""The names of the conventions, by event."""


class Span(Protocol):
    """What is needed of an OpenTelemetry span."""

    def is_recording(self) -> bool:
        """Whether the span has not ended and is sampled."""

    def set_attributes(self, attributes: Mapping[str, Any]) -> None:
        """Set attributes."""

    def add_event(self, name: str, attributes: Mapping[str, Any] | None = None) -> None:
        """Add an event."""


def record(span: Span, event: DecisionEvent | OverflowEvent | FailureEvent) -> None:
    """Add a decision or an overflow to the span as an event; set on it what a decision or a failure says of the request."""
    if not span.is_recording():
        return
    figures = figures_for("span", event)
    if event.name == "decision":
        figures["steps"] = ",".join(step.name for step in event.steps)
    attributes = {
        **{name: value(event) for name, value in CONVENTIONS.get(event.name, {}).items()},
        **{f"ctx_hooks.{name}": value for name, value in figures.items()},
    }
    attributes = {name: value for name, value in attributes.items() if value not in (None, "")}
    if event.name != "overflow":
        span.set_attributes(attributes)
    if event.name != "failure":
        phases = event.milliseconds if event.name == "decision" else {}
        spent = {f"ctx_hooks.milliseconds.{phase}": round(each, 3) for phase, each in phases.items()}
        span.add_event(f"ctx_hooks.{event.name}", attributes | spent)
