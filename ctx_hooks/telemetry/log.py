"""The sink that logs the start and what changes a request: a line of names and figures, for JSON formatters a mapping."""

import json
import logging
from typing import Any

from ctx_hooks.telemetry.events import CallNames, flat

logger = logging.getLogger("ctx_hooks")
LITELLM = logging.getLogger("LiteLLM Proxy")
"""As `litellm/_logging.py` names it, whose import takes a second. `LITELLM_LOG=INFO` shows its lines."""
AMBIGUOUS = frozenset(' "=\\{')
"""In a line of `name=value`, or to LiteLLM's JSON formatter."""
LOGGED = ("start", "decision", "answer", "failure", "rejection", "limit_learned", "summary", "compaction_item")
NO_END = frozenset({"fits", "opened"})
"""Outcomes of a request that was sent unchanged, or with an opened compaction item."""


def log_event(event: Any) -> None:
    """Log an event with its request's owner, unless the request fits."""
    end = "outcome" if hasattr(event, "outcome") else "decision"
    if not logger.isEnabledFor(logging.INFO) or getattr(event, end, None) in NO_END:
        return
    figures = flat(event)
    call = getattr(event, "call", CallNames())
    shown = {"event": event.name, end: figures.get(end), **figures} | {
        "call_id": call.call_id or call.request_id,
        "model_group": call.model_group,
        "team": call.team_alias or call.team_id,
        "key": call.key_alias,
        "client": call.client,
        "deployment": call.deployment or figures.get("deployment"),
    }
    shown = {name: value for name, value in shown.items() if value not in (None, "")}
    logger.info("%s", " ".join(f"{name}={_word(value)}" for name, value in shown.items()), extra={"ctx_hooks": shown})


def _word(value: object) -> str:
    """Return a value as one word, quoted if ambiguous: LiteLLM's JSON formatter treats a mapping in a line as its fields."""
    text = str(value)
    return json.dumps(text, ensure_ascii=False).replace("{", "\\u007b") if AMBIGUOUS.intersection(text) else text


def share_log_output() -> None:
    """Show the lines in LiteLLM's own log output, at least warnings, unless the operator has configured the logger."""
    if logger.level == logging.NOTSET and not logger.handlers:
        logger.setLevel(min(LITELLM.getEffectiveLevel(), logging.WARNING))
        logger.parent = LITELLM  # whose handlers LiteLLM's JSON mode replaces
