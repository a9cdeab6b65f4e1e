"""The written summaries of conversations, which compaction holds which, and the flight of the next one.

Known in this process, and to the other workers through LiteLLM's Redis when it has one: one hash a conversation. A field is
only ever swapped: it changes where it still has the value that the writer has read, so of two workers one is first, and the
other takes what the first has written. Summaries are text of conversations: Redis and each process forget them after
KEPT_SECONDS.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from ctx_hooks.addons.summaries.fields import (
    CHOSEN,
    FLIGHT,
    LARGEST_NAME_BYTES,
    LARGEST_VALUE_BYTES,
    MOST_CHOSEN,
    MOST_FIELDS,
    MOST_WRITTEN,
    WRITTEN,
    Stored,
    chosen_of,
    flight_value,
    says_something,
    stored_of,
    trim,
    value_of,
)
from ctx_hooks.store.shared_store import DEAD_SECONDS, SharedStore, UnavailableError

if TYPE_CHECKING:
    from ctx_hooks.addons.summaries.flight import Flight
    from ctx_hooks.compaction.summary.model_written import Choice, WrittenSummary

KEY_PREFIX = "ctx_hooks:summaries:"
KEPT_SECONDS = 3 * 24 * 3600
"""After the last write: a session that is taken up again after a weekend finds its summary. What is forgotten costs a cache
rewrite and a call."""
FLIGHT_TIMEOUT_SECONDS = 5.0
"""No request is held up by this one. An event loop with a hundred requests takes seconds to hear what Redis has answered,
and a worker that gives up pays for the same summary once more."""
MOST_CONVERSATIONS = 500
"""Kept in this process; the one that was used longest ago is forgotten first. With a dozen compactions each, whose summaries
are as long as the budget allows (2 to 8 KB), these are some 50 MB."""

READ = f"""
if redis.call('TYPE', KEYS[1]).ok ~= 'hash' or redis.call('HLEN', KEYS[1]) > {MOST_FIELDS} then
  return {{}}
