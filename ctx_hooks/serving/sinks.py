"""Attaches the sinks that the settings ask for, once, when the proxy loads the plugin."""

from __future__ import annotations

import atexit
import logging
from pathlib import Path
from typing import TYPE_CHECKING

from ctx_hooks import litellm_compat
from ctx_hooks.serving.failing_open import failing_open
from ctx_hooks.telemetry import prometheus
from ctx_hooks.telemetry.event_file import WRITTEN, EventFile
from ctx_hooks.telemetry.log import log_answer, log_decision, log_failure, log_summary
from ctx_hooks.telemetry.sinks import attach

if TYPE_CHECKING:
    from collections.abc import Callable

    from ctx_hooks.policy.settings import EventFiles, Settings
    from ctx_hooks.telemetry.listeners import EventName, Listener

logger = logging.getLogger("ctx_hooks")

_ends: list[Callable[[], object]] = []
"""Events are those of the whole process: a second handler's sinks take the place of the first one's."""


def attach_sinks(settings: Settings) -> None:
    """Let each sink of the settings hear events, in place of those that do; one that cannot be made is left out."""
    detach_sinks()
    litellm_compat.share_log_output(logger)
    logged: dict[EventName, Listener] = {
        "decision": log_decision,
        "answer": log_answer,
        "failure": log_failure,
        "after_summary": log_summary,
    }
    _ends.append(attach("log", logged))
    if settings.events is not None:
        _attach_event_file(settings.events)
    with failing_open("records nothing for Prometheus"):
        metrics = prometheus.process_metrics() if settings.prometheus else None
        if metrics is not None:
            _ends.append(attach("Prometheus", metrics.listeners))


def detach_sinks() -> None:
    """End every sink; what waits to be written is written."""
    while _ends:
        _ends.pop()()


def _attach_event_file(files: EventFiles) -> None:
    try:
        file = EventFile(Path(files.path), files.max_bytes, files.keep)
    except (OSError, ImportError) as error:
        reason = getattr(error, "strerror", None) or type(error).__name__
        logger.warning("events are not written to %s: %s", files.path, reason)
        return
    _ends.append(file.close)
    _ends.append(attach("event file", dict.fromkeys(WRITTEN, file.hear)))


atexit.register(detach_sinks)
