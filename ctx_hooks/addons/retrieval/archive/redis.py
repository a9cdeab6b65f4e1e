"""Sealed texts in LiteLLM's Redis: one key a text, with its expiry, and an index a tenant.

The index is a sorted set of handles by expiry and a hash of their sizes: checking a tenant's bound reads no texts. All keys
of a tenant have the same hash tag: they are in one slot of a cluster, and a script may name them. Anyone with access to the
Redis can write anything there: keys of a wrong type are replaced.
"""

import time
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from ctx_hooks.addons.retrieval.archive import MOST_READ_BYTES, Stored
from ctx_hooks.store.sealing import LARGEST_TEXT_BYTES
from ctx_hooks.store.shared_store import SharedStore, keys_like

KEY_PREFIX = "ctx_hooks:archive:"
WRITE_SECONDS = 5.0
"""No request waits for it; a busy event loop takes seconds to read Redis's answer."""
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
READ = f"""
local found, left = {{}}, {MOST_READ_BYTES}
for i, handle in ipairs(ARGV) do
  local key = KEYS[1] .. ':' .. handle
  local size = redis.call('TYPE', key).ok == 'string' and redis.call('STRLEN', key) or 0
  found[i] = size > 0 and size <= math.min(left, {LARGEST_VALUE_BYTES}) and redis.call('GET', key)
  left = left - (found[i] and size or 0)
end
return found
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
        await self._store.run(WRITE, key_of(tenant), args, WRITE_SECONDS)

    async def read(self, tenant: str, handles: Sequence[str]) -> Mapping[str, bytes]:
        """Return the sealed texts that still exist, by their handles; raises UnavailableError."""
        read = partial(self._store.run, READ, key_of(tenant), handles)
        found = await self._store.briefly(read, (tenant, *handles))
        return {handle: value for handle, value in zip(handles, found, strict=True) if isinstance(value, bytes)}


def key_of(tenant: str) -> str:
    """Return the key of a tenant's index, which all its other keys begin with."""
    return f"{KEY_PREFIX}{{{tenant}}}"


async def tenants(client: Any) -> list[Stored]:
    """Return a summary of each tenant's texts; raises the connection's errors."""
    found = [await _summed(client, index) for index in await keys_like(client, key_of("*"))]
    return [stored for stored in found if stored.texts]


async def read(client: Any, tenant: str, handle: str) -> bytes | None:
    """Return a sealed text, None if there is none; raises the connection's errors."""
    for key in await keys_like(client, f"{key_of(tenant)}:{handle}"):
        (found,) = await client.eval(READ, 1, key[: -len(handle) - 1], handle)
        if isinstance(found, bytes):
            return found
    return None


async def _summed(client: Any, index: bytes) -> Stored:
    """Return the unexpired entries of an index; none if somebody else has written it."""
    tenant = index.decode("utf-8", "replace").rpartition(KEY_PREFIX)[2].strip("{}")
    if await client.type(index) != b"zset" or await client.type(index + b":sizes") != b"hash":
        return Stored(tenant, 0, 0, 0.0, 0.0)
    found = dict(await client.zrangebyscore(index, time.time(), "+inf", withscores=True))
    sizes = await client.hgetall(index + b":sizes")
    size_bytes = sum(int(sizes[handle]) for handle in found if sizes.get(handle, b"").isdigit())
    return Stored(tenant, len(found), size_bytes, min(found.values(), default=0.0), max(found.values(), default=0.0))
