"""`ctx-hooks archive ls | show | prune | delete`: the cut texts that are kept on disk and in Redis, by tenant."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import click
from pydantic import ValidationError

from ctx_hooks.archive import disk, redis_operator
from ctx_hooks.archive.sealing import opened
from ctx_hooks.archive.store import Stored
from ctx_hooks.archive.tenant_key import SECRET_VARIABLE, secret_of_environment, tenant_key, tenant_name
from ctx_hooks.cli.configuration import Configuration, configuration_of, read_configuration
from ctx_hooks.cli.redis_client import redis_client
from ctx_hooks.cli.terminal import CommandError, json_option, print_json
from ctx_hooks.conversation.handles import HANDLE_CHARS, is_handle
from ctx_hooks.policy.archive_settings import FOLDER_VARIABLE, ArchiveSettings

NOWHERE = (
    f"No place is known where texts are kept: name the proxy's configuration with --config, or set {FOLDER_VARIABLE}, or "
    "REDIS_HOST as for the proxy. What is kept in memory is in the proxy's processes alone and ends with them."
)
NOT_AVAILABLE = f"Not available: no such text of this owner, or none any more, or {SECRET_VARIABLE} is not the proxy's."
OWNERS = {
    "team": "The team, by its id.",
    "key": "The virtual key, or its hash.",
    "organization": "The organization, by its id.",
    "user": "The user, by id, of requests without a key.",
}
"""Whose texts, each with the help of its option."""
HOUR_SECONDS = 3_600
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Places:
    """Where texts may be kept: folders on disk, and a client of the proxy's Redis where one is configured."""

    folders: tuple[Path, ...]
    redis: Any


def _handle(_ctx: click.Context, _parameter: click.Parameter, text: str) -> str:
    if not is_handle(text):
        raise click.BadParameter(f"a handle has {HANDLE_CHARS} characters of a to z and 2 to 7")
    return text


def _options(*, owners: bool = True, tenant: bool = True) -> Callable[[Any], Any]:
    """Return the options of an action: the configuration, `--json`, and whose texts."""
    options = [click.option("--config", type=click.Path(path_type=Path), help="The proxy configuration."), json_option]
    if owners:
        options += [click.option(f"--{kind}", help=text) for kind, text in OWNERS.items()]
    if tenant:
        options.append(click.option("--tenant", help="The tenant, as `ls` names it."))

    def added(function: Any) -> Any:
        for option in reversed(options):
            function = option(function)
        return function

    return added


@click.group()
def command() -> None:
    """List, print and delete the cut texts that are kept on disk and in Redis, by tenant."""


@command.command("ls")
@_options()
def _ls(*, config: Path | None, as_json: bool, **owner: str | None) -> None:
    """List how much is kept of each tenant; with an owner its texts."""
    tenant = _tenant(owner)
    found = asyncio.run(_at(config, lambda places: _listed(places, tenant)))
    if as_json:
        print_json([{"place": place, **asdict(stored)} for place, listed in found.items() for stored in listed])
    else:
        click.echo("\n".join(lines(found, time.time())) or "Nothing is kept.")


@command.command("show", short_help="Print a text by its handle.")
@click.argument("handle", callback=_handle)
@_options(tenant=False)
def _show(*, handle: str, config: Path | None, as_json: bool, **owner: str | None) -> None:
    """Print a text by the handle of its placeholder; without an owner one that came without a key."""
    kind, identifier = _owner(owner)
    text = asyncio.run(_at(config, lambda places: _text(places, kind, identifier, handle)))
    if text is None:
        raise CommandError(NOT_AVAILABLE)
    if as_json:
        print_json({"handle": handle, "text": text})
    else:
        click.echo(text.encode("utf-8", "replace"))


@command.command("prune")
@_options(owners=False, tenant=False)
def _prune(*, config: Path | None, as_json: bool) -> None:
    """Delete what has expired; Redis does that by itself."""

    async def pruned(places: Places) -> int:
        return sum(disk.prune(folder) for folder in places.folders)

    _print_deleted(asyncio.run(_at(config, pruned)), as_json=as_json)


@command.command("delete")
@_options()
def _delete(*, config: Path | None, as_json: bool, **owner: str | None) -> None:
    """Delete all texts of an owner."""
    tenant = _tenant(owner)
    if not tenant:
        raise click.UsageError("Say whose texts: --team, --key, --organization, --user or --tenant.")
    _print_deleted(asyncio.run(_at(config, lambda places: _deleted(places, tenant))), as_json=as_json)


