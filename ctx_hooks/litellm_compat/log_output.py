"""The plugin's log lines appear where LiteLLM's do: `LITELLM_LOG=INFO` shows both, as JSON where LiteLLM logs JSON."""

from __future__ import annotations

import logging

LITELLM = logging.getLogger("LiteLLM Proxy")
"""As `litellm/_logging.py` names it; to import that takes a second, which the command line has no need of."""


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
