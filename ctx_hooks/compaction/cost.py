"""Whether a compaction saves more than the prompt cache that it invalidates costs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Prices:
    """What one input token costs plain, read from the provider's prompt cache, and written into it, in any one currency."""

    plain: float
    cache_read: float
    cache_write: float

    def __post_init__(self) -> None:
        if min(self.plain, self.cache_read, self.cache_write) < 0:
            raise ValueError("a price cannot be negative")


def cost_of(cached_tokens: int, new_tokens: int, prices: Prices) -> float:
    """Return the price of one request's input: what the cache serves, and what is written into it."""
    return cached_tokens * prices.cache_read + new_tokens * prices.cache_write


def pays(before_tokens: int, after_tokens: int, expected_turns: int, prices: Prices) -> bool:
    """Whether rewriting `before_tokens`, which the cache holds, to `after_tokens` pays within `expected_turns` requests.

    The rewrite is written into the cache once; afterwards each request reads the shorter prompt instead of the longer one.
    """
    rewrite = cost_of(0, after_tokens, prices) - cost_of(before_tokens, 0, prices)
    saved = (before_tokens - after_tokens) * prices.cache_read * expected_turns
    return saved > rewrite
