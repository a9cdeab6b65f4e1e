"""Warnings that say the same are given once: what is wrong in a request or a configuration comes with every request."""

from __future__ import annotations

import logging
from functools import lru_cache

REMEMBERED = 1_000

logger = logging.getLogger("ctx_hooks")


@lru_cache(maxsize=REMEMBERED)
def warn_once(text: str) -> None:
    """Log a warning unless it is among the last thousand different ones."""
    logger.warning(text)
