"""How many workers a number of developers needs, from measured figures and stated assumptions: pure."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping

DEVELOPERS = (200, 5_000, 100_000)
WORKERS_A_POD = 4
"""A pod of four cores runs four workers: a worker is one Python process, and uses little more than one core."""


@dataclass(frozen=True, slots=True)
class Assumptions:
    """What is not measured.

    Attributes:
        active_fraction: of the developers, who have an agent at work in the busiest minute.
        requests_a_minute: of an agent at work, which waits for its model and its tools in between.
        sessions_each: live sessions of an active developer, sub-agents counted.
        share_of_size: of the requests, by the sizes that were measured.
        used_fraction: of a core in the busiest minute, so that a pod may fail and a burst may come.
    """

    active_fraction: float = 0.3
    requests_a_minute: float = 6.0
    sessions_each: float = 2.0
    share_of_size: tuple[tuple[str, float], ...] = (("4 KB", 0.3), ("64 KB", 0.4), ("600 KB", 0.3))
    used_fraction: float = 0.6


@dataclass(frozen=True, slots=True)
class Measured:
    """What the soak has measured, of one plane.

    Attributes:
        processor_seconds: of a request, by its size, whose session the worker has seen before.
        first_seconds: the same of a session that the worker has not seen.
        worker_bytes: of a worker beside the caches of sessions.
        session_bytes: of the caches, for one live session; 0 without the plugin.
        most_cache_bytes: `cache_bytes`.
        redis_seconds: of a Redis' processor, a request.
        redis_bytes: of the plugin's keys for one deployment, whose tenants are at most 64.
    """

    processor_seconds: Mapping[str, float]
    first_seconds: Mapping[str, float]
    worker_bytes: float
    session_bytes: float
    most_cache_bytes: float
    redis_seconds: float
    redis_bytes: float


@dataclass(frozen=True, slots=True)
class Needed:
    """What so many developers need."""

    requests_a_second: float
    workers: int
    pods: int
    worker_bytes: float
    redis_servers: int
    redis_bytes: float


def mean_seconds(seconds: Mapping[str, float], assumed: Assumptions) -> float:
    """Return the processor seconds of the mean request."""
    return sum(share * seconds[size] for size, share in assumed.share_of_size)


def needed(developers: int, measured: Measured, assumed: Assumptions, *, by_session: bool, deployments: int = 20) -> Needed:
    """Return what so many developers need of a plane as it was measured; two pods at least, so that one may fail.

    Args:
        developers: who may use the gateway.
        measured: of one plane.
        assumed: the rest.
        by_session: whether all requests of a session go to one worker. Where they do not, each worker is new to
            a session as often as there are workers, and keeps something of every session.
        deployments: that have statistics in Redis.
    """
    requests = developers * assumed.active_fraction * assumed.requests_a_minute / 60
    live = developers * assumed.active_fraction * assumed.sessions_each
    known, new = (mean_seconds(seconds, assumed) for seconds in (measured.processor_seconds, measured.first_seconds))
    pods, before = 2, 0
    while pods != before:
        workers = pods * WORKERS_A_POD
        held = live * measured.session_bytes / (workers if by_session else 1)
        new_share = 0.0 if by_session else max(1 - 1 / workers, 1 - measured.most_cache_bytes / max(1.0, held))
        seconds = known + new_share * (new - known) if measured.session_bytes else known
        before, pods = pods, max(pods, ceil(requests * seconds / assumed.used_fraction / WORKERS_A_POD))
    servers = max(1, ceil(requests * measured.redis_seconds / assumed.used_fraction))
    cached = min(held, measured.most_cache_bytes)
    return Needed(requests, workers, pods, measured.worker_bytes + cached, servers, measured.redis_bytes * deployments)


def of_results(results: Mapping[str, Any], plane: str) -> Measured:
    """Return what a soak's results say of a plane."""
    own = plane == "with"
    by_size = results["by_size"]
    return Measured(
        {size: row[plane]["processor_ms"] / 1e3 for size, row in by_size.items()},
        {size: row[plane]["first_processor_ms"] / 1e3 for size, row in by_size.items()},
        results["started_mb"][plane] * 1e6,
        sum(results["session_bytes"][size] * share for size, share in Assumptions().share_of_size) if own else 0.0,
        results["cache_bytes"] if own else 0.0,
        max(0.0, results["quiet"][plane]["redis_ms"] - results["quiet"]["without"]["redis_ms"])
        / 1e3,  # not what an idle one uses
        results["redis"]["bytes_a_deployment"] if own else 0.0,
    )
