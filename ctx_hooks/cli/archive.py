"""`ctx-hooks archive ls | show | prune`: removed texts that are kept on disk and in Redis, by tenant."""

import asyncio
import sys
from pathlib import Path

import click

from ctx_hooks.addons.retrieval.archive import Stored, disk, redis
from ctx_hooks.cli.configuration import Configuration, configuration_without_mistakes
from ctx_hooks.cli.stores import opened_stores, owner_id
from ctx_hooks.cli.terminal import CommandError, as_json, counted, table, tell
from ctx_hooks.conversation.handles import HANDLE_CHARS, is_handle
from ctx_hooks.store.sealing import SECRET_VARIABLE, opened, secret_of_environment, tenant_key, tenant_name

NOT_AVAILABLE = f"Not available: no such text of this owner, or none any more, or {SECRET_VARIABLE} is not the proxy's."


def print_kept(*, config: Path | None) -> None:
    """Print how much is kept of each tenant, and in which place; teams by name if the configuration has them."""
    read, secret = configuration_without_mistakes(config), secret_of_environment()
    found = asyncio.run(_kept(read))
    names = {tenant_name(tenant_key("team", team, secret)): f"team {team}" for team in read.settings.teams}
    shown = table("tenant", "texts", "bytes", "place", right=(1, 2))
    shown.columns[0].no_wrap = True  # a digest is to be copied
    for place, stored in found:
        shown.add_row(names.get(stored.name, stored.name), f"{stored.texts:,}", f"{stored.size_bytes:,}", place)
    tell([{"place": place, **stored._asdict()} for place, stored in found], shown if found else "Nothing is kept.")


async def _kept(config: Configuration) -> list[tuple[str, Stored]]:
    async with opened_stores(config) as stores:
        found = [(str(folder), stored) for folder in stores.folders for stored in disk.tenants(folder)]
        return found + [("redis", stored) for stored in (await redis.tenants(stores.redis) if stores.redis else [])]


def print_kept_text(*, handle: str, config: Path | None, **owner: str | None) -> None:
    """Print the text of a handle; raises CommandError if its owner has none."""
    if not is_handle(handle):
        raise CommandError(f"{handle!r:.60} is no handle: it has {HANDLE_CHARS} characters of a to z and 2 to 7")
    named = [(kind, identifier) for kind, identifier in owner.items() if identifier]
    if len(named) > 1:
        raise click.UsageError(f"Say one owner, not {' and '.join(f'--{kind}' for kind, _ in named)}.")
    kind, identifier = named[0] if named else ("nobody", "")
    secret = secret_of_environment()
    tenant = tenant_key(kind, owner_id(kind, identifier), secret)
    values = asyncio.run(_values(configuration_without_mistakes(config), tenant_name(tenant), handle))
    texts = (opened(value, tenant, handle, secret) for value in values if value is not None)
    text = next((text for text in texts if text is not None), None)
    if text is None:
        raise CommandError(NOT_AVAILABLE)
    if as_json() or sys.stdout.isatty():
        tell({"handle": handle, "text": text}, text)
    else:
        click.echo(text.encode("utf-8", "replace"))


async def _values(config: Configuration, tenant: str, handle: str) -> list[bytes | None]:
    async with opened_stores(config) as stores:
        values = [disk.read(folder, tenant, handle) for folder in stores.folders]
        return values + ([await redis.read(stores.redis, tenant, handle)] if stores.redis is not None else [])


def prune(*, config: Path | None) -> None:
    """Delete expired texts on disk, and print their number."""
    gone = asyncio.run(_pruned(configuration_without_mistakes(config)))
    tell({"deleted": gone}, f"{counted(gone, 'text')} deleted")


async def _pruned(config: Configuration) -> int:
    async with opened_stores(config) as stores:
        return sum(map(disk.prune, stores.folders))