end
local found = {{}}
for _, field in ipairs(redis.call('HKEYS', KEYS[1])) do
  if #field <= {LARGEST_NAME_BYTES} and redis.call('HSTRLEN', KEYS[1], field) <= {LARGEST_VALUE_BYTES} then
    found[#found + 1] = field
    found[#found + 1] = redis.call('HGET', KEYS[1], field)
  end
end
return found
"""
SWAP = f"""
local kind = redis.call('TYPE', KEYS[1]).ok
if kind ~= 'none' and (kind ~= 'hash' or redis.call('HLEN', KEYS[1]) > {MOST_FIELDS}) then
  redis.call('DEL', KEYS[1])
end
local field, old, new = ARGV[1], ARGV[2], ARGV[3]
local known = redis.call('HGET', KEYS[1], field) or ''
if #known > {LARGEST_VALUE_BYTES} then known = '' end
if known ~= old then return known end
redis.call('HSET', KEYS[1], field, new)
redis.call('EXPIRE', KEYS[1], {KEPT_SECONDS})
local fields = {{['{CHOSEN}'] = {{}}, ['{WRITTEN}'] = {{}}}}
for _, name in ipairs(redis.call('HKEYS', KEYS[1])) do
  local kind = fields[string.sub(name, 1, 2)]
  if kind then
    local value = redis.call('HGET', KEYS[1], name)
    local at = name == field and math.huge or tonumber(string.match(value, '^%[(%d+%.?%d*)')) or 0
    kind[#kind + 1] = {{name = name, at = at, holds = string.match(value, '"(%x+)"%]$')}}
  end
end
for _, kind in pairs(fields) do
  table.sort(kind, function(one, other) return one.at > other.at end)
end
local held, free = {{}}, 0
for place, chosen in ipairs(fields['{CHOSEN}']) do
  if place > {MOST_CHOSEN} then redis.call('HDEL', KEYS[1], chosen.name)
  elseif chosen.holds then held['{WRITTEN}' .. chosen.holds] = true end
end
for _, written in ipairs(fields['{WRITTEN}']) do
  if not held[written.name] then
    free = free + 1
    if free > {MOST_WRITTEN} then redis.call('HDEL', KEYS[1], written.name) end
  end
end
return new
"""
"""Answers what the field has now. Values are JSON lists that begin with the time of writing: the oldest compactions go, and
the oldest summaries that none of the others holds."""


@dataclass(slots=True)
class _Kept:
    """What this process knows of a conversation: the fields of its hash, and when it forgets them."""

    until_seconds: float
    fields: dict[str, str] = field(default_factory=dict)


class StoredSummaries:
    """What is stored, by the key of a conversation. Used on the event loop only."""

    def __init__(self, store: SharedStore) -> None:
        self._store = store
        self._kept: OrderedDict[str, _Kept] = OrderedDict()

    async def of(self, conversation: str, wait_seconds: float | None = None) -> Stored:
        """Return what is stored of a conversation, as far as this process knows it if Redis is slow.

        Args:
            conversation: its key.
            wait_seconds: how long one can wait who has the time; None for a request that has none.
        """
        if self._store.is_shared:
            with suppress(UnavailableError):  # what this process knows has to do
                if wait_seconds is None:
                    await self._store.briefly(partial(self._read, conversation), KEY_PREFIX + conversation)
                else:
                    await self._read(conversation, wait_seconds)
        return stored_of(conversation, self._known(conversation).fields, time.time())

    async def fly(self, conversation: str, old: Flight, new: Flight) -> bool:
        """Replace a flight by its next state; return whether it still was as it was read."""
        value = flight_value(new)
        return await self._swap(conversation, FLIGHT, flight_value(old), value) == value

    async def write(self, conversation: str, summary: WrittenSummary) -> None:
        """Store a summary that was accepted; one of the same prefix that is there already stays."""
        value = value_of(round(time.time(), 3), summary.length, summary.text)
        if len(value.encode("utf-8", "replace")) <= LARGEST_VALUE_BYTES:
            await self._swap(conversation, WRITTEN + summary.prefix, "", value)

    async def choose(self, conversation: str, choice: Choice) -> str:
        """Store which summary a compaction holds, unless that is settled; return the prefix that it holds from now on.

        A request waits for it. What a slow Redis answers too late holds for the requests after this one.
        """
        name, value = CHOSEN + choice.compaction, value_of(round(time.time(), 3), choice.prefix)
        try:
            found = await self._store.briefly(partial(self._swap, conversation, name, "", value))
        except UnavailableError:
            found = self._settle(conversation, name, "", value)
        return chosen_of(found) or ""

    async def _read(self, conversation: str, wait_seconds: float = DEAD_SECONDS) -> None:
        found = await self._store.run(READ, KEY_PREFIX + conversation, wait_seconds=wait_seconds)
        fields, now = self._known(conversation).fields, time.time()
        fields.pop(FLIGHT, None)  # Redis knows of every worker's, this process of its own
        fields.update((name, value) for name, value in _pairs(found) if says_something(name, value, now))
        trim(fields)

    async def _swap(self, conversation: str, name: str, old: str, new: str) -> str:
        """Write a field of Redis, and of this process, where it has the value `old`; return the value that it has then."""
        key = KEY_PREFIX + conversation
        try:
            found = await self._store.run(SWAP, key, [name, old, new], FLIGHT_TIMEOUT_SECONDS)
            if found and not says_something(name, _decoded(found), time.time()):  # else no swap would ever replace it
                found = await self._store.run(SWAP, key, [name, found, new], FLIGHT_TIMEOUT_SECONDS)
        except UnavailableError:
            return self._settle(conversation, name, old, new)
        return self._settle(conversation, name, old, new, _decoded(found))

    def _settle(self, conversation: str, name: str, old: str, new: str, found: str | None = None) -> str:
        """Note and return the value that a field has after a swap: the one that Redis has answered, if it has."""
        kept = self._known(conversation)
        known = kept.fields.get(name, "")
        kept.fields[name] = found if found is not None else new if known == old else known
        kept.until_seconds = time.monotonic() + KEPT_SECONDS
        trim(kept.fields)
        return kept.fields.get(name, "")

    def _known(self, conversation: str) -> _Kept:
        """Return what is known of a conversation, and forget the others that Redis has forgotten by now, or are too many."""
        now = time.monotonic()
        kept = self._kept.pop(conversation, None)
        if kept is None or kept.until_seconds < now:
            kept = _Kept(now + KEPT_SECONDS)
        self._kept[conversation] = kept
        while len(self._kept) > MOST_CONVERSATIONS or next(iter(self._kept.values())).until_seconds < now:
            self._kept.popitem(last=False)
        return kept


def _pairs(answer: Any) -> list[tuple[str, str]]:
    listed = [_decoded(item) for item in answer] if isinstance(answer, (list, tuple)) else []
    return list(zip(listed[::2], listed[1::2], strict=False))


def _decoded(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
