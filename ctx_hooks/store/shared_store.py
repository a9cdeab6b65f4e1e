"""Scripts in LiteLLM's Redis. A request waits for a slow Redis at most once.

The first request that Redis answers too late waits HURRY_SECONDS. Until Redis is fast again, later requests do not wait:
their commands run in the background, and later requests use the results.
"""

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Sequence
from hashlib import sha1
from typing import Any, Protocol, TypeVar

T = TypeVar("T")
logger = logging.getLogger("ctx_hooks")

HURRY_SECONDS = 0.25
"""How long a request waits for a Redis that was fast before: a hundred times the time of one in the same data centre."""
SLOW_SECONDS = 0.05
"""A request may need three commands one after another. If Redis is slower, the wait for each is noticeable."""
DEAD_SECONDS = 30.0
"""A command without an answer is dropped with its connection. LiteLLM's own limit is 5 s, unless a URL configures Redis."""
MOST_RUNNING, MOST_RUNNING_SLOW = 32, 8
"""Concurrent work of requests. LiteLLM's pool has 50 connections unless configured; its own commands need most of them."""
PAUSE_SECONDS = 1.0
"""After a failure, requests read nothing for this long."""
WARNING_SECONDS = 60.0
"""If Redis fails repeatedly, one warning a minute is logged."""
KEYS_AT_ONCE = 1_000
"""Keys that an operator's command scans or deletes in one step: it delays others by less than a millisecond."""


READ = """
if redis.call('TYPE', KEYS[1]).ok ~= 'string' or redis.call('STRLEN', KEYS[1]) > tonumber(ARGV[1]) then return '' end
if ARGV[2] ~= '' and redis.call('GETRANGE', KEYS[1], 0, #ARGV[2] - 1) == ARGV[2] then return '' end
return redis.call('GET', KEYS[1])
"""
SWAP = """
local is_ours = redis.call('TYPE', KEYS[1]).ok == 'string' and redis.call('STRLEN', KEYS[1]) <= tonumber(ARGV[1])
local known = is_ours and redis.call('GET', KEYS[1]) or ''
if redis.sha1hex(known) ~= ARGV[2] then return 0 end
redis.call('SET', KEYS[1], ARGV[3], 'EX', ARGV[4])
return 1
"""
"""Writes a value if the value that its writer has read is still there; returns whether it was."""
MOST_SWAPS = 20
"""Tries of one change: as many other writers would have to be first, one after another."""
SWAP_PAUSE_SECONDS = 0.02
"""The longest pause before the second try; it grows with each. Without it 40 of 60 writers at once gave up."""


class UnavailableError(Exception):
    """Redis has not answered in time, or has failed: its content is unknown."""


class SharedCache(Protocol):
    """The part of LiteLLM's RedisCache that this package uses."""

    def async_register_script(self, script: str) -> Callable[..., Awaitable[Any]]:
        """Return a function of `keys` and `args` that runs a Lua script."""


