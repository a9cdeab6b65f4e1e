"""Bounded caches of what was computed from a text, keyed by the text's digest.

Only the text itself leads to its entry, so one tenant's entries tell another nothing. All caches of a process share one
limit. Values of which there are many are plain tuples of strings and numbers: Python's garbage collector, which stops every
request while it runs, does not track them.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Mapping
from functools import lru_cache
from hashlib import sha256
from sys import getsizeof
from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

T = TypeVar("T")

DIGEST_BYTES = 16
"""128 bits of a SHA-256, which most processors compute twice as fast as a BLAKE2: two contents share a digest neither by
chance nor, within 2^64 tries, by intent."""
DEFAULT_LIMIT_BYTES = 256_000_000
ENTRY_BYTES = 240
"""Memory of an entry beside its key and value: its place in two maps, its size and a small value (measured)."""
RECENT_TEXTS, LONGEST_RECENT_CHARS = 2_048, 8_192
RECENT_LONG_TEXTS, LONGEST_RECENT_LONG_CHARS = 256, 65_536
"""The steps of one compaction ask for the same digests a dozen times. So many texts up to these lengths are held for that,
32 MB at most where they are ASCII."""

_UNKNOWN: Any = object()
"""Stands for no entry: None is a value."""
_caches: list[ContentCache[Any]] = []


def digest(text: str) -> bytes:
    """Return 16 bytes that stand for `text`; lone surrogates, which JSON can carry, are digested too."""
    if len(text) <= LONGEST_RECENT_CHARS:
        return _recent_digest(text)
    return _recent_long_digest(text) if len(text) <= LONGEST_RECENT_LONG_CHARS else _digest(text)


def digest_of_bytes(content: bytes) -> bytes:
    """Return 16 bytes that stand for `content`."""
    return sha256(content).digest()[:DIGEST_BYTES]


def _digest(text: str) -> bytes:
    return digest_of_bytes(text.encode("utf-8", "surrogatepass"))


_recent_digest = lru_cache(maxsize=RECENT_TEXTS)(_digest)
_recent_long_digest = lru_cache(maxsize=RECENT_LONG_TEXTS)(_digest)


def set_limit_bytes(limit_bytes: int) -> None:
    """Bound the estimated memory of all caches together; 0 keeps nothing but the digests of recent texts."""
    for cache in _caches:
        cache.limit(int(limit_bytes * cache.share))


def clear_all() -> None:
    """Remove every entry of every cache."""
    _recent_digest.cache_clear()
    _recent_long_digest.cache_clear()
    for cache in _caches:
        cache.clear()


def json_bytes(value: Any) -> int:
    """Return the memory of a JSON value, in bytes."""
    held = 0
    waiting = [value]
    while waiting:
        found = waiting.pop()
        held += getsizeof(found)
        if isinstance(found, Mapping):
            waiting += found.values()
        elif isinstance(found, (list, tuple)):
            waiting += found
    return held


def _key_bytes(key: Hashable) -> int:
    return getsizeof(key) + (sum(map(getsizeof, key)) if isinstance(key, tuple) else 0)


class ContentCache(Generic[T]):
    """A thread-safe map with least-recently-used eviction.

    Args:
        share: Its part of the common limit; the shares of all caches sum to 1.

    """

    def __init__(self, share: float) -> None:
        self.share = share
        self._max_bytes = int(DEFAULT_LIMIT_BYTES * share)
        self._bytes = 0
        self._entries: OrderedDict[Hashable, T] = OrderedDict()
        self._sizes: dict[Hashable, int] = {}
        self._lock = threading.Lock()
        _caches.append(self)

    def get(self, key: Hashable, compute: Callable[[], T], size_of: Callable[[T], int] | None = None) -> T:
        """Return the entry of `key`, computed on first use. Two threads may compute the same entry; both are equal.

        `size_of` estimates a value's memory in bytes; without it the entry and its key alone are counted.
        """
        entries = self._entries
        with self._lock:
            known: T = entries.get(key, _UNKNOWN)
            if known is not _UNKNOWN:
                entries.move_to_end(key)
                return known
        value = compute()
        size = ENTRY_BYTES + _key_bytes(key) + (size_of(value) if size_of else 0)
        with self._lock:
            if key not in entries and size <= self._max_bytes:
                entries[key] = value
                self._sizes[key] = size
                self._bytes += size
            self._evict()
        return value

    def limit(self, max_bytes: int) -> None:
        """Bound this cache to `max_bytes`."""
        with self._lock:
            self._max_bytes = max_bytes
            self._evict()

    def clear(self) -> None:
        """Remove every entry."""
        with self._lock:
            self._entries.clear()
            self._sizes.clear()
            self._bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def size_bytes(self) -> int:
        """The estimated memory of the entries."""
        return self._bytes

    def _evict(self) -> None:
        while self._bytes > self._max_bytes:
            key, _ = self._entries.popitem(last=False)
            self._bytes -= self._sizes.pop(key)
