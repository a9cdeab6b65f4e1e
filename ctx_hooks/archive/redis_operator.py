"""What an operator sees and deletes in Redis, over a connection of its own.

LiteLLM may put a namespace before each key, which only the proxy knows: keys are searched for. That takes the longer the
larger the Redis is, and holds up nobody.
"""

from __future__ import annotations

import time
from typing import Any

from ctx_hooks.archive.redis import KEY_PREFIX, READ, key_of
from ctx_hooks.archive.store import Stored

KEYS_AT_ONCE = 1_000
"""Looked at, or deleted, before Redis serves others again: below a millisecond."""


async def tenants(client: Any) -> list[Stored]:
    """Return what is stored of each tenant; raises whatever the connection raises."""
    found = [await _summed(client, index) for index in await _keys(client, f"*{key_of('*')}")]
    return [stored for stored in found if stored.texts]


async def texts(client: Any, tenant: str) -> list[Stored]:
    """Return the texts of a tenant by handle, those first that expire first; raises whatever the connection raises."""
    return [text for index in await _keys(client, f"*{key_of(tenant)}") for text in await _listed(client, index)]


async def read(client: Any, tenant: str, handle: str) -> bytes | None:
    """Return a sealed text, None where there is none; raises whatever the connection raises."""
    for key in await _keys(client, f"*{key_of(tenant)}:{handle}"):
        (found,) = await client.eval(READ, 1, key[: -len(handle) - 1], handle)
        if isinstance(found, bytes):
            return found
    return None


async def delete(client: Any, tenant: str) -> int:
    """Delete every key of a tenant and return how many texts there were; raises whatever the connection raises."""
    keys = await _keys(client, f"*{key_of(tenant)}*")
    for start in range(0, len(keys), KEYS_AT_ONCE):
        await client.delete(*keys[start : start + KEYS_AT_ONCE])
    return sum(not key.endswith((b"}", b":sizes")) for key in keys)


async def _keys(client: Any, pattern: str) -> list[bytes]:
    return sorted({key async for key in client.scan_iter(match=pattern, count=KEYS_AT_ONCE)})


async def _summed(client: Any, index: bytes) -> Stored:
    listed = await _listed(client, index)
    ends = [text.first_expires_at for text in listed] or [0.0]
    tenant = index.decode("utf-8", "replace").rpartition(KEY_PREFIX)[2].strip("{}")
    return Stored(tenant, len(listed), sum(text.size_bytes for text in listed), min(ends), max(ends))


async def _listed(client: Any, index: bytes) -> list[Stored]:
    if await client.type(index) != b"zset" or await client.type(index + b":sizes") != b"hash":
        return []  # anybody may have written it
    found = await client.zrangebyscore(index, time.time(), "+inf", withscores=True)
    sizes = await client.hgetall(index + b":sizes")
    return [
        Stored(handle.decode("utf-8", "replace"), 1, _figure(sizes.get(handle)), expires_at, expires_at)
        for handle, expires_at in found
    ]


def _figure(size: bytes | None) -> int:
    return int(size) if size and size.isdigit() else 0
