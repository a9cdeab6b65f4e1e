"""The statistics of every deployment, in this process and in LiteLLM's Redis when it has one.

Workers read each other's figures within ten seconds, a refusal's at once, and a restart keeps them. Without Redis each
process learns by itself.

In Redis each deployment has one value, into which each worker merges its observations. A worker with old figures erases
nothing, since it merges by the rule of `DeploymentStats`. Anyone with access to the Redis can write anything there, so
values are checked by size, type and range.
"""

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TypeAlias, cast
from uuid import uuid4

from pydantic import TypeAdapter, ValidationError

from ctx_hooks.learning import updates
from ctx_hooks.learning.attempts import Attempt
from ctx_hooks.learning.stats import RULES, DeploymentStats, Key, Observation
from ctx_hooks.store.shared_store import SharedStore, UnavailableError
from ctx_hooks.telemetry.events import TruncationEvent
from ctx_hooks.telemetry.listeners import emit
from ctx_hooks.tokens.usage import Billed

REFRESH_SECONDS = 5.0
"""The maximum age of other workers' figures for a request, unless a refusal was written since."""
WRITE_SECONDS = 5.0
"""Observations from answers are gathered for this time; those from a refusal are written at once."""
MOST_GATHERED = 256
"""Observations of one deployment that wait in memory."""
MOST_DEPLOYMENTS = 1_000
"""Behind a wildcard the caller names the model, so deployments are not bounded by the configuration."""

KEY_PREFIX = "ctx_hooks:statistics:"
KEPT_SECONDS = 7 * 24 * 3600
LARGEST_BYTES = 250_000
"""Eleven kinds of 64 tenants are at most 76 KB (measured with two more), which are read in 1 ms."""
REFUSAL_CHARS = 32
"""A value begins with the name of the newest refusal: a worker that knows this refusal need not read the rest."""
NO_REFUSAL = "0" * REFUSAL_CHARS
SHOWN_BY_REFUSALS = frozenset({"limit", "own_limit", "refused", "claimed", "output_limit", "wants_reasoning"})

Rows: TypeAlias = Sequence[tuple[str, str, float, tuple[float, ...]]]
_ROWS = TypeAdapter(Rows)
"""Kind, tenant, time and figures of each observation."""


@dataclass(slots=True)
class _Deployment:
    """A deployment's statistics, their last reading, the newest refusal then, and observations not yet shared."""

    stats: DeploymentStats = field(default_factory=DeploymentStats)
    read_at: float = -math.inf
    refusal: str = ""
    unwritten: dict[Key, Observation] = field(default_factory=dict)


