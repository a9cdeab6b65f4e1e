"""The steps at start, when the proxy loads the plugin."""

import atexit
import logging
import time
from collections.abc import Callable, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING

from ctx_hooks.litellm_compat.errors import failing_open, on_fault
from ctx_hooks.litellm_compat.logged import estimate_usage
from ctx_hooks.litellm_compat.reclassification import reclassify
from ctx_hooks.litellm_compat.registry import version_of, warn_of_missing
from ctx_hooks.policy.resolve import Caller, Policies, switched_off
from ctx_hooks.policy.settings import Settings
from ctx_hooks.runtime import content_cache
from ctx_hooks.telemetry import prometheus
from ctx_hooks.telemetry.event_file import WRITTEN, EventFile
from ctx_hooks.telemetry.events import FaultEvent, StartEvent
from ctx_hooks.telemetry.listeners import attach, emit
from ctx_hooks.telemetry.log import LOGGED, log_event
from ctx_hooks.tokens.counter import load_vocabularies

if TYPE_CHECKING:
    from ctx_hooks.flow.request_flow import RequestFlow

logger = logging.getLogger("ctx_hooks")

DIGEST_BYTES = 6
"""Length of the settings' digest: a fleet has only a few different ones."""
_ends: list[Callable[[], object]] = []
"""Events belong to the whole process: a second handler's sinks replace the first handler's."""


def start(settings: Settings, mistakes: Sequence[str], flow: "Callable[[], RequestFlow]") -> None:
    """Load everything that the first request would wait for; show the Router overflows that LiteLLM does not recognise.

    If the environment switches the plugin off, this does nothing. `mistakes` has a line for each mistake in the settings.
    LiteLLM is patched once, so each use calls `flow` for the object that notes how attempts end.
    """
    if switched_off():
        return
    content_cache.set_limit_bytes(settings.cache_bytes)
    load_vocabularies()
    attach_sinks(settings)
    estimate_usage(lambda logged: flow().estimated_tokens(logged))
    reclassify(flow)
    missing = warn_of_missing()
    with failing_open("says nothing of its start"):
        emit(started(settings, mistakes, missing))


def started(settings: Settings, mistakes: Sequence[str], missing: tuple[str, ...]) -> StartEvent:
    """Return the record of the start: versions and settings; the arguments are the same as `start`'s."""
    policies = Policies(settings)
    return StartEvent(
        "start",
        time.time(),
        version=version_of("ctx-hooks"),
        litellm_version=version_of("litellm"),
        mode=policies.resolve(Caller()).policy.mode,
        digest=blake2b(repr(settings).encode("utf-8", "replace"), digest_size=DIGEST_BYTES).hexdigest(),
        addons=policies.addon_names(),
        missing=missing,
        mistakes=len(mistakes),
    )


def attach_sinks(settings: Settings) -> None:
    """Attach the sinks of the settings in place of the present ones; leave out one that cannot be made."""
    detach_sinks()
    _ends.append(on_fault(lambda consequence: emit(FaultEvent("fault", time.time(), consequence))))
    _ends.append(attach("log", dict.fromkeys(LOGGED, log_event)))
    with failing_open("records nothing for Prometheus"):
        metrics = prometheus.process_metrics()
        if metrics is not None:
            _ends.append(attach("Prometheus", metrics.listeners))
    files = settings.events
    if files is not None:
        try:
            file = EventFile(Path(files.path), files.max_bytes, files.keep)
        except (OSError, ImportError) as error:
            reason = getattr(error, "strerror", None) or type(error).__name__
            logger.warning("events are not written to %s: %s", files.path, reason)
            emit(FaultEvent("fault", time.time(), sink="event file"))
        else:
            _ends.append(file.close)
            _ends.append(attach("event file", dict.fromkeys(WRITTEN, file.hear)))


def detach_sinks() -> None:
    """End every sink after it has written its waiting events."""
    while _ends:
        _ends.pop()()


atexit.register(detach_sinks)
