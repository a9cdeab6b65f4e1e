"""Statistics in LiteLLM's Redis: one value a deployment, into which each worker merges what it has seen.

A worker whose figures are old erases nothing, since it merges by the rule of `DeploymentStats`. Whoever has the Redis can
write anything there, so what comes back is checked by size, type and range.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from uuid import uuid4

from pydantic import TypeAdapter, ValidationError

from ctx_hooks.learning.stats import KINDS, DeploymentStats, Key, Observation, valid

KEY_PREFIX = "ctx_hooks:statistics:"
KEPT_SECONDS = 7 * 24 * 3600
LARGEST_BYTES = 250_000
"""Fourteen kinds of 64 tenants are 76 KB (measured), which are read in 1 ms."""
REFUSAL_CHARS = 32
"""A value begins with a name of the newest refusal: a worker that knows that refusal has nothing to read."""
NO_REFUSAL = "0" * REFUSAL_CHARS
SHOWN_BY_REFUSALS = frozenset({"limit", "own_limit", "refused", "output_limit", "holds_output"})

_ROWS = TypeAdapter(Sequence[tuple[str, str, float, tuple[float, ...]]])
"""Kind, tenant, time and figures of each observation."""


def observations(value: bytes, now: float) -> DeploymentStats:
    """Return what a value has, without whatever is no observation or too old."""
    try:
        rows = _ROWS.validate_json(value[REFUSAL_CHARS:])
    except ValidationError:
        return DeploymentStats()
    found: dict[Key, Observation] = {(k, tenant): Observation(v, at) for k, tenant, at, v in rows if k in KINDS}
    return DeploymentStats({key: o for key, o in found.items() if valid(key[0], o, now)})


def refusal_of(value: bytes) -> str:
    """Return the name of the newest refusal."""
    name = value[:REFUSAL_CHARS].decode("ascii", "replace")
    return name if len(name) == REFUSAL_CHARS and name.isalnum() else NO_REFUSAL


def shows_refusal(shown: Mapping[Key, Observation]) -> bool:
    """Return whether a refusal has shown any of some observations: other workers' next requests have to know those."""
    return any(kind in SHOWN_BY_REFUSALS for kind, _ in shown)


async def with_observations(shown: Mapping[Key, Observation], value: bytes) -> bytes:
    """Return a value with more observations."""
    now = time.time()
    refusal = uuid4().hex if shows_refusal(shown) else refusal_of(value)
    return _value(refusal, observations(value, now).merged(shown, now))


def held_by(tenant: str, value: bytes) -> int:
    """Return how many observations of a tenant a value has."""
    return sum(whose == tenant for _, whose in observations(value, time.time()).observations)


async def without_tenant(tenant: str, value: bytes) -> bytes:
    """Return a value without what was shown to a tenant."""
    known = observations(value, time.time()).observations
    return _value(refusal_of(value), DeploymentStats({key: o for key, o in known.items() if key[1] != tenant}))


def _value(refusal: str, stats: DeploymentStats) -> bytes:
    rows = [(kind, tenant, o.at, o.values) for (kind, tenant), o in stats.observations.items()]
    return refusal.encode() + _ROWS.dump_json(rows)
