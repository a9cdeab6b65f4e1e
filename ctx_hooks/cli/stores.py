"""The stores of a proxy as commands open them: the archive's folders, and the Redis that its workers share."""

import os
import sqlite3
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from redis.exceptions import RedisError

from ctx_hooks.addons.retrieval.archive import disk
from ctx_hooks.cli.configuration import Configuration, values_of
from ctx_hooks.cli.terminal import CommandError, working
from ctx_hooks.litellm_compat.registry import REDIS
from ctx_hooks.policy.addon_settings import FOLDER_VARIABLE
from ctx_hooks.store.shared_store import UnavailableError

REDIS_FIELDS = ("url", "host", "port", "username", "password", "db", "ssl")
ENVIRONMENT = "REDIS_"
"""LiteLLM reads each parameter of the client from a variable with this prefix."""
NOWHERE = (
    f"Neither the configuration nor the environment ({FOLDER_VARIABLE}, REDIS_URL, REDIS_HOST) names a Redis or an archive "
    "on disk. Then only the proxy's processes have anything, until they end."
)


@dataclass(frozen=True, slots=True)
class Stores:
    """The existing folders of archives, and a client of the proxy's Redis, None without one."""

    folders: tuple[Path, ...]
    redis: Any


@asynccontextmanager
async def opened_stores(config: Configuration, needs_redis: str = "") -> AsyncIterator[Stores]:
    """Open the stores that a configuration or the environment names.

    Raises CommandError if none is named, or one cannot be used; with `needs_redis` as its text if no Redis is named.
    """
    named = {str(archive.get("path") or "") for archive in archives_of(config) if archive.get("backend", "disk") == "disk"}
    folders = [Path(folder) for folder in sorted({*named, os.environ.get(FOLDER_VARIABLE, "")}) if folder]
    client = _client(redis_fields(config))
    if client is None and (needs_redis or not folders):
        raise CommandError(needs_redis or NOWHERE)
    try:
        kept = [folder for folder in folders if (folder / disk.FILE).exists() or (folder / disk.BROKEN).exists()]
        yield Stores(tuple(kept), client)
    except sqlite3.Error as error:
        raise CommandError(f"The file in {', '.join(map(str, folders))} cannot be used: {error}") from None
    except (RedisError, UnavailableError, ConnectionError, TimeoutError) as error:
        raise CommandError(f"Redis cannot be reached: {error}") from None
    except OSError as error:
        raise CommandError(f"A folder cannot be used: {error}") from None
    finally:
        if client is not None:
            await client.aclose()


def _client(fields: Mapping[str, Any]) -> Any:
    if not fields and not any(name.startswith(ENVIRONMENT) for name in os.environ):
        return None
    with working("Loading LiteLLM"):  # which takes seconds
        make_client = REDIS.find()
    if make_client is None:
        raise CommandError(f"{REDIS.fault}: {REDIS.without}")
    try:
        return make_client(**fields)
    except ValueError as error:
        if "url" not in fields:  # neither host nor URL
            return None
        raise CommandError(f"The Redis of the configuration: {error}") from None


def redis_fields(config: Configuration) -> dict[str, Any]:
    """Return a configuration's settings of the Router's Redis, else of LiteLLM's cache."""
    router, cache = config.section("router_settings"), config.section("litellm_settings").get("cache_params")
    named = {field: router.get(f"redis_{field}") for field in REDIS_FIELDS}
    said = {field: cache.get(field) for field in REDIS_FIELDS} if isinstance(cache, dict) else {}
    found = ({field: value for field, value in each.items() if value is not None} for each in (named, said))
    return next(filter(None, found), {})


def archives_of(config: Configuration) -> list[Mapping[str, Any]]:
    """Return the archive settings of each scope of a configuration."""
    return [v for path, v in values_of(config.raw) if path.endswith(".archive") and isinstance(v, Mapping)]


def owner_id(kind: str, identifier: str) -> str:
    """Return the id by which the stores know an owner: of a key its hash."""
    if kind != "key":
        return identifier
    from ctx_hooks.litellm_compat.identity import key_id_of  # noqa: PLC0415 - LiteLLM takes seconds to load

    return key_id_of(identifier)
