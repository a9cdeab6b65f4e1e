"""`ctx-hooks limits ls | clear`: the statistics of each deployment, in the Redis that LiteLLM's workers share."""

import asyncio
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from rich.console import Group

from ctx_hooks.cli.configuration import Configuration, configuration_of, read_configuration
from ctx_hooks.cli.stores import opened_stores
from ctx_hooks.cli.terminal import confirmed, table, tell, titled
from ctx_hooks.learning.learned import KEY_PREFIX, LARGEST_BYTES, observations
from ctx_hooks.learning.observations import DeploymentStats
from ctx_hooks.litellm_compat.call import tenant_digest
from ctx_hooks.store.shared_store import READ, delete_keys, keys_like

WITHOUT_REDIS = (
    "Neither --config nor the environment (REDIS_URL, or REDIS_HOST and REDIS_PORT) names a Redis. "
    "Without one each worker keeps its statistics in memory and loses them at a restart."
)
NOTHING = "Nothing was learned about such a deployment; `limits ls` lists all deployments."


def print_learned(*, deployment: str, config: Path | None) -> None:
    """Print what was learned of the deployments of a pattern, the newest first; known teams by their names."""
    now, read = time.time(), _read(config)
    found = asyncio.run(_learned(read, deployment, now))
    names = {tenant_digest("team", team): f"team {team}" for team in read.settings.teams}
    shown = tables_of(found, names, now) if found else NOTHING
    tell([document(name, stats, now) for name, stats in found.items()], shown)


def clear(*, deployment: str, config: Path | None, yes: bool) -> None:
    """Forget what was learned of the deployments of a pattern, if the user confirms, and print their names."""
    if not yes and not confirmed(f"Forget what was learned of {deployment}?"):
        return
    cleared = asyncio.run(_cleared(_read(config), deployment))
    tell({"cleared": cleared}, "\n".join(f"cleared {name}" for name in cleared) or NOTHING)


def _read(config: Path | None) -> Configuration:
    return read_configuration(config) if config else configuration_of({})


def document(deployment: str, stats: DeploymentStats, now: float) -> dict[str, Any]:
    """Return the statistics of a deployment, the newest observation first."""
    newest_first = sorted(stats.observations.items(), key=lambda item: -item[1].at)
    observations = [
        {"kind": kind, "tenant": tenant, "values": o.values, "age_seconds": round(now - o.at, 3)}
        for (kind, tenant), o in newest_first
    ]
    return {"deployment": deployment, "observations": observations}


def tables_of(found: Mapping[str, DeploymentStats], names: Mapping[str, str], now: float) -> Group:
    """Return a table for each deployment, one observation a row; `names` are of tenants, by their digest."""
    tables = {name: table("learned", "value", "tenant", "minutes ago", right=(1, 3)) for name in found}
    for name, shown in tables.items():
        for o in document(name, found[name], now)["observations"]:
            tenant = names.get(o["tenant"], o["tenant"] or "anyone")
            shown.add_row(o["kind"], f"{o['values'][0]:,.10g}", tenant, f"{o['age_seconds'] / 60:,.0f}")
    return titled(tables)


async def _learned(config: Configuration, deployment: str, now: float) -> dict[str, DeploymentStats]:
    async with _keys(config, deployment) as (client, keys):
        return {_name(k): observations(await client.eval(READ, 1, k, LARGEST_BYTES, ""), now) for k in keys}


async def _cleared(config: Configuration, deployment: str) -> list[str]:
    async with _keys(config, deployment) as (client, keys):
        await delete_keys(client, keys)
        return list(map(_name, keys))


@asynccontextmanager
async def _keys(config: Configuration, deployment: str) -> AsyncIterator[tuple[Any, list[bytes]]]:
    """Open the Redis, which has to be configured; yield its client, and the keys of the deployments of a pattern."""
    async with opened_stores(config, needs_redis=WITHOUT_REDIS) as stores:
        yield stores.redis, await keys_like(stores.redis, f"{KEY_PREFIX}{deployment}")


def _name(key: bytes) -> str:
    return key.decode("utf-8", "replace").split(KEY_PREFIX, 1)[1]
