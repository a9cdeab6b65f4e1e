"""The statistics of every deployment, in this process and in LiteLLM's Redis when it has one.

In Redis each deployment has one value, into which each worker merges its observations by the rule of `DeploymentStats`: old
figures erase nothing. Anyone with access to the Redis can write anything there: values are checked by size, type and range.
"""

import asyncio
import math
import time
from collections import OrderedDict
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeAlias, cast

from pydantic import TypeAdapter, ValidationError

from ctx_hooks.attempts import updates
from ctx_hooks.attempts.attempt import Attempt
from ctx_hooks.attempts.observations import RULES, DeploymentStats, Key, Observation, Shown
from ctx_hooks.store.shared_store import SharedStore, UnavailableError
from ctx_hooks.telemetry.events import LimitEvent
from ctx_hooks.telemetry.listeners import emit
from ctx_hooks.tokens.units import ProviderTokens
from ctx_hooks.tokens.usage import Billed

REFRESH_SECONDS = 5.0
"""The maximum age of other workers' figures."""
WRITE_SECONDS = 1.0
"""Observations are gathered for this time before they are written."""
MOST_DEPLOYMENTS = 1_000
"""Behind a wildcard the caller names the model, so deployments are not bounded by the configuration."""

SAME_FRACTION = 0.02
"""Provider tokens that differ by less count as the same."""

KEY_PREFIX = "ctx_hooks:statistics:"
KEPT_SECONDS = 7 * 24 * 3600
LARGEST_BYTES = 250_000
"""Eleven kinds of 64 tenants are at most 76 KB (measured); six are kept."""

Rows: TypeAlias = Sequence[tuple[str, str, float, tuple[float, ...]]]
_ROWS = TypeAdapter(Rows)
"""Kind, tenant, time and figures of each observation."""


@dataclass(slots=True)
class _Deployment:
    """A deployment's statistics, when they were last read, and the observations not yet shared."""

    stats: DeploymentStats = field(default_factory=DeploymentStats)
    read_at: float = -math.inf
    unwritten: dict[Key, Observation] = field(default_factory=dict)


