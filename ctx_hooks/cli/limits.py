"""`ctx-hooks limits ls | clear`: the statistics of each deployment, in the Redis that LiteLLM's workers share."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import click

from ctx_hooks.learning import redis_store
from ctx_hooks.learning.stats import DeploymentStats

WITHOUT_REDIS = (
    "No Redis is configured: set REDIS_URL, or REDIS_HOST and REDIS_PORT, as for the proxy. Without Redis each worker keeps "
    "its statistics in memory and loses them at a restart."
)


@click.command()
@click.argument("action", type=click.Choice(["ls", "clear"]))
@click.argument("deployment", required=False)
def command(action: str, deployment: str | None) -> int:
    """Print or clear what was learned of each deployment, or of one: a name as `ls` has it, or a pattern with *."""
    return run(action, deployment)


def run(action: str, deployment: str | None) -> int:
    """Print or clear the figures of every deployment, or of one; return 1 when no Redis can be reached, else 0."""
    from litellm._redis import get_redis_async_client  # noqa: PLC0415 - slow to load, and for this command alone
    from redis.exceptions import RedisError  # noqa: PLC0415

    try:
        client = get_redis_async_client()
    except ValueError:
        print(WITHOUT_REDIS)
        return 1
    try:
        return asyncio.run(_run(client, action, deployment))
    except (OSError, RedisError) as error:
        print(f"Redis cannot be reached: {error}")
        return 1


async def _run(client: Any, action: str, deployment: str | None) -> int:
    try:
        pattern = f"*{redis_store.KEY_PREFIX}{deployment or '*'}"
        keys = sorted([key.decode("utf-8", "replace") async for key in client.scan_iter(match=pattern)])
        for key in keys:
            if action == "clear":
                await client.delete(key)
                print(f"cleared {_name(key)}")
            else:
                fields = await client.eval(redis_store.READ, 1, key)
                print("\n".join(lines(_name(key), redis_store.observations(fields, time.time()), time.time())))
        if not keys:
            print("Nothing was learned.")
    finally:
        await client.aclose()
    return 0


def lines(deployment: str, stats: DeploymentStats, now: float) -> list[str]:
    """Return the statistics of a deployment, one observation a line, the newest first."""
    found = sorted(stats.observations.items(), key=lambda item: -item[1].at)
    return [deployment] + [
        f"  {kind:16}{' '.join(f'{v:,.10g}' for v in o.values):>12}  {tenant or 'anyone':18}{(now - o.at) / 60:8.0f} min ago"
        for (kind, tenant), o in found
    ]


def _name(key: str) -> str:
    return key.split(redis_store.KEY_PREFIX, 1)[1]
