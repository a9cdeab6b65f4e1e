"""What the workers of a proxy keep: `ctx-hooks archive` has removed texts, `ctx-hooks limits` the deployments' statistics.

The archive is in folders or in the Redis that LiteLLM's workers share; the statistics are only there.
"""

import os
import sqlite3
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeAlias

import click
from redis.exceptions import RedisError

from ctx_hooks.addons.retrieval.archive import disk, redis
from ctx_hooks.attempts.learned import KEY_PREFIX, LARGEST_BYTES, observations
from ctx_hooks.cli.configuration import (
    Configuration,
    read_configuration,
    values_of,
)
from ctx_hooks.cli.terminal import CommandError, as_json, confirmed, counted, table, tell, working
from ctx_hooks.conversation.handles import HANDLE_CHARS, is_handle
from ctx_hooks.formats.fields import mapping_or_empty
from ctx_hooks.litellm_compat.call import key_id_of, tenant_digest
from ctx_hooks.litellm_compat.registry import REDIS
from ctx_hooks.policy.addon_settings import FOLDER_VARIABLE
from ctx_hooks.store.sealing import SECRET_VARIABLE, opened, secret_of_environment, tenant_key, tenant_name
from ctx_hooks.store.shared_store import READ, UnavailableError, delete_keys, keys_like

REDIS_FIELDS = ("url", "host", "port", "username", "password", "db", "ssl")
TIMEOUT_SECONDS = 5.0
ENVIRONMENT = "REDIS_"
"""LiteLLM reads each parameter of the client from a variable with this prefix."""
NOWHERE = (
    f"Neither the configuration nor the environment ({FOLDER_VARIABLE}, REDIS_URL, REDIS_HOST) names such a store. "
    "Without one only the proxy's processes have anything, until they end."
)
NOT_AVAILABLE = f"Not available: no such text of this owner, or none any more, or {SECRET_VARIABLE} is not the proxy's."
NOTHING = "Nothing was learned about such a deployment; `limits ls` lists all deployments."
Stores: TypeAlias = tuple[list[Path], Any]
"""The existing folders of archives, and a client of the proxy's Redis, None without one."""


@asynccontextmanager
async def opened_stores(config: Configuration, *, needs_redis: bool = False) -> AsyncIterator[Stores]:
    """Open the stores that a configuration or the environment names; raises CommandError if there is none, or it fails."""
    named = {str(archive.get("path") or "") for archive in archives_of(config) if archive.get("backend", "disk") == "disk"}
    folders = [Path(folder) for folder in sorted({*named, os.environ.get(FOLDER_VARIABLE, "")}) if folder]
    client = _client(redis_fields(config))
    if client is None and (needs_redis or not folders):
        raise CommandError(NOWHERE)
    try:
        yield [folder for folder in folders if (folder / disk.FILE).exists()], client
    except (sqlite3.Error, RedisError, UnavailableError, OSError) as error:
        stores = [*map(str, folders), *(["Redis"] if client else [])]
        raise CommandError(f"{' or '.join(stores)} cannot be used: {error}") from None
    finally:
        if client is not None:
            await client.aclose()


def _client(fields: Mapping[str, Any]) -> Any:
    """Return LiteLLM's client for the Redis of these fields or of the environment, None if neither names one."""
    if not fields and not any(name.startswith(ENVIRONMENT) for name in os.environ):
        return None
    with working("Loading LiteLLM"):  # which takes seconds
        make_client = REDIS.find()
    if make_client is None:
        raise CommandError(f"{REDIS.fault}: {REDIS.without}")
    try:
        return make_client(**{"socket_timeout": TIMEOUT_SECONDS, **fields})
    except ValueError as error:
        if "url" in fields:
            raise CommandError(f"The Redis of the configuration: {error}") from None
        return None  # neither host nor URL


def redis_fields(config: Configuration) -> dict[str, Any]:
    """Return a configuration's settings of the Router's Redis, else of LiteLLM's cache."""
    router = config.section("router_settings")
    cache = mapping_or_empty(config.section("litellm_settings").get("cache_params"))
    named = {field: router[f"redis_{field}"] for field in REDIS_FIELDS if router.get(f"redis_{field}") is not None}
    return named or {field: cache[field] for field in REDIS_FIELDS if cache.get(field) is not None}


def archives_of(config: Configuration) -> list[Mapping[str, Any]]:
    """Return the archive settings of each scope of a configuration."""
    return [v for path, v in values_of(config.raw) if path.endswith(".archive") and isinstance(v, Mapping)]