class Learned:
    """Statistics by deployment. Used on the event loop only."""

    def __init__(self, store: SharedStore) -> None:
        self._store = store
        self._deployments: OrderedDict[str, _Deployment] = OrderedDict()
        self._claims: OrderedDict[tuple[str, ...], tuple[float, Any]] = OrderedDict()

    async def of(self, deployment: str) -> DeploymentStats:
        """Return the statistics of a deployment by its key, at most REFRESH_SECONDS old unless Redis is slow."""
        known = self._deployments.get(deployment) or _Deployment()
        if self._store.is_shared and time.monotonic() - known.read_at >= REFRESH_SECONDS:
            known = self._kept(deployment)
            with suppress(UnavailableError):  # then this process's own figures have to suffice; the store warns
                await self._store.briefly(partial(self._read, deployment), KEY_PREFIX + deployment)
        return known.stats

    async def from_refusal(self, attempt: Attempt) -> None:
        """Learn from an attempt's overflow, if it has one."""
        if attempt.overflow is not None:
            stats, now = await self.of(attempt.to.deployment), time.time()
            key: Key = ("limit", attempt.to.tenant)
            shown = updates.of_refusal(stats, attempt, attempt.overflow, now)
            is_doubted = key not in shown and not attempt.overflow.quoted
            claimed = updates.of_refusal(stats, attempt, attempt.overflow, now, is_confirmed=True) if is_doubted else {}
            if key in claimed:
                tokens, ceiling, _ = claimed[key].values
                before, said_by = self._claimed_before(attempt, "refusal", ceiling or tokens, attempt.to.request_id)
                if said_by != attempt.to.request_id and math.isclose(before, ceiling or tokens, rel_tol=SAME_FRACTION):
                    shown = claimed  # the provider named the same limit to a second request
            await self._learn_of(attempt, shown)

    async def from_retry(self, attempt: Attempt) -> None:
        """Learn from the refusal before a retry whose answer has begun."""
        if attempt.limits.previous is not None:
            stats = await self.of(attempt.to.deployment)
            await self._learn_of(attempt, updates.of_answered_retry(stats, attempt, time.time()))

    async def from_missing_reasoning(self, attempt: Attempt) -> None:
        """Learn from a refusal that the deployment wants the reasoning of earlier answers back."""
        await self.learn(attempt.to.deployment, {("wants_reasoning", attempt.to.tenant): Observation((1,), time.time())})

    async def from_answer(self, attempt: Attempt, billed: Billed, *, cut_short: bool = False) -> None:
        """Learn from the bill of an attempt, and from an answer that was cut short.

        A provider's own cap on the output ends answers too, so two answers of different lengths have to end at one total.
        """
        stats, answer = await self.of(attempt.to.deployment), billed.output_tokens
        shown = dict(updates.of_answer(stats, attempt, billed.input_tokens, time.time()))
        total = updates.cut_total(stats, attempt, billed, time.time()) if cut_short else None
        if total is not None:
            before, length = self._claimed_before(attempt, "cut", total, answer)
            is_other = length is not None and not math.isclose(length, answer, rel_tol=SAME_FRACTION)
            if is_other and math.isclose(before, total, rel_tol=SAME_FRACTION / 10):
                shown["limit", attempt.to.tenant] = Observation((total, 0, 0), time.time())
        await self._learn_of(attempt, shown)

    def _claimed_before(self, attempt: Attempt, kind: str, tokens: float, said_by: Any) -> tuple[float, Any]:
        """Note a limit that one refusal or answer claims; return the one before, and what claimed it (None: nothing)."""
        key = (kind, attempt.to.deployment, attempt.to.tenant)
        before = self._claims.pop(key, (0.0, None))
        self._claims[key] = tokens, said_by
        if len(self._claims) > MOST_DEPLOYMENTS:
            self._claims.popitem(last=False)
        return before

    async def _learn_of(self, attempt: Attempt, shown: Shown) -> None:
        if not shown:
            return
        to, known = attempt.to, self._kept(attempt.to.deployment).stats.observations
        for kind in [kind for kind, tenant in shown if kind in ("limit", "output_limit") and tenant == to.tenant]:
            limit, before = ProviderTokens(int(shown[kind, to.tenant].values[0])), known.get((kind, to.tenant))
            if before is None or int(before.values[0]) != limit:  # an observed deployment refuses again and again
                said = (to.deployment, kind, limit, to.window.tokens, to.request_id, to.policy.mode)
                emit(LimitEvent("limit_learned", *said))
        await self.learn(to.deployment, shown)

    async def learn(self, deployment: str, shown: Shown) -> None:
        """Add observations of a deployment; share with other workers those that change its statistics."""
        known, now = self._kept(deployment), time.time()
        known.stats = known.stats.merged(shown, now)
        news = {key: one for key, one in shown.items() if known.stats.observations.get(key) is one}
        if news and self._store.is_shared:
            if not known.unwritten:
                self._store.begun(self._write(deployment))
            known.unwritten.update(news)

    async def _write(self, deployment: str) -> None:
        """Write the observations that are gathered within WRITE_SECONDS."""
        known = self._kept(deployment)
        try:
            await asyncio.sleep(WRITE_SECONDS)
        finally:  # also if the loop ends
            gathered, known.unwritten = known.unwritten, {}
            key, change = KEY_PREFIX + deployment, partial(with_observations, gathered)
            with suppress(UnavailableError):  # then other workers learn it from their own traffic; the store warns
                await self._store.briefly(partial(self._store.change, key, change, LARGEST_BYTES, KEPT_SECONDS))

    async def _read(self, deployment: str) -> None:
        known = self._kept(deployment)
        known.read_at = time.monotonic()
        found = await self._store.read(KEY_PREFIX + deployment, LARGEST_BYTES)
        now = time.time()
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


async def with_observations(shown: Shown, value: bytes) -> bytes:
    """Return a value with more observations."""
    now = time.time()
    merged = observations(value, now).merged(shown, now).observations
    return _ROWS.dump_json([(kind, tenant, o.at, o.values) for (kind, tenant), o in merged.items()])


def held_by(tenant: str, value: bytes) -> int:
    """Return how many observations of a tenant a value has, valid or not."""
    return sum(whose == tenant for _, whose, *_ in _rows(value))


async def without_tenant(tenant: str, value: bytes) -> bytes:
    """Return a value without a tenant's observations, otherwise unchanged."""
    return _ROWS.dump_json([row for row in _rows(value) if row[1] != tenant]) if held_by(tenant, value) else value


def _rows(value: bytes) -> Rows:
    try:
        return _ROWS.validate_json(value)
    except ValidationError:
        return ()
