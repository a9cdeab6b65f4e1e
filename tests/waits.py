"""Waiting in a test's own loop for what happens in a moment."""

import asyncio
import inspect
import time
from collections.abc import Callable

SECONDS = 300
"""For what takes milliseconds on a quiet machine."""


async def until(found: Callable[[], object]) -> None:
    """Ask until something is found; the answer may have to be awaited."""
    end = time.monotonic() + SECONDS
    while not (await answer if inspect.isawaitable(answer := found()) else answer):
        assert time.monotonic() < end
        await asyncio.sleep(0.01)
