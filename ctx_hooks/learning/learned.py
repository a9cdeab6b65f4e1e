"""The statistics of every deployment, in this process and in LiteLLM's Redis when it has one.

Workers read each other's figures within seconds and a restart keeps them. Without Redis each process learns for itself.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from ctx_hooks.learning import redis_store
from ctx_hooks.learning.stats import KEPT_SECONDS, DeploymentStats, Key, Observation

if TYPE_CHECKING:
    from ctx_hooks.learning.redis_store import SharedCache

logger = logging.getLogger("ctx_hooks")

REFRESH_SECONDS = 10.0
"""How old a figure of another worker may be; Redis is read no more often for one deployment."""
REDIS_TIMEOUT_SECONDS = 0.25
"""Redis read timeout; falls back to the figures of this process until the next refresh."""
MOST_DEPLOYMENTS = 1_000
"""Behind a wildcard the caller names the model, so deployments are not bounded by the configuration."""


class Learned:
    """Statistics by deployment. `shared` returns LiteLLM's Redis cache, None without one; its failures are survived.

    Used on the event loop alone.
    """

    def __init__(self, shared: Callable[[], SharedCache | None]) -> None:
        self._shared = shared
        self._stats: OrderedDict[str, DeploymentStats] = OrderedDict()
        self._read_at: OrderedDict[str, float] = OrderedDict()
        self._unwritten: dict[str, dict[Key, Observation]] = {}

    async def of(self, deployment: str) -> DeploymentStats:
        """Return what is known of a deployment, at most ten seconds old."""
        shared = self._shared()
        now = time.monotonic()
        if shared is not None and now - self._read_at.get(deployment, -REFRESH_SECONDS) >= REFRESH_SECONDS:
            self._read_at[deployment] = now
            if len(self._read_at) > MOST_DEPLOYMENTS:
                self._read_at.popitem(last=False)
            try:
                found = await asyncio.wait_for(redis_store.read(shared, deployment, time.time()), REDIS_TIMEOUT_SECONDS)
            except Exception as error:  # noqa: BLE001 - a request must not wait for, nor fail with, a broken Redis
                logger.warning("ctx_hooks cannot read its figures from Redis: %r", error)
            else:
                self._merge(deployment, found.observations)
        return self._stats.get(deployment, DeploymentStats())

    async def learn(self, deployment: str, shown: Mapping[Key, Observation]) -> None:
        """Add observations of a deployment; what Redis did not take is written with the next ones."""
        self._merge(deployment, shown)
        shared = self._shared()
        if shared is None:
            return
        unwritten = {**self._unwritten.pop(deployment, {}), **shown}
        try:
            writing = redis_store.merge(shared, deployment, unwritten, KEPT_SECONDS)
            await asyncio.wait_for(writing, REDIS_TIMEOUT_SECONDS)
        except Exception as error:  # noqa: BLE001 - the figures stay in this process
            logger.warning("ctx_hooks cannot write its figures to Redis: %r", error)
            self._unwritten[deployment] = unwritten

    def _merge(self, deployment: str, found: Mapping[Key, Observation]) -> None:
        if not found:
            return
        self._stats[deployment] = self._stats.get(deployment, DeploymentStats()).merged(found, time.time())
        self._stats.move_to_end(deployment)
        if len(self._stats) > MOST_DEPLOYMENTS:
            oldest, _ = self._stats.popitem(last=False)
            self._unwritten.pop(oldest, None)
