"""LiteLLM's lists of callbacks; only `callbacks` calls every hook of an instance."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

logger = logging.getLogger("ctx_hooks")

OTHER_LISTS = ("success_callback", "failure_callback", "input_callback")
"""Lists for loggers: LiteLLM calls their instances after answers and errors, but not before a call."""


def warn_of_other_lists(instance: object) -> None:
    """Warn of an instance that the configuration lists only where it has no effect.

    The proxy reads its whole configuration in the current turn of the event loop, so the check runs in the next one. Without
    a running loop there is no proxy.
    """
    try:
        loop = asyncio.get_running_loop()
    except RuntimeError:
        return
    loop.call_soon(_warn, instance)


def no_effect(name: str) -> str:
    """Return what is wrong with a configuration that has the plugin in one of OTHER_LISTS alone."""
    return f"in litellm_settings.{name} ctx_hooks has no effect: list it under litellm_settings.callbacks"


def _warn(instance: object) -> None:
    import litellm  # noqa: PLC0415

    if _holds(litellm.callbacks, instance):
        return
    for name in OTHER_LISTS:
        if _holds(getattr(litellm, name, None), instance):
            logger.warning("%s", no_effect(name))


def _holds(callbacks: Any, instance: object) -> bool:
    return any(c is instance for c in callbacks or ())
