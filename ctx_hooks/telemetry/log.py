"""The sink that logs one line for each decision that changed a request, or would have, for its answer, and for a summary.

The line goes to the `ctx_hooks` logger at INFO: names and figures, no text of a message. The record's attribute
`ctx_hooks` has the same as a mapping, which formatters that write JSON, LiteLLM's among them, give as a field of their own.
"""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_hooks.telemetry.call import Call
    from ctx_hooks.telemetry.events import AnswerEvent, DecisionEvent, FailureEvent, SummaryEvent

logger = logging.getLogger("ctx_hooks")

AMBIGUOUS = frozenset(' "=\\{')
"""In a line of `name=value`, or to LiteLLM's JSON formatter."""


def log_decision(event: DecisionEvent) -> None:
    """Log a decision, unless the request fits."""
    if event.decision != "fits" and logger.isEnabledFor(logging.INFO):
        _log(
            {
                "event": "decision",
                "decision": event.decision,
                "mode": event.mode,
                "trigger": event.trigger,
                "attempt": event.attempt,
                "tokens_before": event.provider_tokens_before,
                "tokens_after": event.provider_tokens_after,
                "budget_tokens": event.budget_tokens,
                "window_tokens": event.window_tokens,
                "output_tokens": event.sent_output_tokens,
                "milliseconds": round(event.milliseconds.get("total", 0.0), 1),
                "reason": event.reason,
                **_named(event.call),
            }
        )


def log_answer(event: AnswerEvent) -> None:
    """Log an answer to a request that was changed, or would have been."""
    if event.decision != "fits" and logger.isEnabledFor(logging.INFO):
        billed = event.billed
        _log(
            {
                "event": "answer",
                "decision": event.decision,
                "mode": event.mode,
                "attempts": event.attempts,
                "beyond_window": event.beyond_window,
                "input_tokens": None if billed is None else billed.input_tokens,
                "cached_tokens": None if billed is None else billed.cached_tokens,
                "tokens_saved": event.provider_tokens_saved,
                "dollars_saved": event.dollars_saved,
                **_named(event.call),
            }
        )


def log_failure(event: FailureEvent) -> None:
    """Log a request that was refused in the end."""
    if logger.isEnabledFor(logging.INFO):
        figures = {"event": "failure", "decision": event.decision, "mode": event.mode, "attempts": event.attempts}
        _log({**figures, **_named(event.call)})


def log_summary(event: SummaryEvent) -> None:
    """Log what has come of a summary."""
    if logger.isEnabledFor(logging.INFO):
        _log(
            {
                "event": "summary",
                "outcome": event.outcome,
                "reason": event.reason,
                "summary_model": event.summary_model,
                "summary_mode": event.summary_mode,
                "messages": event.messages,
                "calls": event.calls,
                "input_tokens": event.input_tokens,
                "output_tokens": event.output_tokens,
                "dollars": event.dollars,
                "milliseconds": round(event.milliseconds or 0.0, 1),
                **_named(event.call),
            }
        )


def _named(call: Call) -> dict[str, str]:
    """Return whose request it is; the ids by which it is found elsewhere come first."""
    return {
        "call_id": call.call_id or call.request_id,
        "model_group": call.model_group,
        "team": call.team_alias or call.team_id,
        "key": call.key_alias,
        "client": call.client,
        "deployment": call.deployment,
    }


def _log(figures: Mapping[str, Any]) -> None:
    told = {name: value for name, value in figures.items() if value not in (None, "")}
    logger.info("%s", " ".join(f"{name}={_word(value)}" for name, value in told.items()), extra={"ctx_hooks": told})


def _word(value: object) -> str:
    """Return a value as one word: what is ambiguous is quoted, and a brace escaped.

    LiteLLM's JSON formatter takes a mapping that it finds in a line for fields of the line, and a caller chooses names.
    """
    text = str(value)
    return json.dumps(text, ensure_ascii=False).replace("{", "\\u007b") if AMBIGUOUS.intersection(text) else text
