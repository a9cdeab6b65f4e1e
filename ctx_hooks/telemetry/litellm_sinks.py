"""Figures for LiteLLM's loggers, spend log and traces: decision, sent size and savings."""

from collections.abc import Mapping
from typing import Any

from ctx_hooks.compaction.cost import Prices
from ctx_hooks.telemetry.events import CHANGED, AnswerEvent, DecisionEvent, FailureEvent, OverflowEvent, RejectionEvent, flat

SOURCE = "ctx_hooks"


def figures_of(event: DecisionEvent, output_limits: Mapping[str, int]) -> Mapping[str, Any]:
    """Return the decision about an attempt: figures, scopes of its policy, and lowered output limits."""
    known = {
        "decision": event.decision,
        "attempt": event.attempt,
        "policy": ", ".join(sorted(set(event.policy.values()))),
        "window_tokens": event.window_tokens,
        "tokens_before": event.provider_tokens_before,
        "tokens_after": event.provider_tokens_after,
        **output_limits,
    }
    return {name: value for name, value in known.items() if value is not None}


def notes_of(
    event: AnswerEvent, prices: Prices | None
) -> tuple[Mapping[str, Any], Mapping[str, Any] | None, tuple[str, ...]]:
    """Return the log's figures of an answer, LiteLLM's `compression_savings` (None: nothing), and the tags."""
    figures = {
        "beyond_window": event.beyond_window,
        "tokens_saved": event.provider_tokens_saved,
        "dollars_saved": event.dollars_saved,
    }
    known = {name: value for name, value in figures.items() if value is not None}
    if event.mode == "enforce":
        tags = (f"{SOURCE}:{event.decision}",) if event.decision in CHANGED else ()  # LiteLLM sums spend by tag
        return known, _savings(event, prices), tags
    return {"mode": event.mode, "would_have": {"decision": event.decision, **known}}, None, ()


def _savings(event: AnswerEvent, prices: Prices | None) -> Mapping[str, Any] | None:
    """Return the savings that LiteLLM shows for compression, in the form of its own compressors.

    LiteLLM multiplies `tokens_saved` by the plain input price, which ignores the prompt cache. So these are the plain tokens
    that cost the saved dollars. LiteLLM accepts none below zero.
    """
    billed, saved_tokens = event.billed, event.provider_tokens_saved
    if billed is None or not saved_tokens:
        return None
    plain_tokens: float = saved_tokens
    if prices is not None:
        if event.dollars_saved is None:
            return None
        plain_tokens = event.dollars_saved / prices.plain
    return {
        "tokens_before": billed.input_tokens + saved_tokens,
        "tokens_after": billed.input_tokens,
        "tokens_saved": max(0, round(plain_tokens)),
        "source": SOURCE,
    }


def record_on(span: Any, event: DecisionEvent | OverflowEvent | RejectionEvent | FailureEvent) -> None:
    """Add a decision or a refusal to LiteLLM's span as an event; set the request's state so far as attributes."""
    if not span.is_recording():
        return
    attributes: dict[str, Any] = {f"ctx_hooks.{name}": value for name, value in flat(event).items()}
    if event.name == "overflow":
        attributes["error.type"] = "context_window_exceeded"
    if event.name == "decision":
        attributes["gen_ai.request.model"] = event.call.model
        if event.sent_output_tokens is not None:
            attributes["gen_ai.request.max_tokens"] = event.sent_output_tokens
        # A lowered output and a repair of messages are no compaction.
        is_compacted = event.decision in ("compressed", "retried") and any(step.name != "repair" for step in event.steps)
        if event.mode == "enforce" and is_compacted:
            attributes["gen_ai.conversation.compacted"] = True
    if event.name not in ("overflow", "rejection"):
        span.set_attributes(attributes)
    if event.name != "failure":
        span.add_event(f"ctx_hooks.{event.name}", attributes)
