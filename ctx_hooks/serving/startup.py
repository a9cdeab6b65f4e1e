"""What is done once, when the proxy loads the plugin."""

from __future__ import annotations

import gc
import sys
from typing import TYPE_CHECKING

from ctx_hooks import litellm_compat
from ctx_hooks.policy.resolve import switched_off
from ctx_hooks.runtime import content_cache
from ctx_hooks.serving.failing_open import failing_open
from ctx_hooks.serving.sinks import attach_sinks
from ctx_hooks.tokens import vocabulary

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from ctx_hooks.policy.settings import Settings
    from ctx_hooks.serving.request_flow import RequestFlow
    from ctx_hooks.tokens.units import ProviderTokens


SWITCH_SECONDS = 0.0005
"""Python's own interval is 0.005: an event that needs the lock three times would wait 15 ms."""


def start(settings: Settings, flow: Callable[[], RequestFlow]) -> None:
    """Load what the first request would wait for, and let the Router see overflows that LiteLLM does not know.

    Where the environment switches the plugin off, nothing is done at all.

    Args:
        settings: what stands under `callback_settings.ctx_hooks`.
        flow: returns what requests go through; LiteLLM is patched once, so it is asked at each use.
    """
    if switched_off():
        return
    content_cache.set_limit_bytes(settings.cache_bytes)
    vocabulary.load_all()
    attach_sinks(settings)
    litellm_compat.estimate_usage(lambda logged: _estimated(flow(), logged))
    if settings.reclassify_errors:
        litellm_compat.reclassify(
            lambda error: litellm_compat.overflow_of(error) is not None,
            lambda attempt, error: flow().note_failure(attempt, error),
            lambda attempt: flow().handles(attempt),
        )
    litellm_compat.warn_of_missing()
    if settings.smooth_event_loop:
        smooth_event_loop()


def _estimated(flow: RequestFlow, logged: Mapping[str, Any]) -> ProviderTokens | None:
    with failing_open("leaves the estimate to LiteLLM"):
        return flow.runner.estimated_tokens(litellm_compat.request_id_of(logged))
    return None


def smooth_event_loop() -> None:
    """Let long work in a thread hold up the event loop less, in the whole process.

    A full garbage collection stops everything and walks all that is loaded: LiteLLM's hundreds of thousands of objects
    are taken out of it. And whenever the loop wants Python's lock back it waits for one switch interval.
    """
    gc.freeze()
    sys.setswitchinterval(SWITCH_SECONDS)
