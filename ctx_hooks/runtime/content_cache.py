"""Bounded caches of values computed from a text, keyed by the text's digest.

Only the text itself leads to its entry, so one tenant's entries reveal nothing to another. All caches of a process share
one limit. Frequent kinds of values are plain tuples of strings and numbers: Python's garbage collector does not track them,
and it stops every request while it runs.
"""

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Mapping
from functools import partial
from hashlib import sha256
from itertools import count
from sys import getsizeof
from typing import Any, Generic, TypeVar

T = TypeVar("T")

DIGEST_BYTES = 16
"""128 bits of a SHA-256, which most processors compute twice as fast as a BLAKE2: two contents share a digest neither by
chance nor, within 2^64 tries, by intent."""
DEFAULT_LIMIT_BYTES = 256_000_000
ENTRY_BYTES = 400
"""Memory of an entry beside its key and value: its size, a small value, and its place in a map that has just grown and is
five sixths empty (measured)."""
LONGEST_REMEMBERED_CHARS = 65_536
"""The steps of one compaction need the same digests a dozen times. Digests of longer texts are computed each time."""
AT_ONCE_CHARS = 1_000_000
"""A call that reads this many characters keeps Python's lock for about a millisecond; no other thread runs meanwhile."""

UNKNOWN: Any = object()
"""Represents no entry: None is a value."""
NO_ENTRY = UNKNOWN, 0


def digest(text: str) -> bytes:
    """Return the 16-byte digest of `text`; it may contain lone surrogates, which JSON can carry."""
    return _digest(text) if len(text) > LONGEST_REMEMBERED_CHARS else _digests.get(text, partial(_digest, text))


def digest_of_bytes(content: bytes) -> bytes:
    """Return the 16-byte digest of `content`."""
    return sha256(content).digest()[:DIGEST_BYTES]


def _digest(text: str) -> bytes:
    found = sha256()
    for start in range(0, len(text), AT_ONCE_CHARS):
        found.update(text[start : start + AT_ONCE_CHARS].encode("utf-8", "surrogatepass"))
    return found.digest()[:DIGEST_BYTES]


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


class Memory:
    """The entries of several caches in the order of their last use, and one limit for all. Thread-safe.

    Attributes:
        size_bytes: the estimated memory of the entries.
    """

    def __init__(self, limit_bytes: int = DEFAULT_LIMIT_BYTES) -> None:
        self.size_bytes = 0
        self._limit_bytes = limit_bytes
        self._entries: OrderedDict[Hashable, tuple[Any, int]] = OrderedDict()
        self._lock = threading.Lock()

    def known(self, key: Hashable) -> Any:
        """Return the value of a key, UNKNOWN if there is none."""
        with self._lock:
            value, _ = self._entries.get(key, NO_ENTRY)
            if value is not UNKNOWN:
                self._entries.move_to_end(key)
            return value

    def keep(self, key: Hashable, value: Any, size_bytes: int) -> None:
        """Keep a value until more recently used entries need its room."""
        with self._lock:
            if key not in self._entries and size_bytes <= self._limit_bytes:
                self._entries[key] = value, size_bytes
                self.size_bytes += size_bytes
            self._evict()

    def limit(self, limit_bytes: int) -> None:
        """Bound the estimated memory."""
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
set_limit_bytes = _memory.limit
"""Bounds the estimated memory of all caches together; 0 keeps nothing."""
clear_all = _memory.clear
"""Removes every entry of every cache."""
_numbers = count()


class ContentCache(Generic[T]):
    """A cache of one kind of value, in the memory that all caches share; tests pass their own `memory`."""

    def __init__(self, memory: Memory | None = None) -> None:
        self._memory = _memory if memory is None else memory
        self._number = next(_numbers)

    def get(self, key: Hashable, compute: Callable[[], T], size_of: Callable[[T], int] | None = None) -> T:
        """Return the entry of `key`, computed on first use. Two threads may compute the same entry, with equal results.

        `size_of` estimates a value's memory in bytes; without it only the entry and its key are counted.
        """
        own = self._number, key
        value: T = self._memory.known(own)
        if value is UNKNOWN:
            value = compute()
            self._memory.keep(own, value, ENTRY_BYTES + _key_bytes(key) + (size_of(value) if size_of else 0))
        return value


_digests: ContentCache[bytes] = ContentCache()
