"""The sink that logs one line for each decision that changed a request, or would have, for its answer, and for a summary.

The line goes to the `ctx_hooks` logger at INFO: names and figures, no text of a message. The record's attribute
`ctx_hooks` has the same as a mapping, which formatters that write JSON, LiteLLM's among them, give as a field of their own.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Mapping
from typing import Any

from ctx_hooks.telemetry.call import figures_for
from ctx_hooks.telemetry.events import AnswerEvent, DecisionEvent, FailureEvent, SummaryEvent
from ctx_hooks.tokens.usage import Billed

logger = logging.getLogger("ctx_hooks")

AMBIGUOUS = frozenset(' "=\\{')
"""In a line of `name=value`, or to LiteLLM's JSON formatter."""


def log_event(event: DecisionEvent | AnswerEvent | FailureEvent | SummaryEvent) -> None:
    """Log an event, unless its request fits: the fields that its class declares for log lines, and whose request it is."""
    end = {"outcome": event.outcome} if isinstance(event, SummaryEvent) else {"decision": event.decision}
    if end.get("decision") == "fits" or not logger.isEnabledFor(logging.INFO):
        return
    call = event.call
    figures: dict[str, Any] = {"event": event.name.removeprefix("after_"), **end}
    for name, value in figures_for("log", event).items():
        if isinstance(value, Billed):
            figures |= {"input_tokens": value.input_tokens, "cached_tokens": value.cached_tokens}
        elif name == "milliseconds":
            figures[name] = round((value.get("total") if isinstance(value, Mapping) else value) or 0.0, 1)
        else:
            figures[name] = value
    _log(
        {
            **figures,
            "call_id": call.call_id or call.request_id,
            "model_group": call.model_group,
            "team": call.team_alias or call.team_id,
            "key": call.key_alias,
            "client": call.client,
            "deployment": call.deployment,
        }
    )


def _log(figures: Mapping[str, Any]) -> None:
    told = {name: value for name, value in figures.items() if value not in (None, "")}
    logger.info("%s", " ".join(f"{name}={_word(value)}" for name, value in told.items()), extra={"ctx_hooks": told})


def _word(value: object) -> str:
    """Return a value as one word: what is ambiguous is quoted, and a brace escaped.

    LiteLLM's JSON formatter takes a mapping that it finds in a line for fields of the line, and a caller chooses names.
    """
    text = str(value)
    return json.dumps(text, ensure_ascii=False).replace("{", "\\u007b") if AMBIGUOUS.intersection(text) else text
