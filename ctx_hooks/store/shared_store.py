"""Scripts in LiteLLM's Redis, which no request waits for longer than once.

The first request that Redis answers too late waits HURRY_SECONDS. Until Redis is fast again, later requests do not wait:
their commands run in the background, and what these find is there for the requests after them.
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
"""How long a request waits for a Redis that was fast before: a hundred times what one in the same data centre takes."""
SLOW_SECONDS = 0.05
"""A request may need three commands one after another. Of a slower Redis it would wait noticeably for each."""
DEAD_SECONDS = 30.0
"""A command without an answer is given up, and its connection with it. LiteLLM's own limit is 5 s, unless Redis is named by
a URL."""
MOST_RUNNING, MOST_RUNNING_SLOW = 32, 8
"""Work of requests at once. LiteLLM's pool has 50 connections unless configured, and its own commands need most of them."""
PAUSE_SECONDS = 1.0
"""After a failure nothing is read for requests for so long."""
WARNING_SECONDS = 60.0
"""A Redis that fails in turns is warned of once a minute."""
KEYS_AT_ONCE = 1_000
"""Looked at, or deleted, for an operator before Redis serves others again: below a millisecond."""


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
"""Writes a value where the one that its writer has read is still there, and returns whether it was."""
MOST_SWAPS = 20
"""Of one change: as many other writers would have to be first, one after another."""
SWAP_PAUSE_SECONDS = 0.02
"""The longest pause before the second try; it grows with each. Without it 40 of 60 writers at once gave up."""


class UnavailableError(Exception):
    """Redis has not answered in time, or has failed: what it holds is not known."""


class SharedCache(Protocol):
    """The part of LiteLLM's RedisCache that is used."""

    def async_register_script(self, script: str) -> Callable[..., Awaitable[Any]]:
        """Return a function of `keys` and `args` that runs a Lua script."""


class SharedStore:
    """LiteLLM's Redis for all its users in this process. Used on the event loop only.

    Args:
        shared: Returns LiteLLM's Redis cache, None without one.
        note_failure: is called with each command that fails or is late.

    Attributes:
        tasks: the work that is under way, whether or not anybody waits for it.

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
        """Return what a Lua script answers.

        The command ends by itself if its caller is cancelled or has waited long enough.

        Args:
            script: names `KEYS[1]` and no other key.
            key: without the namespace that LiteLLM puts before it.
            args: of the script.
            wait_seconds: how long the caller can wait. A request uses `briefly` instead.

        Raises:
            UnavailableError: there is no Redis, it fails, or it does not answer in time.
        """
        return await _result(self.begun(self._command(script, key, args)), wait_seconds)

    async def read(self, key: str, most_bytes: int, wait_seconds: float = DEAD_SECONDS, unless: str = "") -> bytes:
        """Return the value of a key, b"" for none, and for one that is too large or of another type to be ours.

        Args:
            key: as in `run`.
            most_bytes: the size of the largest value that is ours.
            wait_seconds: as in `run`.
            unless: for a value that begins so b"" is returned too; "" for any.

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
        """Change the value of a key, and return the value that it has then. No change of another worker is lost.

        Args:
            key: as in `run`.
            change: returns the next value of one that `read` returns; it is asked again where another writer was first.
            most_bytes: a larger value is none of ours, and is replaced.
            kept_seconds: when the value expires, counted from now.
            wait_seconds: as in `run`, for each command.

        Raises:
            UnavailableError: as `run`; or others change the value all the time.
        """
        for number in range(MOST_SWAPS):
            if number:
                await asyncio.sleep(random.uniform(0, number * SWAP_PAUSE_SECONDS))  # noqa: S311 - it protects nothing
            known = await self.read(key, most_bytes, wait_seconds)
            value = await change(known)
            if value == known:
                return value
            digest = sha1(known, usedforsecurity=False).hexdigest()
            if await self.run(SWAP, key, [most_bytes, digest, value, kept_seconds], wait_seconds):
                return value
        raise UnavailableError(f"{MOST_SWAPS} others have changed the same value first")

    async def briefly(self, work: Callable[[], Coroutine[Any, Any, T]], key: Hashable = None) -> T:
        """Return the result of work with this store, which goes on if it is not done in time.

        The work itself keeps what it finds for later requests.

        Args:
            work: runs scripts.
            key: of work that only reads: if the same is under way, that is waited for. None for work that writes.

        Raises:
            UnavailableError: Redis fails or has failed within PAUSE_SECONDS, or is slow; or enough work is under way.
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
            if self._fast_at < start:  # else it answers: other writers of the same value are first
                self._fail(error)
            raise
        return result

    def begun(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Return the task of work that nobody may be waiting for when it ends."""
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self._end)
        return task

    def _end(self, task: asyncio.Task[Any]) -> None:
        self.tasks.discard(task)
        if not task.cancelled():
            task.exception()  # else asyncio logs an error that nobody has waited for

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
        """Let no request wait until a command is fast again, and warn once of that."""
        self._note_failure()
        now = time.monotonic()
        if not self._is_slow and now - self._warned_at >= WARNING_SECONDS:
            self._warned_at = now
            logger.warning("Redis is slow or fails, and no request waits for it until it is fast again: %r", error)
        self._is_slow = True


async def keys_like(client: Any, pattern: str) -> list[bytes]:
    """Return the keys that end in a pattern, for an operator's command, over a connection of its own.

    LiteLLM may put a namespace before each key, which only the proxy knows. The search takes the longer the larger the Redis
    is, and holds up nobody. Raises whatever the connection raises.
    """
    return sorted({key async for key in client.scan_iter(match=f"*{pattern}", count=KEYS_AT_ONCE)})  # some come twice


async def delete_keys(client: Any, keys: Sequence[bytes]) -> int:
    """Delete keys, in a cluster of any of its nodes, and return how many there still were; raises as `keys_like`."""
    parts = (keys[start : start + KEYS_AT_ONCE] for start in range(0, len(keys), KEYS_AT_ONCE))
    return sum([await client.delete(*part) for part in parts])


def _bytes(found: Any) -> bytes:
    return found if isinstance(found, bytes) else str(found).encode()


async def _result(task: asyncio.Task[T], wait_seconds: float) -> T:
    """Return the result of a task that goes on if the time is over, or the caller is cancelled.

    Raises:
        UnavailableError: the time is over.
    """
    if not task.done():
        await asyncio.wait({task}, timeout=wait_seconds)
    if not task.done():
        raise UnavailableError(f"no answer within {wait_seconds:g} s")
    return task.result()
