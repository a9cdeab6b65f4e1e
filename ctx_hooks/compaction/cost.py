"""What compactions cost: whether one saves more than the prompt cache that it invalidates."""

from dataclasses import dataclass

EXPECTED_REQUESTS = 20
"""Further requests of a conversation that is compacted: an agent at its window is in the middle of its work."""


@dataclass(frozen=True, slots=True)
class Prices:
    """What one input token costs plain, read from the provider's prompt cache, and written into it, in any one currency."""

    plain: float
    cache_read: float
    cache_write: float

    def __post_init__(self) -> None:
        if min(self.plain, self.cache_read, self.cache_write) < 0:
            raise ValueError("a price cannot be negative")


@dataclass(frozen=True, slots=True)
class WritingPrices:
    """What one token costs that the model of summaries reads, and one that it writes, in the currency of `Prices`."""

    read: float
    written: float

    def of_summary(self, history_tokens: int, max_tokens: int) -> float:
        """Return what a summary costs at most: all of the history is read, and as much written as it may have."""
        return history_tokens * self.read + max_tokens * self.written


def cost_of(cached_tokens: int, new_tokens: int, prices: Prices) -> float:
    """Return the price of one request's input: what the cache serves, and what is written into it."""
    return cached_tokens * prices.cache_read + new_tokens * prices.cache_write


def pays(before_tokens: int, after_tokens: int, prices: Prices, summary_cost: float = 0.0) -> bool:
    """Whether rewriting `before_tokens`, which the cache holds, to `after_tokens` pays within EXPECTED_REQUESTS.

    The rewrite is written into the cache once, its summary costs `summary_cost`; then each request reads the shorter prompt.
    """
    rewrite = cost_of(0, after_tokens, prices) - cost_of(before_tokens, 0, prices) + summary_cost
    saved = (before_tokens - after_tokens) * prices.cache_read * EXPECTED_REQUESTS
    return saved > rewrite
