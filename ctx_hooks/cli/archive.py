"""`ctx-hooks archive ls | show | prune | delete`: the cut texts that are kept on disk and in Redis, by tenant."""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sqlite3
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from ctx_hooks.archive import disk, redis_operator
from ctx_hooks.archive.sealing import opened
from ctx_hooks.archive.store import Stored
from ctx_hooks.archive.tenant_key import SECRET_VARIABLE, secret_of_environment, tenant_key, tenant_name
from ctx_hooks.cli.check import models_of, settings_of
from ctx_hooks.conversation.handles import HANDLE_CHARS, is_handle
from ctx_hooks.policy.archive_settings import FOLDER_VARIABLE, ArchiveSettings

NOWHERE = (
    f"No place is known where texts are kept: name the proxy's configuration with --config, or set {FOLDER_VARIABLE}, or "
    "REDIS_HOST as for the proxy. What is kept in memory is in the proxy's processes alone and ends with them."
)
NOT_AVAILABLE = f"Not available: no such text of this owner, or none any more, or {SECRET_VARIABLE} is not the proxy's."
OWNERS = ("team", "key", "organization", "user")
REDIS_FIELDS = ("url", "host", "port", "username", "password", "db", "ssl")
HOUR_SECONDS = 3_600


@dataclass(frozen=True, slots=True)
class Places:
    """Where texts may be kept: folders on disk, and a client of the proxy's Redis where one is configured."""

    folders: tuple[Path, ...]
    redis: Any


def add_arguments(commands: Any) -> None:
    """Add the command and its actions to the commands of a parser."""
    archive = commands.add_parser("archive", help="the cut texts that are kept on disk and in Redis, by tenant")
    actions = archive.add_subparsers(dest="action", required=True)
    listed = actions.add_parser("ls", help="how much is kept of each tenant; with an owner its texts")
    shown = actions.add_parser("show", help="print a text; without an owner one that came without a key")
    shown.add_argument("handle", type=_handle, help="as a placeholder has it")
    pruned = actions.add_parser("prune", help="delete what has expired; Redis does that by itself")
    deleted = actions.add_parser("delete", help="delete all texts of an owner")
    for parser in (listed, shown, pruned, deleted):
        parser.add_argument("--config", type=Path, help="the proxy configuration: its folders and its Redis")
        parser.add_argument("--json", action="store_true", help="print JSON")
    for parser in (listed, shown, deleted):
        owners = parser.add_mutually_exclusive_group(required=parser is deleted)
        owners.add_argument("--team", help="team id")
        owners.add_argument("--key", help="virtual key, or its hash")
        owners.add_argument("--organization", help="organization id")
        owners.add_argument("--user", help="user id, of requests without a key")
        if parser is not shown:
            owners.add_argument("--tenant", help="a tenant as `ls` names it")


def run(arguments: argparse.Namespace) -> int:
    """Print what is kept or was deleted; return 1 where there is no such text or a place cannot be reached, else 0."""
    from redis.exceptions import RedisError  # noqa: PLC0415 - slow to load, and for this command alone

    config, wrong = _configuration(arguments.config)
    if wrong:
        print("\n".join(wrong))
        return 1
    places = _places(config)
    if not places.folders and places.redis is None:
        print(NOWHERE)
        return 1
    written = tuple(folder for folder in places.folders if (folder / disk.FILE).exists())  # none is made here
    try:
        return asyncio.run(_run(arguments, replace(places, folders=written)))
    except sqlite3.Error as error:
        print(f"The file in {', '.join(map(str, places.folders))} cannot be used: {error}")
    except (OSError, RedisError) as error:
        print(f"A place cannot be reached: {error}")
    return 1


async def _run(arguments: argparse.Namespace, places: Places) -> int:
    try:
        if arguments.action == "show":
            return await _show(arguments, places)
        if arguments.action == "ls":
            return await _list(arguments, places)
        if arguments.action == "delete":
            tenant = _tenant(arguments)
            gone = [disk.delete(folder, tenant) for folder in places.folders]
            gone += [await redis_operator.delete(places.redis, tenant)] if places.redis is not None else []
        else:
            gone = [disk.prune(folder) for folder in places.folders]
        print(json.dumps({"deleted": sum(gone)}) if arguments.json else f"{sum(gone):,} texts deleted")
        return 0
    finally:
        if places.redis is not None:
            await places.redis.aclose()


async def _show(arguments: argparse.Namespace, places: Places) -> int:
    secret, handle = secret_of_environment(), arguments.handle
    tenant = tenant_key(*_owner(arguments), secret)
    values = [disk.read(folder, tenant_name(tenant), handle) for folder in places.folders]
    values += [await redis_operator.read(places.redis, tenant_name(tenant), handle)] if places.redis is not None else []
    texts = (opened(value, tenant, handle, secret) for value in values if value is not None)
    text = next((text for text in texts if text is not None), None)
    if text is None:
        print(NOT_AVAILABLE, file=sys.stderr)
        return 1
    print(json.dumps({"handle": handle, "text": text}) if arguments.json else text.encode("utf-8", "replace").decode())
    return 0


