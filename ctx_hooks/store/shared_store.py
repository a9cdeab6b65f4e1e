"""Scripts in LiteLLM's Redis. Once Redis answers late, no request waits for it until it is fast again."""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable, Coroutine, Hashable, Sequence
from hashlib import sha1
from typing import Any, TypeVar

from ctx_hooks.runtime.warnings import warn_once

T = TypeVar("T")

HURRY_SECONDS = 0.25
"""A hundred times the time of a Redis in the same data centre."""
SLOW_SECONDS = 0.05
"""A request may need three commands one after another. If Redis is slower, the wait for each is noticeable."""
DEAD_SECONDS = 30.0
"""A command without an answer is dropped with its connection. LiteLLM's own limit is 5 s, unless a URL configures Redis."""
MOST_RUNNING = 32
"""Concurrent work of requests."""
KEYS_AT_ONCE = 1_000
"""Keys that an operator's command scans or deletes in one step: it delays others by less than a millisecond."""

READ = """
if redis.call('TYPE', KEYS[1]).ok ~= 'string' or redis.call('STRLEN', KEYS[1]) > tonumber(ARGV[1]) then return '' end
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
MOST_SWAPS, SWAP_PAUSE_SECONDS = 20, 0.02
"""Tries of one change, and the longest pause before the second, which grows: without it 40 of 60 writers at once gave up."""


class UnavailableError(Exception):
    """Redis has not answered in time, or has failed: its content is unknown."""


class SharedStore:
    """LiteLLM's Redis (what `shared` returns, None without one) for all its users in this process, on the event loop only.

    `tasks` are the running work. `note_failure` is called for each late or failed command.
    """

    def __init__(self, shared: Callable[[], Any] = lambda: None, note_failure: Callable[[], object] = lambda: None) -> None:
        self._shared, self._note_failure = shared, note_failure
        self._is_slow = False
        self._hurried: dict[Hashable, asyncio.Task[Any]] = {}
        self.tasks: set[asyncio.Task[Any]] = set()

    @property
    def is_shared(self) -> bool:
        """Whether there is a Redis."""
        return self._shared() is not None

    async def run(self, script: str, key: str, args: Sequence[Any] = ()) -> Any:
        """Return the result of a Lua script of one key, without LiteLLM's namespace; it ends even if its caller leaves.

        A request calls this by `briefly`.

        Raises:
            UnavailableError: there is no Redis, it fails, or it does not answer within DEAD_SECONDS.
        """
        return await asyncio.shield(self.begun(self._command(script, key, args)))

    async def read(self, key: str, most_bytes: int) -> bytes:
        """Return the value of a key, b"" for none, a larger one, and one of another type; raises as `run`."""
        found = await self.run(READ, key, [most_bytes])
        return found if isinstance(found, bytes) else str(found).encode()

    async def change(
        self, key: str, change: Callable[[bytes], Awaitable[bytes]], most_bytes: int, kept_seconds: int
    ) -> bytes:
        """Change the value of a key, and return the new value, which expires. No change of another worker is lost.

        `change` makes the next value of what `read` returns; it is called again if another writer was first.

        Raises:
            UnavailableError: as `run`; or other writers were first at every try.
        """
        for number in range(MOST_SWAPS):
            if number:
                await asyncio.sleep(random.uniform(0, number * SWAP_PAUSE_SECONDS))  # noqa: S311 - no security use
            known = await self.read(key, most_bytes)
            value = await change(known)
            digest = sha1(known, usedforsecurity=False).hexdigest()
            if value == known or await self.run(SWAP, key, [most_bytes, digest, value, kept_seconds]):
                return value
        raise UnavailableError(f"{MOST_SWAPS} others have changed the same value first")

    async def briefly(self, work: Callable[[], Coroutine[Any, Any, T]], key: Hashable = None) -> T:
        """Return the result of work with this store; it continues if it is not done in time, and keeps its own result.

        Work that only reads has a `key`: if the same work is running, this waits for it.

        Raises:
            UnavailableError: Redis fails or is slow, or too much work is running.
        """
        task = self._hurried.get(key) if key is not None else None
        if task is None:
            if len(self._hurried) >= MOST_RUNNING:
                raise UnavailableError("too many commands at once")
            name = object() if key is None else key
            task = self._hurried[name] = self.begun(work())
            task.add_done_callback(lambda _: self._hurried.pop(name, None))
        await asyncio.wait({task}, timeout=0.0 if self._is_slow else HURRY_SECONDS)
        if task.done():
            result: T = task.result()
            return result
        error = UnavailableError(f"no answer within {HURRY_SECONDS:g} s")
        self._fail(error)
        raise error

    def begun(self, work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
        """Return the task of work whose result possibly nobody awaits."""
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)
        task.add_done_callback(lambda task: task.cancelled() or task.exception())  # asyncio logs an error that nobody reads
        return task

    async def _command(self, script: str, key: str, args: Sequence[Any]) -> Any:
        cache = self._shared()
        if cache is None:
            raise UnavailableError("LiteLLM has no Redis")
        start = time.monotonic()
        try:
            found = await asyncio.wait_for(cache.async_register_script(script)(keys=[key], args=list(args)), DEAD_SECONDS)
        except Exception as error:
            self._fail(error)
            raise UnavailableError(repr(error)) from error
        self._is_slow = time.monotonic() - start > SLOW_SECONDS
        return found

    def _fail(self, error: Exception) -> None:
        self._note_failure()
        if not self._is_slow:
            warn_once(f"Redis is slow or fails, and no request waits for it until it is fast again: {error!r}")
        self._is_slow = True


async def keys_like(client: Any, pattern: str) -> list[bytes]:
    """Return the keys that end in a pattern, after any namespace, for an operator's command; raises the client's errors."""
    return sorted({key async for key in client.scan_iter(match=f"*{pattern}", count=KEYS_AT_ONCE)})  # some come twice


async def delete_keys(client: Any, keys: Sequence[bytes]) -> int:
    """Delete keys, also on several nodes of a cluster; return how many existed; raises as `keys_like`."""
    parts = (keys[start : start + KEYS_AT_ONCE] for start in range(0, len(keys), KEYS_AT_ONCE))
    return sum([await client.delete(*part) for part in parts])
