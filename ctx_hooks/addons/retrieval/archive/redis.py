"""Sealed texts in LiteLLM's Redis: one key a text, with its expiry, and an index a tenant.

The index is a sorted set of handles by expiry and a hash of their sizes. All keys of a tenant have the same hash tag: a
script may name them in a cluster. Anyone can write anything there: keys of a wrong type are replaced.
"""

import time
from collections.abc import Mapping
from functools import partial
from typing import Any

from ctx_hooks.addons.retrieval.archive.disk import Stored
from ctx_hooks.store.sealing import LARGEST_TEXT_BYTES
from ctx_hooks.store.shared_store import READ, SharedStore, keys_like

KEY_PREFIX = "ctx_hooks:archive:"
ROW_BYTES = 420
"""Memory of a text's key and its entries in set and hash, beside the text (measured: 408)."""
LARGEST_VALUE_BYTES = LARGEST_TEXT_BYTES + 1_000
"""A larger value is not ours: if compression makes texts larger, they grow by a few bytes in a thousand."""

WRITE = f"""
local index, sizes = KEYS[1], KEYS[1] .. ':sizes'
local now, expires_at, kept, most = tonumber(ARGV[1]), ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
if redis.call('TYPE', index).ok ~= 'zset' or redis.call('TYPE', sizes).ok ~= 'hash' then redis.call('DEL', index, sizes) end
local total = tonumber(redis.call('HGET', sizes, 'total') or 0) or 0
local function forget(handle)
  total = total - (tonumber(redis.call('HGET', sizes, handle) or 0) or 0)
  redis.call('HDEL', sizes, handle)
  redis.call('ZREM', index, handle)
  redis.call('DEL', index .. ':' .. handle)
end
for _, handle in ipairs(redis.call('ZRANGEBYSCORE', index, '-inf', now)) do forget(handle) end
for i = 5, #ARGV, 2 do
  local handle, value = ARGV[i], ARGV[i + 1]
  local size = #value + {ROW_BYTES}
  forget(handle)
  while total + size > most do
    local oldest = redis.call('ZRANGE', index, 0, 0)[1]
    if not oldest then total = 0 break end
    forget(oldest)
  end
  redis.call('SET', index .. ':' .. handle, value, 'EX', kept)
  redis.call('ZADD', index, expires_at, handle)
  redis.call('HSET', sizes, handle, size)
  total = total + size
end
redis.call('HSET', sizes, 'total', total)
for _, key in ipairs({{index, sizes}}) do
  if redis.call('TTL', key) < kept then redis.call('EXPIRE', key, kept) end
end
return 1
"""
"""`total` is no handle: a handle has twelve characters. If the index was lost, the total begins at zero again."""


class Redis:
    """The store that the workers of all machines share."""

    def __init__(self, store: SharedStore) -> None:
        self._store = store

    async def write(self, tenant: str, sealed: Mapping[str, bytes], kept_seconds: float, max_bytes: int) -> None:
        """Store sealed texts with their expiry, in one script; raises UnavailableError."""
        now, kept = time.time(), max(1, round(kept_seconds))
        texts = [part for pair in sealed.items() for part in pair]
        args = [now, now + kept_seconds, kept, max_bytes, *texts]
        await self._store.run(WRITE, key_of(tenant), args)

    async def read(self, tenant: str, handle: str) -> bytes | None:
        """Return a sealed text, None if it is absent or expired; raises UnavailableError."""
        key = f"{key_of(tenant)}:{handle}"
        return await self._store.briefly(partial(self._store.read, key, LARGEST_VALUE_BYTES), key) or None


def key_of(tenant: str) -> str:
    """Return the key of a tenant's index, which all its other keys begin with."""
    return f"{KEY_PREFIX}{{{tenant}}}"


async def tenants(client: Any) -> list[Stored]:
    """Return how much is kept of each tenant, without indexes that somebody else wrote; raises the connection's errors."""
    found = []
    for index in await keys_like(client, key_of("*")):
        if await client.type(index) == b"zset" and await client.type(index + b":sizes") == b"hash":
            name = index.decode("utf-8", "replace").rpartition(KEY_PREFIX)[2].strip("{}")
            handles = await client.zrangebyscore(index, time.time(), "+inf")
            sizes = await client.hmget(index + b":sizes", handles) if handles else []
            found.append(Stored(name, len(handles), sum(int(size) for size in sizes if size and size.isdigit())))
    return [stored for stored in found if stored.texts]


async def read(client: Any, tenant: str, handle: str) -> bytes | None:
    """Return a sealed text, None if there is none; raises the connection's errors."""
    for key in await keys_like(client, f"{key_of(tenant)}:{handle}"):
        found = await client.eval(READ, 1, key, LARGEST_VALUE_BYTES)
        if found and isinstance(found, bytes):
            return found
    return None
