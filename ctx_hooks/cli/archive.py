"""`ctx-hooks archive ls | show | prune`: removed texts that are kept on disk and in Redis, by tenant."""

import asyncio
import os
import sqlite3
import sys
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import click

from ctx_hooks.addons.retrieval.archive import Stored, disk, redis
from ctx_hooks.cli.configuration import Configuration, configuration_without_mistakes, teams_by_digest, values_of
from ctx_hooks.cli.redis_client import opened_redis
from ctx_hooks.cli.terminal import CommandError, as_json, counted, table, tell
from ctx_hooks.conversation.cut_texts import HANDLE_CHARS, is_handle
from ctx_hooks.policy.addon_settings import FOLDER_VARIABLE
from ctx_hooks.store.sealing import SECRET_VARIABLE, opened, secret_of_environment, tenant_key, tenant_name

NOWHERE = (
    f"Neither the configuration nor the environment ({FOLDER_VARIABLE}, REDIS_HOST) names a Redis or an archive on disk. "
    "Then only the memory of the proxy's processes has anything: it ends with them."
)
NOT_AVAILABLE = f"Not available: no such text of this owner, or none any more, or {SECRET_VARIABLE} is not the proxy's."
HOUR_SECONDS = 3_600


@dataclass(frozen=True, slots=True)
class Places:
    """Places of kept texts: folders on disk, and a client of the proxy's Redis if one is configured."""

    folders: tuple[Path, ...]
    redis: Any


def print_kept(*, config: Path | None) -> None:
    """Print how much is kept of each tenant, and in which place; teams by name if the configuration has them."""
    read = configuration_without_mistakes(config)
    found, now = asyncio.run(_kept(read)), time.time()
    secret = secret_of_environment()
    names = teams_by_digest(read, lambda team: tenant_name(tenant_key("team", team, secret)))
    shown = table("tenant", "texts", "bytes", "hours left", "place", right=(1, 2, 3))
    shown.columns[0].no_wrap = True  # a digest is to be copied
    for place, stored in found:
        left = [(at - now) / HOUR_SECONDS for at in (stored.first_expires_at, stored.last_expires_at)]
        size = (f"{stored.texts:,}", f"{stored.size_bytes:,}", f"{left[0]:,.1f} to {left[1]:,.1f}")
        shown.add_row(names.get(stored.name, stored.name), *size, place)
    tell([{"place": place, **asdict(stored)} for place, stored in found], shown if found else "Nothing is kept.")


async def _kept(config: Configuration) -> list[tuple[str, Stored]]:
    async with open_places(config) as places:
        found = [(str(folder), stored) for folder in places.folders for stored in disk.tenants(folder)]
        return found + [("redis", stored) for stored in (await redis.tenants(places.redis) if places.redis else [])]


def print_kept_text(*, handle: str, config: Path | None, **owner: str | None) -> None:
    """Print the text of a handle; raises CommandError if its owner has none."""
    if not is_handle(handle):
        raise CommandError(f"{handle!r:.60} is no handle: it has {HANDLE_CHARS} characters of a to z and 2 to 7")
    kind, identifier = _named(owner)
    secret = secret_of_environment()
    tenant = tenant_key(kind, identifier, secret)
    values = asyncio.run(_values(config, tenant_name(tenant), handle))
    texts = (opened(value, tenant, handle, secret) for value in values if value is not None)
    text = next((text for text in texts if text is not None), None)
    if text is None:
        raise CommandError(NOT_AVAILABLE)
    if as_json() or sys.stdout.isatty():
        tell({"handle": handle, "text": text}, text)
    else:
        click.echo(text.encode("utf-8", "replace"))


async def _values(config: Path | None, tenant: str, handle: str) -> list[bytes | None]:
    async with open_places(configuration_without_mistakes(config)) as places:
        values = [disk.read(folder, tenant, [handle]).get(handle) for folder in places.folders]
        return values + ([await redis.read(places.redis, tenant, handle)] if places.redis is not None else [])


def prune(*, config: Path | None) -> None:
    """Delete expired texts on disk, and print their number."""
    gone = asyncio.run(_pruned(config))
    tell({"deleted": gone}, f"{counted(gone, 'text')} deleted")


async def _pruned(config: Path | None) -> int:
    async with open_places(configuration_without_mistakes(config)) as places:
        return sum(map(disk.prune, places.folders))


def archives_of(config: Configuration) -> list[Mapping[str, Any]]:
    """Return the archive settings of each scope of a configuration."""
    return [v for path, v in values_of(config.raw) if path.endswith(".archive") and isinstance(v, Mapping)]


@asynccontextmanager
async def open_places(config: Configuration) -> AsyncIterator[Places]:
    """Open the places where something is kept.

    Raises:
        CommandError: no place is known, or one cannot be reached or used.
    """
    named = {str(archive.get("path") or "") for archive in archives_of(config) if archive.get("backend", "disk") == "disk"}
    folders = [Path(folder) for folder in sorted({*named, os.environ.get(FOLDER_VARIABLE, "")}) if folder]
    async with opened_redis(config) as client:
        if not folders and client is None:
            raise CommandError(NOWHERE)
        try:
            kept = [folder for folder in folders if (folder / disk.FILE).exists() or (folder / disk.BROKEN).exists()]
            yield Places(tuple(kept), client)  # none is made here
        except sqlite3.Error as error:
            raise CommandError(f"The file in {', '.join(map(str, folders))} cannot be used: {error}") from None
        except OSError as error:  # caught here, so that it is not taken for an error of Redis
            raise CommandError(f"A folder cannot be used: {error}") from None


def _named(owner: Mapping[str, str | None]) -> tuple[str, str]:
    """Return the kind and the identifier of the named owner; of "nobody" if none is named.

    Raises:
        UsageError: There are two.

    """
    named = [(kind, identifier) for kind, identifier in owner.items() if identifier]
    if len(named) > 1:
        raise click.UsageError(f"Say one owner, not {' and '.join(f'--{kind}' for kind, _ in named)}.")
    kind, identifier = named[0] if named else ("nobody", "")
    if kind != "key":
        return kind, identifier
    from ctx_hooks.litellm_compat.identity import key_id_of  # noqa: PLC0415 - LiteLLM takes seconds to load

    return kind, key_id_of(identifier)