async def _list(arguments: argparse.Namespace, places: Places) -> int:
    tenant = _tenant(arguments)
    found = {str(folder): disk.texts(folder, tenant) if tenant else disk.tenants(folder) for folder in places.folders}
    if places.redis is not None:
        listing = redis_operator.texts(places.redis, tenant) if tenant else redis_operator.tenants(places.redis)
        found["redis"] = await listing
    if arguments.json:
        print(json.dumps([{"place": place, **asdict(stored)} for place, listed in found.items() for stored in listed]))
    else:
        print("\n".join(lines(found, time.time())) or "Nothing is kept.")
    return 0


def lines(found: Mapping[str, list[Stored]], now: float) -> list[str]:
    """Return what is stored, one tenant or text a line, below the place where it is."""
    told = []
    for place, listed in found.items():
        told += [place] if listed else []
        for stored in listed:
            hours = [(at - now) / HOUR_SECONDS for at in (stored.first_expires_at, stored.last_expires_at)]
            ends = f"{hours[0]:,.1f}" if stored.texts == 1 else f"{hours[0]:,.1f} to {hours[1]:,.1f}"
            told.append(f"  {stored.name:34}{stored.texts:8,} texts{stored.size_bytes:16,} bytes  for {ends} hours")
    return told


def _owner(arguments: argparse.Namespace) -> tuple[str, str]:
    from ctx_hooks.litellm_compat import key_id_of  # noqa: PLC0415 - LiteLLM takes seconds to load

    if arguments.key:
        return "key", key_id_of(arguments.key)
    return next(((kind, getattr(arguments, kind)) for kind in OWNERS if getattr(arguments, kind)), ("nobody", ""))


def _tenant(arguments: argparse.Namespace) -> str:
    """Return the name of the tenant that the arguments say, "" where they say none."""
    if arguments.tenant or not any(getattr(arguments, kind) for kind in OWNERS):
        return str(arguments.tenant or "")
    return tenant_name(tenant_key(*_owner(arguments), secret_of_environment()))


def _handle(text: str) -> str:
    if not is_handle(text):
        raise argparse.ArgumentTypeError(f"a handle has {HANDLE_CHARS} characters of a to z and 2 to 7")
    return text


def _configuration(path: Path | None) -> tuple[dict[str, Any], list[str]]:
    """Return a proxy configuration and its mistakes."""
    try:
        config = (yaml.safe_load(path.read_text(encoding="utf-8")) if path else None) or {}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        return {}, [f"{path}: {error}"]
    if not isinstance(config, dict):
        return {}, [f"{path}: a proxy configuration is expected"]
    return config, settings_of(config)[1]


def _places(config: Mapping[str, Any]) -> Places:
    from litellm._redis import get_redis_async_client  # noqa: PLC0415 - slow to load

    named = {settings.path for settings in _archives(config) if settings.backend == "disk"}
    folders = sorted({path for path in (*named, os.environ.get(FOLDER_VARIABLE)) if path})
    try:
        client = get_redis_async_client(**_redis_fields(config))
    except ValueError:  # none is configured
        client = None
    return Places(tuple(map(Path, folders)), client)


def _archives(config: Mapping[str, Any]) -> list[ArchiveSettings]:
    """Return what each scope of a configuration says of the archive."""
    settings = settings_of(config)[0]
    sections = (settings.policies, settings.models, settings.teams, settings.keys, settings.sessions, settings.tags)
    scopes: list[Any] = [settings.defaults, *(scope for section in sections for scope in section.values())]
    scopes += [
        info.get("ctx_hooks") for info in (m.get("model_info") for m in models_of(config)) if isinstance(info, Mapping)
    ]
    said = [scope.get("archive") for scope in scopes if isinstance(scope, Mapping)]
    found = []
    for archive in said:
        try:
            found += [ArchiveSettings.model_validate(archive)] if archive else []
        except ValidationError:  # of a model's own `model_info`: the proxy ignores that scope
            continue
    return found


def _redis_fields(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a configuration says of the Router's Redis, else of LiteLLM's cache; LiteLLM reads the environment."""
    router = _mapping(config.get("router_settings"))
    cache = _mapping(_mapping(config.get("litellm_settings")).get("cache_params"))
    named = {field: router.get(f"redis_{field}") for field in REDIS_FIELDS if router.get(f"redis_{field}") is not None}
    return named or {field: cache[field] for field in REDIS_FIELDS if cache.get(field) is not None}


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