def owner_id(kind: str, identifier: str) -> str:
    """Return the id by which the stores know an owner: of a key its hash."""
    return key_id_of(identifier) if kind == "key" else identifier


async def print_kept(*, config: Path | None) -> None:
    """Print how much is kept of each tenant, and in which place; teams by name if the configuration has them."""
    read, secret = read_configuration(config), secret_of_environment()
    async with opened_stores(read) as (folders, client):
        found = [(str(folder), stored) for folder in folders for stored in disk.tenants(folder)]
        found += [("redis", stored) for stored in (await redis.tenants(client) if client else [])]
    names = {tenant_name(tenant_key("team", team, secret)): f"team {team}" for team in read.settings.teams}
    shown = table("tenant", "texts", "bytes", "place", right=(1, 2))
    shown.columns[0].no_wrap = True  # a digest is to be copied
    for place, stored in found:
        shown.add_row(names.get(stored.name, stored.name), f"{stored.texts:,}", f"{stored.size_bytes:,}", place)
    tell([{"place": place, **stored._asdict()} for place, stored in found], shown if found else "Nothing is kept.")


async def print_kept_text(*, handle: str, config: Path | None, **owner: str | None) -> None:
    """Print the text of a handle; raises CommandError if its owner has none."""
    if not is_handle(handle):
        raise CommandError(f"{handle!r:.60} is no handle: it has {HANDLE_CHARS} characters of a to z and 2 to 7")
    named = [(kind, identifier) for kind, identifier in owner.items() if identifier]
    if len(named) > 1:
        raise click.UsageError("Say one owner.")
    kind, identifier = named[0] if named else ("nobody", "")
    secret = secret_of_environment()
    tenant = tenant_key(kind, owner_id(kind, identifier), secret)
    async with opened_stores(read_configuration(config)) as (folders, client):
        values = [disk.read(folder, tenant_name(tenant), handle) for folder in folders]
        values += [await redis.read(client, tenant_name(tenant), handle)] if client else []
    texts = (opened(value, tenant, handle, secret) for value in values if value is not None)
    text = next((text for text in texts if text is not None), None)
    if text is None:
        raise CommandError(NOT_AVAILABLE)
    if as_json() or sys.stdout.isatty():
        tell({"handle": handle, "text": text}, text)
    else:
        click.echo(text.encode("utf-8", "replace"))


async def prune(*, config: Path | None) -> None:
    """Delete expired texts on disk, and print their number."""
    async with opened_stores(read_configuration(config)) as (folders, _):
        gone = sum(map(disk.prune, folders))
    tell({"deleted": gone}, f"{counted(gone, 'text')} deleted")


async def print_learned(*, deployment: str, config: Path | None) -> None:
    """Print what was learned of the deployments of a pattern, the newest first; known teams by their names."""
    read, now, found, lines = read_configuration(config), time.time(), [], []
    names = {tenant_digest("team", team): f"team {team}" for team in read.settings.teams}
    async with opened_stores(read, needs_redis=True) as (_, client):
        for key in await keys_like(client, f"{KEY_PREFIX}{deployment}"):
            stats = observations(await client.eval(READ, 1, key, LARGEST_BYTES, ""), now)
            rows: list[dict[str, Any]] = []
            lines.append(_deployment_of(key))
            for (kind, tenant), o in sorted(stats.observations.items(), key=lambda item: -item[1].at):
                rows.append({"kind": kind, "tenant": tenant, "values": o.values, "age_seconds": round(now - o.at, 3)})
                whose = names.get(tenant, tenant or "anyone")
                lines.append(f"  {kind:<14}{o.values[0]:>12,.10g}  {whose}, {(now - o.at) / 60:,.0f} minutes ago")
            found.append({"deployment": _deployment_of(key), "observations": rows})
    tell(found, "\n".join(lines) or NOTHING)


async def clear(*, deployment: str, config: Path | None, yes: bool) -> None:
    """Forget what was learned of the deployments of a pattern, if the user confirms, and print their names."""
    if yes or confirmed(f"Forget what was learned of {deployment}?"):
        async with opened_stores(read_configuration(config), needs_redis=True) as (_, client):
            keys = await keys_like(client, f"{KEY_PREFIX}{deployment}")
            await delete_keys(client, keys)
        cleared = list(map(_deployment_of, keys))
        tell({"cleared": cleared}, "\n".join(f"cleared {name}" for name in cleared) or NOTHING)


def _deployment_of(key: bytes) -> str:
    return key.decode("utf-8", "replace").split(KEY_PREFIX, 1)[1]