async def _at(path: Path | None, act: Callable[[Places], Awaitable[T]]) -> T:
    """Return what an action finds at the places where texts are kept.

    Raises:
        CommandError: The configuration is wrong, no place is known, or one cannot be reached.

    """
    from redis.exceptions import RedisError  # noqa: PLC0415 - slow to load, and for this command alone

    places = _places(_configuration(path))
    if not places.folders and places.redis is None:
        raise CommandError(NOWHERE)
    written = tuple(folder for folder in places.folders if (folder / disk.FILE).exists())  # none is made here
    try:
        return await act(replace(places, folders=written))
    except sqlite3.Error as error:
        raise CommandError(f"The file in {', '.join(map(str, places.folders))} cannot be used: {error}") from None
    except (OSError, RedisError) as error:
        raise CommandError(f"A place cannot be reached: {error}") from None
    finally:
        if places.redis is not None:
            await places.redis.aclose()


async def _listed(places: Places, tenant: str) -> dict[str, list[Stored]]:
    found = {str(folder): disk.texts(folder, tenant) if tenant else disk.tenants(folder) for folder in places.folders}
    if places.redis is not None:
        listing = redis_operator.texts(places.redis, tenant) if tenant else redis_operator.tenants(places.redis)
        found["redis"] = await listing
    return found


async def _text(places: Places, kind: str, identifier: str, handle: str) -> str | None:
    secret = secret_of_environment()
    tenant = tenant_key(kind, identifier, secret)
    values = [disk.read(folder, tenant_name(tenant), handle) for folder in places.folders]
    values += [await redis_operator.read(places.redis, tenant_name(tenant), handle)] if places.redis is not None else []
    texts = (opened(value, tenant, handle, secret) for value in values if value is not None)
    return next((text for text in texts if text is not None), None)


async def _deleted(places: Places, tenant: str) -> int:
    gone = [disk.delete(folder, tenant) for folder in places.folders]
    gone += [await redis_operator.delete(places.redis, tenant)] if places.redis is not None else []
    return sum(gone)


def _print_deleted(texts: int, *, as_json: bool) -> None:
    if as_json:
        print_json({"deleted": texts})
    else:
        click.echo(f"{texts:,} texts deleted")


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


def _owner(owner: Mapping[str, str | None]) -> tuple[str, str]:
    """Return the kind and the identifier of the owner that is named, of "nobody" where none is.

    Raises:
        UsageError: There are two.

    """
    named = [(kind, identifier) for kind, identifier in owner.items() if identifier]
    if len(named) > 1:
        raise click.UsageError(f"Say one owner, not {' and '.join(f'--{kind}' for kind, _ in named)}.")
    kind, identifier = named[0] if named else ("nobody", "")
    if kind != "key":
        return kind, identifier
    from ctx_hooks.litellm_compat import key_id_of  # noqa: PLC0415 - LiteLLM takes seconds to load

    return kind, key_id_of(identifier)


def _tenant(owner: Mapping[str, str | None]) -> str:
    """Return the name of the tenant of an owner, "" where none is named."""
    kind, identifier = _owner(owner)
    if kind == "tenant" or not identifier:
        return identifier
    return tenant_name(tenant_key(kind, identifier, secret_of_environment()))


def _configuration(path: Path | None) -> Configuration:
    """Return a proxy configuration, an empty one without a file.

    Raises:
        CommandError: It has mistakes, or cannot be read.

    """
    config = read_configuration(path) if path else configuration_of({})
    if config.mistakes:
        raise CommandError("\n".join(config.mistakes))
    return config


def _places(config: Configuration) -> Places:
    named = {settings.path for settings in _archives(config) if settings.backend == "disk"}
    folders = sorted({path for path in (*named, os.environ.get(FOLDER_VARIABLE)) if path})
    return Places(tuple(map(Path, folders)), redis_client(config))


def _archives(config: Configuration) -> list[ArchiveSettings]:
    """Return what each scope of a configuration says of the archive."""
    settings = config.settings
    sections = (settings.policies, settings.models, settings.teams, settings.keys, settings.sessions, settings.tags)
    scopes: list[Any] = [settings.defaults, *(scope for section in sections for scope in section.values())]
    scopes += [listed.deployment.model_info.get("ctx_hooks") for listed in config.listed]
    said = [scope.get("archive") for scope in scopes if isinstance(scope, Mapping)]
    found = []
    for archive in said:
        try:
            found += [ArchiveSettings.model_validate(archive)] if archive else []
        except ValidationError:  # of a model's own `model_info`: the proxy ignores that scope
            continue
    return found
