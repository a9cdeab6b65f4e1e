"""Where LiteLLM calls the plugin and where it does not; and the log handlers that the plugin shares with it.

Of the lists of callbacks only `callbacks` calls every hook of an instance.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any

from ctx_hooks.policy.resolve import switched_off
from ctx_hooks.runtime.warnings import warn_once

if TYPE_CHECKING:
    from collections.abc import Mapping

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


SYNCHRONOUS_CHAT = "completion"
"""LiteLLM's call type of a synchronous chat call; that of an asynchronous one is `acompletion`.

`litellm.completion` and `Router.completion` run no deployment hook, pre-call rules get the text alone, and prompt management
wants a prompt's id. `litellm.responses` and `Router.responses` run the hook: these are fitted as the asynchronous ones.
"""


def warn_of_synchronous_call(call: Mapping[str, Any]) -> None:
    """Warn once that synchronous chat calls are sent as they are. `call` is what a logger is told of a call."""
    if call.get("call_type") == SYNCHRONOUS_CHAT and not switched_off():
        warn_once(
            "ctx_hooks does not fit synchronous calls (litellm.completion, Router.completion): use acompletion or the proxy"
        )


LITELLM = logging.getLogger("LiteLLM Proxy")
"""As `litellm/_logging.py` names it, whose import takes a second. `LITELLM_LOG=INFO` shows its lines, as JSON where LiteLLM
logs JSON."""


class _LiteLLMsHandlers(logging.Handler):
    """Hands a record to the handlers that LiteLLM's proxy has at the time: its JSON mode replaces them.

    That mode gives the root logger one as well, which the record reaches by itself.
    """

    def emit(self, record: logging.LogRecord) -> None:
        if not logging.getLogger().handlers:
            for handler in LITELLM.handlers:
                if record.levelno >= handler.level:
                    handler.handle(record)


def share_log_output(logger: logging.Logger) -> None:
    """Show what a logger logs at INFO where LiteLLM shows that; a logger that the operator has configured stays as it is."""
    if LITELLM.isEnabledFor(logging.INFO) and logger.level == logging.NOTSET and not logger.handlers:
        logger.setLevel(LITELLM.getEffectiveLevel())
        logger.addHandler(_LiteLLMsHandlers())
