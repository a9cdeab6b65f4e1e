"""The written summaries of conversations, which compaction holds which, and the flight of the next one.

Known in this process, and to the other workers through LiteLLM's Redis when it has one: one hash a conversation. A field is
only ever swapped: it changes where it still has the value that the writer has read, so of two workers one is first, and the
other takes what the first has written. Summaries are text of conversations: Redis forgets them after KEPT_SECONDS.
"""

from __future__ import annotations

import asyncio
import json
import logging
import math
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any

from ctx_hooks.compaction.summary.model_written import NO_SUMMARIES, Choice, Summaries, WrittenSummary
from ctx_hooks.compaction.summary.state import MOST_FAILURES, MOST_PAUSE_SECONDS, PENDING, STATES, Flight
from ctx_hooks.learning.learned import REDIS_TIMEOUT_SECONDS, REFRESH_SECONDS

if TYPE_CHECKING:
    from ctx_hooks.learning.redis_store import SharedCache

logger = logging.getLogger("ctx_hooks")

KEY_PREFIX = "ctx_hooks:summaries:"
KEPT_SECONDS = 3 * 24 * 3600
"""A session that is taken up again after a weekend finds its summary. What is forgotten costs a cache rewrite and a call."""
CHOICE_TIMEOUT_SECONDS = 1.0
"""Once a compaction and not once a request: a second of a Redis that hangs is little beside a cache that is rewritten."""
FLIGHT_TIMEOUT_SECONDS = 5.0
"""No request is held up by this one. An event loop with a hundred requests takes seconds to hear what Redis has answered,
and a worker that gives up pays for the same summary once more."""
MOST_CONVERSATIONS = 500
"""Kept in this process, with about 20 KB each 10 MB; the one that was used longest ago is forgotten first."""
FLIGHT, WRITTEN, CHOSEN = "flight", "w:", "c:"
MOST_WRITTEN = 8
"""There is about one a compaction, and a request holds one of the newest: regenerated answers and forks an older one."""
MOST_CHOSEN = 64
"""The same for compactions: each model, window and policy that a conversation is sent to has its own."""
LARGEST_NAME_BYTES = 80
"""A kind and a digest of at most 64 hexadecimal digits."""
LARGEST_VALUE_BYTES = 64_000
"""A summary of 4,000 tokens is about 16 KB, 8,000 tokens of Chinese 24 KB."""
LONGEST_DIGEST_CHARS = 64
MOST_MESSAGES = 1_000_000
CLOCK_SKEW_SECONDS = 60.0
"""Workers' clocks may differ by so much. What was written later than that would be the newest for ever."""
LONGEST_LEASE_SECONDS = 24 * 3600.0
"""Whoever has the Redis can write anything there: what ends later than that is no lease."""

READ = f"""
if redis.call('TYPE', KEYS[1]).ok ~= 'hash' or redis.call('HLEN', KEYS[1]) > {2 * (MOST_WRITTEN + MOST_CHOSEN)} then
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
if kind ~= 'none' and (kind ~= 'hash' or redis.call('HLEN', KEYS[1]) > {2 * (MOST_WRITTEN + MOST_CHOSEN)}) then
  redis.call('DEL', KEYS[1])
end
local field, old, new, most = ARGV[1], ARGV[2], ARGV[3], tonumber(ARGV[4])
local known = redis.call('HGET', KEYS[1], field) or ''
if #known > {LARGEST_VALUE_BYTES} then known = '' end
if known ~= old then return known end
redis.call('HSET', KEYS[1], field, new)
redis.call('EXPIRE', KEYS[1], {KEPT_SECONDS})
local count, oldest, oldest_at, names, used = 0, nil, nil, redis.call('HKEYS', KEYS[1]), {{}}
local function at_of(name)
  local value = redis.call('HGET', KEYS[1], name)
  return tonumber(string.match(value, '^%[(%d+%.?%d*)')) or 0, value
end
for _, other in ipairs(names) do
  if string.sub(other, 1, 2) == '{CHOSEN}' then
    local at, value = at_of(other)
    local held = '{WRITTEN}' .. (string.match(value, '"(%x+)"%]$') or '')
    used[held] = math.max(used[held] or 0, at)
  end
end
for _, other in ipairs(names) do
  if string.sub(other, 1, 2) == string.sub(field, 1, 2) then
    count = count + 1
    local at = math.max(used[other] or 0, (at_of(other)))
    if other ~= field and (not oldest or at < oldest_at) then oldest, oldest_at = other, at end
  end
end
if count > most and oldest then redis.call('HDEL', KEYS[1], oldest) end
return new
"""
"""Answers what the field has now. Values are JSON lists that begin with the time of writing: the oldest of a kind goes. A
summary is as young as the newest compaction that holds it, which would lose its form with it."""


