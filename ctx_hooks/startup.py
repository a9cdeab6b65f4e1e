"""What is done once, when the proxy loads the plugin."""

from __future__ import annotations

import gc
from typing import TYPE_CHECKING

from ctx_hooks import content_cache, litellm_compat
from ctx_hooks.tokens import vocabulary

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping
    from typing import Any

    from ctx_hooks.policy.settings import Settings


def start(settings: Settings, note: Callable[[Mapping[str, Any], Exception], Awaitable[bool]]) -> None:
    """Load what the first request would wait for, and let the Router see overflows that LiteLLM does not know.

    `note` is told of an attempt that failed inside its stream, and says whether it is an overflow.
    """
    content_cache.set_limit_bytes(settings.cache_bytes)
    vocabulary.load_all()
    if settings.reclassify_errors:
        litellm_compat.reclassify(lambda error: litellm_compat.overflow_of(error) is not None, note)
    if settings.freeze_startup_objects:
        # A full collection walks all that LiteLLM has loaded and holds up every request meanwhile.
        gc.freeze()
