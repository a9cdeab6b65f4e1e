"""Attaches the sinks that the settings ask for."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_hooks.serving.failing_open import failing_open
from ctx_hooks.telemetry import prometheus
from ctx_hooks.telemetry.sinks import attach

if TYPE_CHECKING:
    from collections.abc import Callable

    from ctx_hooks.policy.settings import Settings

_ends: list[Callable[[], None]] = []
"""Events are those of the whole process: a second handler's sinks take the place of the first one's."""


def attach_sinks(settings: Settings) -> None:
    """Let each sink hear events; one that cannot be made is left out with a warning."""
    while _ends:
        _ends.pop()()
    with failing_open("records nothing for Prometheus"):
        metrics = prometheus.process_metrics() if settings.prometheus else None
        if metrics is not None:
            _ends.append(attach("Prometheus", metrics.listeners))
