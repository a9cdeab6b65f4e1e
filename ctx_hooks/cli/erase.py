"""`ctx-hooks erase`: removes what the stores keep of a team, key, user or organization, and prints a receipt."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime, timezone
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import click

from ctx_hooks.addons.retrieval.archive import disk, redis
from ctx_hooks.addons.summaries import stored as summaries
from ctx_hooks.attempts import learned
from ctx_hooks.cli.configuration import read_configuration
from ctx_hooks.cli.stores import opened_stores, owner_id
from ctx_hooks.cli.terminal import FAILED, CommandError, confirmed, printable, tell
from ctx_hooks.litellm_compat.call import tenant_digest
from ctx_hooks.store.sealing import secret_of_environment, tenant_key, tenant_name
from ctx_hooks.store.shared_store import SharedStore, delete_keys, keys_like

DIGEST = re.compile(r"[0-9a-f]{16}|[0-9a-f]{32}|nobody")
"""The digests of tenants in `archive ls` and `limits ls`; "nobody" is the tenant of requests without key, team and user."""
STAYS = (
    "The memory of each worker: summaries, archived texts for their retention_days. A restart empties it.",
    "Data that a worker still writes for the owner: erase again after the owner's sessions have ended.",
    "Data under another name: archived texts belong to the `scope` of their archive, statistics and summaries to the team.",
    "Archived texts that were encrypted with another CTX_HOOKS_ARCHIVE_KEY, until they expire.",
    "The sizes that deployments have accepted: these figures name nobody.",
    "Event files: figures with ids of team and key, until they are rotated away.",
    "LiteLLM's own records (spend log, log, metrics, traces): figures with ids of team and key, as long as you keep them.",
    "Backups of the disk and of Redis.",
)


@dataclass(frozen=True, slots=True)
class Owner:
    """The owner of the texts and figures to remove: `kind` is "team", "key", "user", "organization" or "tenant".

    `identifier` is LiteLLM's id, of a key its hash. `archive_name` is its digest in the archive, `digest` in other stores.
    """

    kind: str
    identifier: str
    archive_name: str
    digest: str


@dataclass(frozen=True, slots=True)
class Held:
    """A store's data of an owner: how many entries (rows of a file, keys of Redis or fields of one), and their removal."""

    store: str
    place: str
    owner: str
    entries: int
    remove: Callable[[], Awaitable[int]]


async def run(*, config: Path, yes: bool, **named: Sequence[str]) -> int:
    """Remove what is kept of owners, whose ids `named` has by kind, and print the receipt; FAILED if nothing was found.

    Raises CommandError if the configuration has mistakes, a store cannot be reached, or the operator does not agree.
    """
    owners = [_owner(kind, identifier) for kind, identifiers in named.items() for identifier in identifiers]
    if not owners:
        raise click.UsageError("Say whose texts: --team, --key, --organization, --user or --tenant.")
    async with opened_stores(read_configuration(config)) as (folders, client):
        found = [held for owner in owners for held in [*_on_disk(folders, owner), *await _in_redis(client, owner)]]
        if not yes and any(held.entries for held in found):
            click.echo(printable("\n".join(_lines([(held, 0) for held in found]))), err=True)
            if not confirmed("Remove this for good?"):
                raise CommandError("Nothing was removed.")
        removed = [(held, await held.remove() if held.entries else 0) for held in found]
    stores = [
        {"store": h.store, "place": h.place, "owner": h.owner, "found": h.entries, "removed": gone} for h, gone in removed
    ]
    at = datetime.now(timezone.utc).isoformat(timespec="seconds")
    receipt = {"at": at, "owners": list(map(asdict, owners)), "stores": stores, "stays": STAYS}
    tell(receipt, "\n".join([*_lines(removed), "Not removed:", *(f"- {line}" for line in STAYS)]))
    return 0 if any(held.entries for held in found) else FAILED


def _owner(kind: str, identifier: str) -> Owner:
    """Return an owner with its digests; raises UsageError if a tenant is no digest."""
    if kind == "tenant":
        if not DIGEST.fullmatch(identifier):
            raise click.UsageError(f"--tenant: {identifier!r} is no digest that `archive ls` or `limits ls` prints.")
        return Owner(kind, identifier, identifier, identifier)
    found = owner_id(kind, identifier)
    return Owner(kind, found, tenant_name(tenant_key(kind, found, secret_of_environment())), tenant_digest(kind, found))


def _on_disk(folders: Sequence[Path], owner: Owner) -> Iterator[Held]:
    name = f"{owner.kind} {owner.identifier}"
    for folder in folders:
        entries = sum(stored.texts for stored in disk.tenants(folder) if stored.name == owner.archive_name)
        remove = partial(asyncio.to_thread, disk.delete, folder, owner.archive_name)
        yield Held("archive", str(folder), name, entries, remove)


async def _in_redis(client: Any, owner: Owner) -> list[Held]:
    if client is None:
        return []
    name = f"{owner.kind} {owner.identifier}"
    patterns = {
        "archive": f"{redis.key_of(owner.archive_name)}*",
        "summaries": f"{summaries.KEY_PREFIX}{owner.digest}:*",
    }
    keys = {store: await keys_like(client, pattern) for store, pattern in patterns.items()}
    found = [Held(s, "redis", name, len(k), partial(delete_keys, client, k)) for s, k in keys.items()]
    scripts: Any = SimpleNamespace(async_register_script=client.register_script)
    store = SharedStore(lambda: scripts)
    statistics = [key.decode() for key in await keys_like(client, f"{learned.KEY_PREFIX}*")]
    held = [learned.held_by(owner.digest, await store.read(key, learned.LARGEST_BYTES)) for key in statistics]

    async def remove() -> int:
        without = partial(learned.without_tenant, owner.digest)
        for key in statistics:
            await store.change(key, without, learned.LARGEST_BYTES, learned.KEPT_SECONDS)
        return sum(held)

    return [*found, Held("statistics", "redis", name, sum(held), remove)]


def _lines(removed: Sequence[tuple[Held, int]]) -> Iterator[str]:
    for held, gone in removed:
        yield f"{held.owner}: {held.entries:,} found, {gone:,} removed, {held.store} in {held.place}"