@dataclass(frozen=True, slots=True)
class Stored:
    """What is stored of a conversation: its summaries, and the flight of the next one."""

    summaries: Summaries = NO_SUMMARIES
    flight: Flight = PENDING


class StoredSummaries:
    """What is stored, by the key of a conversation. Used on the event loop alone.

    Args:
        shared: Returns LiteLLM's Redis cache, None without one. After a failure requests do not read there for ten seconds:
            one of them waits for a Redis that hangs, the others are served from this process.
    """

    def __init__(self, shared: Callable[[], SharedCache | None]) -> None:
        self._shared = shared
        self._fields: OrderedDict[str, dict[str, str]] = OrderedDict()
        self._read_again_at = 0.0

    async def of(self, conversation: str, timeout_seconds: float | None = None) -> Stored:
        """Return what is stored of a conversation.

        Args:
            conversation: its key.
            timeout_seconds: how long Redis may take for one who can wait; None for a request that cannot.
        """
        hurries = timeout_seconds is None
        if hurries and time.monotonic() < self._read_again_at:
            found = None
        else:
            found = await self._run(READ, conversation, timeout_seconds or REDIS_TIMEOUT_SECONDS)
        fields, now = self._known(conversation), time.time()
        if found is not None:
            fields.pop(FLIGHT, None)  # Redis knows of every worker's, this process of its own
            fields.update((name, value) for name, value in _pairs(found) if _says_something(name, value, now))
            _trim(fields)
        return stored_of(conversation, fields, now)

    async def fly(self, conversation: str, old: Flight, new: Flight) -> bool:
        """Replace a flight by its next state; return whether it still was as it was read."""
        known, value = _flight_text(old), _flight_text(new)
        return await self._swap(conversation, FLIGHT, known, value, 1, FLIGHT_TIMEOUT_SECONDS) == value

    async def write(self, conversation: str, summary: WrittenSummary) -> None:
        """Store a summary that was accepted; one of the same prefix that is there already stays."""
        value = _text(round(time.time(), 3), summary.length, summary.text)
        if len(value.encode("utf-8", "replace")) <= LARGEST_VALUE_BYTES:
            await self._swap(conversation, WRITTEN + summary.prefix, "", value, MOST_WRITTEN, FLIGHT_TIMEOUT_SECONDS)

    async def choose(self, conversation: str, choice: Choice) -> str:
        """Store which summary a compaction holds, unless that is settled; return the prefix that it holds from now on."""
        value = _text(round(time.time(), 3), choice.prefix)
        found = await self._swap(conversation, CHOSEN + choice.compaction, "", value, MOST_CHOSEN, CHOICE_TIMEOUT_SECONDS)
        return _chosen(found) or ""

    async def _swap(self, conversation: str, field: str, old: str, new: str, most: int, timeout_seconds: float) -> str:
        """Write a field of Redis, and of this process, where it has the value `old`; return the value that it has then."""
        fields = self._known(conversation)
        found = await self._run(SWAP, conversation, timeout_seconds, field, old, new, most)
        if found and not _says_something(field, _decoded(found), time.time()):  # else no swap would ever replace it
            found = await self._run(SWAP, conversation, timeout_seconds, field, found, new, most)
        known = fields.get(field, "") if found is None else _decoded(found)
        fields[field] = new if found is None and known == old else known
        _trim(fields)
        return fields[field]

    def _known(self, conversation: str) -> dict[str, str]:
        fields = self._fields.setdefault(conversation, {})
        self._fields.move_to_end(conversation)
        if len(self._fields) > MOST_CONVERSATIONS:
            self._fields.popitem(last=False)
        return fields

    async def _run(self, script: str, conversation: str, timeout_seconds: float, *args: Any) -> Any:
        """Return what a script answers, None where there is no Redis, or none that answers."""
        shared = self._shared()
        if shared is None:
            return None
        try:
            running = shared.async_register_script(script)(keys=[KEY_PREFIX + conversation], args=list(args))
            return await asyncio.wait_for(running, timeout_seconds)
        except Exception as error:  # noqa: BLE001 - a request must not wait for, nor fail with, a broken Redis
            self._read_again_at = time.monotonic() + REFRESH_SECONDS
            logger.warning("ctx_hooks cannot share summaries through Redis: %r", error)
            return None