class Learned:
    """Statistics by deployment. Used on the event loop only."""

    def __init__(self, store: SharedStore) -> None:
        self._store = store
        self._deployments: OrderedDict[str, _Deployment] = OrderedDict()

    async def of(self, deployment: str, *, may_be_refused: bool = False) -> DeploymentStats:
        """Return the statistics of a deployment, at most REFRESH_SECONDS old unless Redis is slow.

        Args:
            deployment: its key.
            may_be_refused: whether the request is so large that it needs the newest refusal of any worker.
        """
        known = self._deployments.get(deployment) or _Deployment()
        is_old = time.monotonic() - known.read_at >= REFRESH_SECONDS
        if (is_old or may_be_refused) and self._store.is_shared:
            known = self._kept(deployment)
            with suppress(UnavailableError):  # then this process's own figures have to suffice; the store warns
                read = partial(self._read, deployment, "" if is_old else known.refusal)
                await self._store.briefly(read, KEY_PREFIX + deployment)
        return known.stats

    async def from_refusal(self, attempt: Attempt) -> None:
        """Learn from an attempt's overflow, if it has one."""
        if attempt.overflow is not None:
            stats = await self.of(attempt.to.deployment)
            await self._note(attempt, updates.believed_of_refusal(stats, attempt, attempt.overflow, time.time()))

    async def from_retry(self, attempt: Attempt) -> None:
        """Learn from the refusal before a retry whose answer has begun."""
        if attempt.known.previous is not None:
            stats = await self.of(attempt.to.deployment)
            await self._note(attempt, updates.of_answered_retry(stats, attempt, time.time()))

    async def from_missing_reasoning(self, attempt: Attempt) -> None:
        """Learn from a refusal that the deployment wants the reasoning of earlier answers back."""
        await self.learn(attempt.to.deployment, {("wants_reasoning", attempt.to.tenant): Observation((1,), time.time())})

    async def from_answer(self, attempt: Attempt, billed: Billed, *, cut_short: bool = False) -> None:
        """Learn from the bill of an attempt, and from an answer that was cut short."""
        stats, now = await self.of(attempt.to.deployment), time.time()
        shown = updates.of_answer(stats, attempt, billed.input_tokens, now)
        if cut_short:
            shown = {**shown, **updates.of_cut_answer(stats.seen_by(attempt.to.tenant, now), attempt, billed, now)}
        await self._note(attempt, shown, updates.truncation(shown, attempt, billed.input_tokens))

    async def _note(self, attempt: Attempt, shown: updates.Shown, truncation: TruncationEvent | None = None) -> None:
        for event in (truncation, updates.limit_learned(shown, attempt)):
            if event is not None:
                emit(event)
        if shown:
            await self.learn(attempt.to.deployment, shown)

    async def learn(self, deployment: str, shown: Mapping[Key, Observation]) -> None:
        """Add observations of a deployment; share with other workers those that change its statistics."""
        known, now = self._kept(deployment), time.time()
        news = {key: observation for key, observation in shown.items() if known.stats.gains(key, observation, now)}
        if not news:
            return
        known.stats = known.stats.merged(news, now)
        if not self._store.is_shared:
            return
        is_first = not known.unwritten
        known.unwritten.update(news)
        if shows_refusal(news) or len(known.unwritten) >= MOST_GATHERED:
            await self._write(deployment)
        elif is_first:
            self._store.begun(self._write(deployment, WRITE_SECONDS))

    async def _write(self, deployment: str, pause_seconds: float = 0.0) -> None:
        """Write the gathered observations after a pause, unless they were written meanwhile with a refusal."""
        known = self._kept(deployment)
        try:
            await asyncio.sleep(pause_seconds)
        finally:  # also if the loop ends, or the caller of a refused request leaves
            gathered, known.unwritten = known.unwritten, {}
            if gathered:
                key, change = KEY_PREFIX + deployment, partial(with_observations, gathered)
                with suppress(UnavailableError):  # then other workers learn it from their own traffic; the store warns
                    await self._store.briefly(partial(self._store.change, key, change, LARGEST_BYTES, KEPT_SECONDS))

    async def _read(self, deployment: str, refusal: str) -> None:
        """Read from Redis, unless the known refusal is still the newest."""
        known = self._kept(deployment)
        if not refusal:
            known.read_at = time.monotonic()
        found = await self._store.read(KEY_PREFIX + deployment, LARGEST_BYTES, unless=refusal)
        if found:
            now = time.time()
            known.refusal = refusal_of(found)
            known.stats = known.stats.merged(observations(found, now).observations, now)

    def _kept(self, deployment: str) -> _Deployment:
        """Return a deployment's entry, a new one if it is unknown; the least recently used entry is forgotten."""
        known = self._deployments.setdefault(deployment, _Deployment())
        self._deployments.move_to_end(deployment)
        if len(self._deployments) > MOST_DEPLOYMENTS:
            self._deployments.popitem(last=False)
        return known


def observations(value: bytes, now: float) -> DeploymentStats:
    """Return the statistics in a value, without invalid or old observations."""
    ours = {cast("Key", (kind, tenant)): Observation(v, at) for kind, tenant, at, v in _rows(value) if kind in RULES}
    return DeploymentStats().merged(ours, now)


def refusal_of(value: bytes) -> str:
    """Return the name of the newest refusal."""
    name = value[:REFUSAL_CHARS].decode("ascii", "replace")
    return name if len(name) == REFUSAL_CHARS and name.isalnum() else NO_REFUSAL


def shows_refusal(shown: Mapping[Key, Observation]) -> bool:
    """Return whether any of the observations comes from a refusal: other workers' next requests need those."""
    return any(kind in SHOWN_BY_REFUSALS for kind, _ in shown)


async def with_observations(shown: Mapping[Key, Observation], value: bytes) -> bytes:
    """Return a value with more observations."""
    now = time.time()
    refusal = uuid4().hex if shows_refusal(shown) else refusal_of(value)
    merged = observations(value, now).merged(shown, now).observations
    return _value(refusal, [(kind, tenant, o.at, o.values) for (kind, tenant), o in merged.items()])


def held_by(tenant: str, value: bytes) -> int:
    """Return how many observations of a tenant a value has, valid or not."""
    return sum(whose == tenant for _, whose, *_ in _rows(value))


async def without_tenant(tenant: str, value: bytes) -> bytes:
    """Return a value without a tenant's observations, otherwise unchanged."""
    return _value(refusal_of(value), [row for row in _rows(value) if row[1] != tenant]) if held_by(tenant, value) else value


def _rows(value: bytes) -> Rows:
    try:
        return _ROWS.validate_json(value[REFUSAL_CHARS:])
    except ValidationError:
        return ()


def _value(refusal: str, rows: Rows) -> bytes:
    return refusal.encode() + _ROWS.dump_json(rows)
