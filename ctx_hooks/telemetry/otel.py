"""Decisions and overflows on LiteLLM's own OpenTelemetry span of the request.

The span's attributes say what holds for the request in the end, its events what happened to each attempt. Names of the
GenAI semantic conventions are used where they mean the same; ours begin with `ctx_hooks.`. Nothing is imported: where
LiteLLM traces no request there is no span.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ctx_hooks.telemetry.figures import figures_for

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_hooks.telemetry.events import DecisionEvent, FailureEvent, OverflowEvent


def record(span: Any, event: DecisionEvent | OverflowEvent | FailureEvent) -> None:
    """Add a decision or an overflow to an OpenTelemetry span as an event; set on it what holds for the request so far."""
    if not span.is_recording():
        return
    found = {f"ctx_hooks.{name}": value for name, value in figures_for("span", event).items()}
    phases: Mapping[str, float] = {}
    if event.name == "decision":
        model, output_tokens, phases = event.call.model, event.sent_output_tokens, event.milliseconds
        found |= {"gen_ai.request.model": model, "gen_ai.request.max_tokens": output_tokens}
        found["ctx_hooks.steps"] = ",".join(step.name for step in event.steps)
    elif event.name == "overflow":
        found["error.type"] = "context_window_exceeded"
    attributes = {name: value for name, value in found.items() if value not in (None, "")}
    if event.name != "overflow":
        span.set_attributes(attributes)
    if event.name != "failure":
        spent = {f"ctx_hooks.milliseconds.{phase}": round(each, 3) for phase, each in phases.items()}
        span.add_event(f"ctx_hooks.{event.name}", attributes | spent)
