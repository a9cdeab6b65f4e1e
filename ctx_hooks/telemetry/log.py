"""The sink that logs one line at the start and for each decision with a change, real or observed, its answer and summary.

A line goes to the `ctx_hooks` logger: names and figures, no text of a message. The record's attribute `ctx_hooks` has the
same as a mapping, which JSON formatters, including LiteLLM's, write as a separate field.
"""

import json
import logging
from collections.abc import Mapping
from typing import Any

from ctx_hooks.telemetry.events import CallNames
from ctx_hooks.telemetry.figures import figures_for, names_for
from ctx_hooks.telemetry.listeners import EVENTS
from ctx_hooks.tokens.usage import Billed

logger = logging.getLogger("ctx_hooks")
LITELLM = logging.getLogger("LiteLLM Proxy")
"""As `litellm/_logging.py` names it, whose import takes a second. `LITELLM_LOG=INFO` shows its lines, as JSON where LiteLLM
logs JSON."""
AMBIGUOUS = frozenset(' "=\\{')
"""In a line of `name=value`, or to LiteLLM's JSON formatter."""
LOGGED = tuple(name for name, kind in EVENTS.items() if names_for("log", kind))
NO_END = frozenset({"fits", "opened"})
"""Outcomes of a request that was sent unchanged, or with an opened compaction item."""


def log_event(event: Any) -> None:
    """Log an event, unless its request fits: the fields that its class declares for log lines, and the request's owner."""
    figures = figures_for("log", event)
    end = "outcome" if "outcome" in figures else "decision"
    if not logger.isEnabledFor(logging.INFO) or figures.get(end) in NO_END:
        return
    shown: dict[str, Any] = {"event": event.name.removeprefix("after_"), end: figures.get(end)}
    for name, value in figures.items():
        if isinstance(value, Billed):
            shown |= {"input_tokens": value.input_tokens, "cached_tokens": value.cached_tokens}
        elif name == "milliseconds":
            shown[name] = round((value.get("total") if isinstance(value, Mapping) else value) or 0.0, 1)
        elif isinstance(value, tuple):
            shown[name] = f"{len(value)} ({', '.join(value)})" if value else ""
        else:
            shown[name] = value
    call = getattr(event, "call", CallNames())
    shown |= {
        "call_id": call.call_id or call.request_id,
        "model_group": call.model_group,
        "team": call.team_alias or call.team_id,
        "key": call.key_alias,
        "client": call.client,
        "deployment": call.deployment or shown.get("deployment"),
    }
    shown = {name: value for name, value in shown.items() if value not in (None, "")}
    logger.info("%s", " ".join(f"{name}={_word(value)}" for name, value in shown.items()), extra={"ctx_hooks": shown})


def _word(value: object) -> str:
    """Return a value as one word: quoted if ambiguous, with braces escaped.

    LiteLLM's JSON formatter treats a mapping inside a line as fields of the line, and callers choose names.
    """
    text = str(value)
    return json.dumps(text, ensure_ascii=False).replace("{", "\\u007b") if AMBIGUOUS.intersection(text) else text


def share_log_output() -> None:
    """Show the lines in LiteLLM's own log output, from its level on, at least warnings.

    A logger that the operator has configured stays unchanged.
    """
    if logger.level == logging.NOTSET and not logger.handlers:
        logger.setLevel(min(LITELLM.getEffectiveLevel(), logging.WARNING))
        logger.parent = LITELLM  # whose handlers LiteLLM's JSON mode replaces
