"""Waiting in a test's own loop for what happens in a moment."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

SECONDS = 300
"""For what takes milliseconds on a quiet machine."""


async def until(found: Callable[[], Awaitable[object]]) -> None:
    """Ask until something is found."""
    end = time.monotonic() + SECONDS
    while not await found():
        assert time.monotonic() < end
        await asyncio.sleep(0.01)
