"""`ctx-hooks limits ls | clear`: the statistics of each deployment, in the Redis that LiteLLM's workers share."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from statistics import median
from typing import Any

from ctx_hooks.cli.configuration import read_configuration
from ctx_hooks.cli.redis_client import opened_redis
from ctx_hooks.cli.terminal import CommandError, confirmed, print_json, print_text
from ctx_hooks.learning.redis_store import KEY_PREFIX, READ, observations
from ctx_hooks.learning.stats import DeploymentStats

WITHOUT_REDIS = (
    "No Redis is configured: name the proxy's configuration with --config, or set REDIS_URL, or REDIS_HOST and REDIS_PORT, "
    "as for the proxy. Without Redis each worker keeps its statistics in memory and loses them at a restart."
)
MOST_SHOWN = 2
"""Of an observation of more values than a line has room for, the median is shown."""


def print_learned(*, deployment: str, config: Path | None, as_json: bool) -> None:
    """Print what was learned of the deployments of a pattern, the newest first."""
    now = time.time()
    found = asyncio.run(_learned(config, deployment, now))
    if as_json:
        print_json([document(name, stats, now) for name, stats in found.items()])
    else:
        print_text("\n".join(line for name, s in found.items() for line in lines(name, s, now)) or "Nothing was learned.")


def clear(*, deployment: str, config: Path | None, yes: bool, as_json: bool) -> None:
    """Forget what was learned of the deployments of a pattern, if that is confirmed, and print which they are."""
    if not yes and not confirmed(f"Forget what was learned of {deployment}?"):
        return
    cleared = asyncio.run(_cleared(config, deployment))
    if as_json:
        print_json({"cleared": cleared})
    else:
        print_text("\n".join(f"cleared {name}" for name in cleared) or "Nothing was learned.")


def document(deployment: str, stats: DeploymentStats, now: float) -> dict[str, Any]:
    """Return the statistics of a deployment, the newest observation first."""
    newest_first = sorted(stats.observations.items(), key=lambda item: -item[1].at)
    observations = [
        {"kind": kind, "tenant": tenant, "values": o.values, "age_seconds": round(now - o.at, 3)}
        for (kind, tenant), o in newest_first
    ]
    return {"deployment": deployment, "observations": observations}


def lines(deployment: str, stats: DeploymentStats, now: float) -> list[str]:
    """Return the same, one observation a line."""
    return [deployment] + [
        f"  {o['kind']:16}{_values(o['values']):>20}  {o['tenant'] or 'anyone':18}{o['age_seconds'] / 60:8.0f} min ago"
        for o in document(deployment, stats, now)["observations"]
    ]


def _values(values: tuple[float, ...]) -> str:
    if len(values) <= MOST_SHOWN:
        return " ".join(f"{value:,.10g}" for value in values)
    return f"{median(values):,.4g} of {len(values)}"


async def _learned(config: Path | None, deployment: str, now: float) -> dict[str, DeploymentStats]:
    async with opened_redis(read_configuration(config) if config else None) as client:
        return {_name(k): observations(await client.eval(READ, 1, k), now) for k in await _keys(client, deployment)}


async def _cleared(config: Path | None, deployment: str) -> list[str]:
    async with opened_redis(read_configuration(config) if config else None) as client:
        keys = await _keys(client, deployment)
        for key in keys:
            await client.delete(key)
    return [_name(key) for key in keys]


async def _keys(client: Any, deployment: str) -> list[str]:
    """Return the keys of the deployments of a pattern; raises CommandError if no Redis is configured."""
    if client is None:
        raise CommandError(WITHOUT_REDIS)
    found = client.scan_iter(match=f"*{KEY_PREFIX}{deployment}")  # may yield a key twice
    return sorted({key.decode("utf-8", "replace") async for key in found})


def _name(key: str) -> str:
    return key.split(KEY_PREFIX, 1)[1]