def stored_of(conversation: str, fields: Mapping[str, str], now: float) -> Stored:
    """Return what the fields of a conversation's hash say, without what is none of it.

    Args:
        conversation: its key.
        fields: the values by name, as anybody may have written them.
        now: epoch seconds.
    """
    written = {n: _written(n, v) for n, v in ((n[len(WRITTEN) :], v) for n, v in fields.items() if n.startswith(WRITTEN))}
    chosen = {n[len(CHOSEN) :]: _chosen(v) for n, v in fields.items() if n.startswith(CHOSEN)}
    return Stored(
        Summaries(
            conversation,
            {name: summary for name, summary in written.items() if summary is not None and _is_digest(name)},
            {name: prefix for name, prefix in chosen.items() if prefix is not None and _is_digest(name)},
        ),
        _flight(fields.get(FLIGHT, ""), now),
    )


def _written(prefix: str, value: str) -> WrittenSummary | None:
    match _list(value):
        case [int() | float(), int(length), str(text)] if 0 < length <= MOST_MESSAGES and text:
            return WrittenSummary(
                prefix, length, text.encode("utf-8", "replace").decode()
            )  # a lone surrogate cannot be sent
    return None


def _chosen(value: str) -> str | None:
    match _list(value):
        case [int() | float(), str(prefix)] if not prefix or _is_digest(prefix):
            return prefix
    return None


def _flight(value: str, now: float) -> Flight:
    latest = now + max(LONGEST_LEASE_SECONDS, MOST_PAUSE_SECONDS)
    match _list(value):
        case [str(state), str(prefix), str(owner), int() | float() as until, int(failures)] if (
            state in STATES and 0 <= until <= latest and 0 <= failures <= MOST_FAILURES
        ):
            return Flight(state, prefix, owner, float(until), failures)
    return PENDING


def _says_something(name: str, value: str, now: float) -> bool:
    """Whether a field has a value that one of these functions reads: anybody may have written another there."""
    if name == FLIGHT:
        return _flight(value, now) != PENDING
    read = _written(name, value) if name.startswith(WRITTEN) else _chosen(value)
    return read is not None and 0 <= _at(value) <= now + CLOCK_SKEW_SECONDS


def _trim(fields: dict[str, str]) -> None:
    """Forget the oldest fields of a kind that has too many; a summary is as young as the newest choice of it."""
    used: dict[str, float] = {}
    for name, value in fields.items():
        if name.startswith(CHOSEN) and (held := _chosen(value)):
            used[WRITTEN + held] = max(used.get(WRITTEN + held, 0.0), _at(value))
    for kind, most in ((WRITTEN, MOST_WRITTEN), (CHOSEN, MOST_CHOSEN)):
        names = sorted((n for n in fields if n.startswith(kind)), key=lambda n: max(used.get(n, 0.0), _at(fields[n])))
        for name in names[: max(0, len(names) - most)]:
            del fields[name]


def _at(value: str) -> float:
    """Return when a summary or choice was written, in epoch seconds; infinity for a time that no float holds."""
    try:
        return float(_list(value)[0])
    except OverflowError:
        return math.inf


def _pairs(answer: Any) -> list[tuple[str, str]]:
    listed = [_decoded(item) for item in answer] if isinstance(answer, (list, tuple)) else []
    return list(zip(listed[::2], listed[1::2], strict=False))


def _flight_text(flight: Flight) -> str:
    """Return a flight's value in its field: "" for the one that is read where there is none."""
    return "" if flight == PENDING else _text(*astuple(flight))


def _text(*values: Any) -> str:
    return json.dumps(values, ensure_ascii=False)


def _decoded(value: Any) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else str(value)


def _list(value: str) -> list[Any]:
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return []
    return found if isinstance(found, list) else []


def _is_digest(name: str) -> bool:
    return 0 < len(name) <= LONGEST_DIGEST_CHARS and all(c in "0123456789abcdef" for c in name)
