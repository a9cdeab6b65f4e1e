"""What goes wrong inside a hook is logged, and costs no request, answer or error."""

from __future__ import annotations

import logging
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

logger = logging.getLogger("ctx_hooks")


@contextmanager
def failing_open(consequence: str) -> Iterator[None]:
    """Log any exception of the block as one warning, and go on behind it.

    Args:
        consequence: what the failure means, as `forwards the request unchanged`; part of the warning.

    Raises:
        HTTPException: the answer to a window that the operator does not serve.
        ContextWindowExceededError: a retry that is not sent.
    """
    try:
        yield
    except Exception as error:
        if _is_answer(error):
            raise
        logger.warning("ctx_hooks failed and %s", consequence, exc_info=error)


def _is_answer(error: Exception) -> bool:
    """Whether an exception is how LiteLLM is told what to answer."""
    import litellm  # noqa: PLC0415 - in the proxy it is loaded; `ctx-hooks explain` does without
    from fastapi import HTTPException  # noqa: PLC0415

    return isinstance(error, (HTTPException, litellm.ContextWindowExceededError))
