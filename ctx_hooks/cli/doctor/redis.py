"""Whether the Redis that the proxy's workers share can be reached, and how fast it answers."""

from __future__ import annotations

import asyncio
import time
from statistics import median
from typing import Any

from redis.exceptions import RedisError

from ctx_hooks.cli.configuration import Configuration
from ctx_hooks.cli.findings import Finding, finding
from ctx_hooks.cli.redis_client import redis_client
from ctx_hooks.cli.terminal import CommandError
from ctx_hooks.learning import redis_store
from ctx_hooks.store.shared_store import SLOW_SECONDS

TRIES = 9
"""The median of so many is the usual round trip; the first one also connects."""
WAIT_SECONDS = 5.0
"""A Redis that takes longer is of no use to a request."""


def redis_finding(config: Configuration | None) -> Finding:
    """Return what is found of the Redis that a configuration names, or the environment."""
    try:
        client = redis_client(config)
    except CommandError as error:
        return finding("redis_fails", error=error)
    if client is None:
        return finding("redis_missing")
    try:
        seconds = asyncio.run(asyncio.wait_for(_round_trip_seconds(client), WAIT_SECONDS))
    except (OSError, RedisError, TimeoutError, asyncio.TimeoutError) as error:
        reason = str(error) or f"no answer within {WAIT_SECONDS:.0f} seconds"
        return finding("redis_fails", error=f"Redis cannot be used: {reason}")
    milliseconds, slow = f"{seconds * 1_000:.1f}", f"{SLOW_SECONDS * 1_000:.0f}"
    return finding("redis" if seconds <= SLOW_SECONDS else "redis_slow", milliseconds=milliseconds, slow=slow)


async def _round_trip_seconds(client: Any) -> float:
    """Return the usual time of the script by which statistics are read, which the server must allow."""
    try:
        taken = []
        for _ in range(TRIES):
            begun = time.perf_counter()
            await client.eval(redis_store.READ, 1, f"{redis_store.KEY_PREFIX}doctor")
            taken.append(time.perf_counter() - begun)
        return median(taken)
    finally:
        await client.aclose()
