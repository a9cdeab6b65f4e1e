"""A bounded memory of what was computed about a text, found again by the text's digest.

Only a text itself leads to its entry, so what one tenant's conversation put in is of no use to another's.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from hashlib import blake2b
from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable

T = TypeVar("T")


def digest(text: str) -> bytes:
    """Return 16 bytes that stand for `text`; lone surrogates, which JSON can carry, are digested too."""
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


class ContentCache(Generic[T]):
    """A thread-safe map with least-recently-used eviction by total weight (`max_weight`, in the caller's unit)."""

    def __init__(self, max_weight: int) -> None:
        self._max_weight = max_weight
        self._weight = 0
        self._entries: OrderedDict[Hashable, tuple[T, int]] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Hashable, compute: Callable[[], T], weight: int = 1) -> T:
        """Return the entry of `key`, computed on first use. Two threads may compute the same entry; both are equal."""
        entries = self._entries
        with self._lock:
            found = entries.get(key)
            if found is not None:
                entries.move_to_end(key)
                return found[0]
        value = compute()
        if weight > self._max_weight:
            return value
        with self._lock:
            if key not in entries:
                entries[key] = (value, weight)
                self._weight += weight
            while self._weight > self._max_weight:
                self._weight -= entries.popitem(last=False)[1][1]
        return value

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def weight(self) -> int:
        """The total weight held now."""
        return self._weight