class SharedStore:
    """LiteLLM's Redis for all its users in this process. Used on the event loop only.

    Args:
        shared: Returns LiteLLM's Redis cache, None without one.
        note_failure: called for each command that fails or is late.

    Attributes:
        tasks: the running work, whether or not anybody waits for it.

    >>> SharedStore().is_shared
    False
    """

    def __init__(
        self, shared: Callable[[], SharedCache | None] = lambda: None, note_failure: Callable[[], object] = lambda: None
    ) -> None:
        self._shared, self._note_failure = shared, note_failure
        self._is_slow = False
        self._read_again_at = self._fast_at = 0.0
        self._warned_at = -WARNING_SECONDS
        self._hurried: dict[Hashable, asyncio.Task[Any]] = {}
        self.tasks: set[asyncio.Task[Any]] = set()

    @property
    def is_shared(self) -> bool:
        """Whether there is a Redis."""
        return self._shared() is not None

    async def run(self, script: str, key: str, args: Sequence[Any] = (), wait_seconds: float = DEAD_SECONDS) -> Any:
        """Return the result of a Lua script.

        The command runs to its end even if its caller is cancelled or has waited long enough.

        Args:
            script: names `KEYS[1]` and no other key.
            key: without the namespace that LiteLLM puts before it.
            args: the script's arguments.
            wait_seconds: how long the caller can wait. A request uses `briefly` instead.

        Raises:
            UnavailableError: there is no Redis, it fails, or it does not answer in time.
        """
        return await _result(self.begun(self._command(script, key, args)), wait_seconds)

    async def read(self, key: str, most_bytes: int, wait_seconds: float = DEAD_SECONDS, unless: str = "") -> bytes:
        """Return the value of a key, b"" if there is none, or if its size or type shows that it is not ours.

        Args:
            key: as in `run`.
            most_bytes: the size of the largest value that is ours.
            wait_seconds: as in `run`.
            unless: a value with this beginning counts as b"" too; "" for no such value.

        Raises:
            UnavailableError: as `run`.
        """
        return _bytes(await self.run(READ, key, [most_bytes, unless], wait_seconds))

    async def change(
        self,
        key: str,
        change: Callable[[bytes], Awaitable[bytes]],
        most_bytes: int,
        kept_seconds: int,
        wait_seconds: float = DEAD_SECONDS,
    ) -> bytes:
        """Change the value of a key, and return the new value. No change of another worker is lost.

        Args:
            key: as in `run`.
            change: returns the next value for a value that `read` returns; it is called again if another writer was first.
            most_bytes: a larger value is not ours, and is replaced.
            kept_seconds: when the value expires, counted from now.
            wait_seconds: as in `run`, for each command.

        Raises:
            UnavailableError: as `run`; or other writers were first at every try.
        """
        for number in range(MOST_SWAPS):
            if number:
                await asyncio.sleep(random.uniform(0, number * SWAP_PAUSE_SECONDS))  # noqa: S311 - no security use
            known = await self.read(key, most_bytes, wait_seconds)
            value = await change(known)
            if value == known:
                return value
            digest = sha1(known, usedforsecurity=False).hexdigest()
            if await self.run(SWAP, key, [most_bytes, digest, value, kept_seconds], wait_seconds):
                return value
        raise UnavailableError(f"{MOST_SWAPS} others have changed the same value first")

    async def briefly(self, work: Callable[[], Coroutine[Any, Any, T]], key: Hashable = None) -> T:
        """Return the result of work with this store; the work continues if it is not done in time.

        The work itself keeps its result for later requests.

        Args:
            work: runs scripts.
            key: the key of work that only reads: if the same work is running, this waits for it. None for work that writes.

        Raises:
            UnavailableError: Redis fails or has failed within PAUSE_SECONDS, or is slow; or too much work is running.
        """
        start = time.monotonic()
        task = self._hurried.get(key) if key is not None else None
        if task is None:
            if key is not None and start < self._read_again_at:
                raise UnavailableError("it has just failed")
            if len(self._hurried) >= (MOST_RUNNING_SLOW if self._is_slow else MOST_RUNNING):
                raise UnavailableError("too many commands at once")
            name = object() if key is None else key
            task = self._hurried[name] = self.begun(work())
            task.add_done_callback(lambda _: self._hurried.pop(name, None))
        try:
            result: T = await _result(task, 0.0 if self._is_slow else HURRY_SECONDS)
        except UnavailableError as error:
            if self._fast_at < start:  # else Redis answers, and other writers of the same value are first
                self._fail(error)
            raise
        return result

    def begun(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Return the task of work whose result possibly nobody awaits."""
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self._end)
        return task

    def _end(self, task: asyncio.Task[Any]) -> None:
        self.tasks.discard(task)
        if not task.cancelled():
            task.exception()  # else asyncio logs an error that nobody awaited

    async def _command(self, script: str, key: str, args: Sequence[Any]) -> Any:
        cache = self._shared()
        if cache is None:
            raise UnavailableError("LiteLLM has no Redis")
        start = time.monotonic()
        try:
            found = await asyncio.wait_for(cache.async_register_script(script)(keys=[key], args=list(args)), DEAD_SECONDS)
        except Exception as error:
            self._read_again_at = time.monotonic() + PAUSE_SECONDS
            self._fail(error)
            raise UnavailableError(repr(error)) from error
        now = time.monotonic()
        self._is_slow = now - start > SLOW_SECONDS
        if not self._is_slow:
            self._fast_at = now
        return found

    def _fail(self, error: Exception) -> None:
        """Let no request wait until a command is fast again, and warn about it once."""
        self._note_failure()
        now = time.monotonic()
        if not self._is_slow and now - self._warned_at >= WARNING_SECONDS:
            self._warned_at = now
            logger.warning("Redis is slow or fails, and no request waits for it until it is fast again: %r", error)
        self._is_slow = True


async def keys_like(client: Any, pattern: str) -> list[bytes]:
    """Return the keys that end in a pattern, for an operator's command with its own connection.

    LiteLLM may put a namespace before each key, which only the proxy knows. The search takes longer in a larger Redis, and
    blocks nobody. Raises the connection's errors.
    """
    return sorted({key async for key in client.scan_iter(match=f"*{pattern}", count=KEYS_AT_ONCE)})  # some come twice


async def delete_keys(client: Any, keys: Sequence[bytes]) -> int:
    """Delete keys, also on several nodes of a cluster; return how many still existed; raises as `keys_like`."""
    parts = (keys[start : start + KEYS_AT_ONCE] for start in range(0, len(keys), KEYS_AT_ONCE))
    return sum([await client.delete(*part) for part in parts])


def _bytes(found: Any) -> bytes:
    return found if isinstance(found, bytes) else str(found).encode()


async def _result(task: asyncio.Task[T], wait_seconds: float) -> T:
    """Return the result of a task, which continues if the time is over or the caller is cancelled.

    Raises:
        UnavailableError: the time is over.
    """
    if not task.done():
        await asyncio.wait({task}, timeout=wait_seconds)
    if not task.done():
        raise UnavailableError(f"no answer within {wait_seconds:g} s")
    return task.result()
