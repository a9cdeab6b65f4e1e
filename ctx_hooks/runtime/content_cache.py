"""Bounded caches of values computed from a text, keyed by its digest: no tenant's entries reveal anything to another."""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from hashlib import sha256
from itertools import count
from sys import getsizeof
from typing import Any, Generic, TypeVar

T = TypeVar("T")

DIGEST_BYTES = 16
"""128 bits of a SHA-256: two contents share a digest neither by chance nor, within 2^64 tries, by intent."""
DEFAULT_LIMIT_BYTES = 256_000_000
ENTRY_BYTES = 400
"""Memory of an entry beside its key and value, in a map that has just grown and is five sixths empty (measured)."""
LONGEST_REMEMBERED_CHARS = 65_536
"""The steps of one compaction need the same digests a dozen times. Digests of longer texts are computed each time."""
UNKNOWN: Any = object()


def digest(text: str) -> bytes:
    """Return the 16-byte digest of `text`; it may contain lone surrogates, which JSON can carry."""
    return _digest(text) if len(text) > LONGEST_REMEMBERED_CHARS else _digests.get(text, lambda: _digest(text))


def digest_of_bytes(content: bytes) -> bytes:
    """Return the 16-byte digest of `content`."""
    return sha256(content).digest()[:DIGEST_BYTES]


def _digest(text: str) -> bytes:
    return digest_of_bytes(text.encode("utf-8", "surrogatepass"))


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


class Memory:
    """The entries of several caches in the order of their last use, with one limit of their memory. Thread-safe."""

    def __init__(self, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self.size_bytes = 0
        self._limit_bytes = limit_bytes
        self._entries: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._lock = threading.Lock()

    def known(self, key: Hashable) -> Any:
        """Return the value of a key, UNKNOWN if there is none."""
        with self._lock:
            value, _ = self._entries.get(key, (UNKNOWN, 0))
            if value is not UNKNOWN:
                self._entries.move_to_end(key)
            return value

    def keep(self, key: Hashable, value: Any, size_bytes: int) -> None:
        """Keep a value until more recently used ones need its room."""
        with self._lock:
            if key not in self._entries and size_bytes <= self._limit_bytes:
                self._entries[key] = value, size_bytes
                self.size_bytes += size_bytes
            self._evict()

    def limit(self, limit_bytes: int) -> None:
        """Bound the estimated memory; 0 keeps nothing."""
        with self._lock:
            self._limit_bytes = limit_bytes
            self._evict()

    def clear(self) -> None:
        """Remove every entry."""
        with self._lock:
            self._entries.clear()
            self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    def _evict(self) -> None:
        while self.size_bytes > self._limit_bytes:
            _, (_, size_bytes) = self._entries.popitem(last=False)
            self.size_bytes -= size_bytes


_memory = Memory()
set_limit_bytes, clear_all = _memory.limit, _memory.clear
_numbers = count()


class ContentCache(Generic[T]):
    """A cache of one kind of value, in the memory that all caches share; tests pass their own `memory`."""

    def __init__(self, memory: Memory | None = None) -> None:
        self._memory = _memory if memory is None else memory
        self._number = next(_numbers)

    def get(self, key: Hashable, compute: Callable[[], T], size_of: Callable[[T], int] | None = None) -> T:
        """Return the entry of `key`, computed on first use; `size_of` estimates the memory of a value that is not small."""
        own = self._number, key
        value: T = self._memory.known(own)
        if value is UNKNOWN:
            value = compute()
            key_bytes = getsizeof(key) + (sum(map(getsizeof, key)) if isinstance(key, tuple) else 0)
            self._memory.keep(own, value, ENTRY_BYTES + key_bytes + (size_of(value) if size_of else 0))
        return value


_digests: ContentCache[bytes] = ContentCache()
