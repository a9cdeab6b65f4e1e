"""The statistics of every deployment, in this process and in LiteLLM's Redis when it has one.

Workers read each other's figures within ten seconds, those of a refusal at once, and a restart keeps them. Without Redis
each process learns for itself.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING

from ctx_hooks.learning import redis_store, updates
from ctx_hooks.learning.redis_store import KEPT_SECONDS, KEY_PREFIX, LARGEST_BYTES
from ctx_hooks.learning.stats import DeploymentStats, Key, Observation
from ctx_hooks.store.shared_store import SharedStore, UnavailableError
from ctx_hooks.telemetry.listeners import emit

if TYPE_CHECKING:
    from ctx_hooks.learning.attempts import Attempt
    from ctx_hooks.telemetry.events import TruncationEvent
    from ctx_hooks.tokens.usage import Billed

REFRESH_SECONDS = 5.0
"""How long after they were read the figures of other workers are good enough for a request, unless one was refused since."""
WRITE_SECONDS = 5.0
"""So long what answers show of a deployment is gathered; what a refusal shows is written at once."""
MOST_GATHERED = 256
"""Observations of one deployment, which wait in memory."""
MOST_DEPLOYMENTS = 1_000
"""Behind a wildcard the caller names the model, so deployments are not bounded by the configuration."""


class Learned:
    """Statistics by deployment. Used on the event loop only."""

    def __init__(self, store: SharedStore) -> None:
        self._store = store
        self._stats: OrderedDict[str, DeploymentStats] = OrderedDict()
        self._read_at: OrderedDict[str, float] = OrderedDict()
        self._refusals: dict[str, str] = {}
        self._unwritten: dict[str, dict[Key, Observation]] = {}

    async def of(self, deployment: str, *, may_be_refused: bool = False) -> DeploymentStats:
        """Return what is known of a deployment, at most REFRESH_SECONDS old unless Redis is slow.

        Args:
            deployment: its key.
            may_be_refused: whether the request is so large that it has to know of the newest refusal of any worker.
        """
        is_old = time.monotonic() - self._read_at.get(deployment, -REFRESH_SECONDS) >= REFRESH_SECONDS
        if (is_old or may_be_refused) and self._store.is_shared:
            known = "" if is_old else self._refusals.get(deployment, "")
            with suppress(UnavailableError):  # then what this process knows has to do; the store warns
                await self._store.briefly(partial(self._read, deployment, known), KEY_PREFIX + deployment)
        return self._stats.get(deployment, DeploymentStats())

    async def from_refusal(self, attempt: Attempt) -> None:
        """Learn from the overflow that an attempt ended in, if it did."""
        if attempt.overflow is not None:
            stats = await self.of(attempt.to.deployment)
            await self._note(attempt, updates.of_refusal(stats, attempt, attempt.overflow, time.time()))

    async def from_answer(self, attempt: Attempt, billed: Billed) -> None:
        """Learn from what an attempt was billed."""
        stats, now = await self.of(attempt.to.deployment), time.time()
        shown = updates.of_answer(stats, attempt, billed.input_tokens, now, billed.output_tokens)
        await self._note(attempt, shown, updates.truncation(shown, attempt, billed.input_tokens))

    async def _note(self, attempt: Attempt, shown: updates.Shown, truncation: TruncationEvent | None = None) -> None:
        for event in (truncation, updates.limit_learned(shown, attempt)):
            if event is not None:
                emit(event)
        if shown:
            await self.learn(attempt.to.deployment, shown)

    async def learn(self, deployment: str, shown: Mapping[Key, Observation]) -> None:
        """Add observations of a deployment; other workers get those that change what is known."""
        self._merge(deployment, shown)
        known = self._stats.get(deployment, DeploymentStats()).observations
        news = {key: observation for key, observation in shown.items() if known.get(key) is observation}
        if not news or not self._store.is_shared:
            return
        gathered = self._unwritten.setdefault(deployment, {})
        is_first = not gathered
        gathered.update(news)
        if redis_store.shows_refusal(news) or len(gathered) >= MOST_GATHERED:
            await self._write(deployment)
        elif is_first:
            self._store.begun(self._write(deployment, WRITE_SECONDS))

    async def _write(self, deployment: str, pause_seconds: float = 0.0) -> None:
        """Write what is gathered after a pause, unless a refusal was written meanwhile with it."""
        try:
            await asyncio.sleep(pause_seconds)
        finally:  # also where the loop ends, or the caller of a refused request leaves
            gathered = self._unwritten.pop(deployment, None)
            if gathered:
                key, change = KEY_PREFIX + deployment, partial(redis_store.with_observations, gathered)
                with suppress(UnavailableError):  # then other workers learn it from their own traffic; the store warns
                    await self._store.briefly(partial(self._store.change, key, change, LARGEST_BYTES, KEPT_SECONDS))

    async def _read(self, deployment: str, known: str) -> None:
        """Read from Redis unless nothing was refused since the refusal that is known."""
        if not known:
            self._read_at[deployment] = time.monotonic()
            if len(self._read_at) > MOST_DEPLOYMENTS:
                oldest, _ = self._read_at.popitem(last=False)
                self._refusals.pop(oldest, None)
        found = await self._store.read(KEY_PREFIX + deployment, LARGEST_BYTES, unless=known)
        if found:
            self._refusals[deployment] = redis_store.refusal_of(found)
            self._merge(deployment, redis_store.observations(found, time.time()).observations)

    def _merge(self, deployment: str, found: Mapping[Key, Observation]) -> None:
        self._stats[deployment] = self._stats.get(deployment, DeploymentStats()).merged(found, time.time())
        self._stats.move_to_end(deployment)
        if len(self._stats) > MOST_DEPLOYMENTS:
            self._stats.popitem(last=False)
