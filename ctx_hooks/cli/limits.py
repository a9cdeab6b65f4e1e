"""`ctx-hooks limits ls | clear`: the statistics of each deployment, in the Redis that LiteLLM's workers share."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

from redis.exceptions import RedisError

from ctx_hooks.cli.configuration import read_configuration
from ctx_hooks.cli.redis_client import redis_client
from ctx_hooks.cli.terminal import CommandError, print_json, print_text
from ctx_hooks.learning.redis_store import KEY_PREFIX, READ, observations
from ctx_hooks.learning.stats import DeploymentStats

T = TypeVar("T")
WITHOUT_REDIS = (
    "No Redis is configured: name the proxy's configuration with --config, or set REDIS_URL, or REDIS_HOST and REDIS_PORT, "
    "as for the proxy. Without Redis each worker keeps its statistics in memory and loses them at a restart."
)
MOST_SHOWN = 2
"""Of an observation of more values than a line has room for, the median is shown."""


def print_learned(*, deployment: str, config: Path | None, as_json: bool) -> None:
    """Print what was learned of the deployments of a pattern, the newest first."""
    now = time.time()

    async def read(client: Any) -> dict[str, DeploymentStats]:
        return {_name(k): observations(await client.eval(READ, 1, k), now) for k in await _keys(client, deployment)}

    found = _with_redis(config, read)
    if as_json:
        print_json([_document(name, stats, now) for name, stats in found.items()])
    else:
        print_text("\n".join(line for name, s in found.items() for line in lines(name, s, now)) or "Nothing was learned.")


def clear(*, deployment: str, config: Path | None, as_json: bool) -> None:
    """Forget what was learned of the deployments of a pattern, and print which they are."""

    async def delete(client: Any) -> list[str]:
        keys = await _keys(client, deployment)
        for key in keys:
            await client.delete(key)
        return [_name(key) for key in keys]

    cleared = _with_redis(config, delete)
    if as_json:
        print_json({"cleared": cleared})
    else:
        print_text("\n".join(f"cleared {name}" for name in cleared) or "Nothing was learned.")


def lines(deployment: str, stats: DeploymentStats, now: float) -> list[str]:
    """Return the statistics of a deployment, one observation a line, the newest first."""
    found = sorted(stats.observations.items(), key=lambda item: -item[1].at)
    return [deployment] + [
        f"  {kind:16}{_values(o.values):>20}  {tenant or 'anyone':18}{(now - o.at) / 60:8.0f} min ago"
        for (kind, tenant), o in found
    ]


def _values(values: tuple[float, ...]) -> str:
    if len(values) <= MOST_SHOWN:
        return " ".join(f"{value:,.10g}" for value in values)
    return f"{median(values):,.4g} of {len(values)}"


def _document(deployment: str, stats: DeploymentStats, now: float) -> dict[str, Any]:
    return {
        "deployment": deployment,
        "observations": [
            {"kind": kind, "tenant": tenant, "values": o.values, "age_seconds": round(now - o.at, 3)}
            for (kind, tenant), o in sorted(stats.observations.items(), key=lambda item: -item[1].at)
        ],
    }


def _with_redis(path: Path | None, act: Callable[[Any], Awaitable[T]]) -> T:
    """Return what an action finds in the Redis that the proxy's workers share.

    Raises:
        CommandError: None is configured, or it cannot be reached.
    """
    client = redis_client(read_configuration(path) if path else None)
    if client is None:
        raise CommandError(WITHOUT_REDIS)

    async def run() -> T:
        try:
            return await act(client)
        finally:
            await client.aclose()

    try:
        return asyncio.run(run())
    except (OSError, RedisError) as error:
        raise CommandError(f"Redis cannot be reached: {error}") from None


async def _keys(client: Any, deployment: str) -> list[str]:
    found = client.scan_iter(match=f"*{KEY_PREFIX}{deployment}")  # may yield a key twice
    return sorted({key.decode("utf-8", "replace") async for key in found})


def _name(key: str) -> str:
    return key.split(KEY_PREFIX, 1)[1]
