"""The price of compactions: whether one saves more than the invalidated prompt cache costs."""

from dataclasses import dataclass

EXPECTED_REQUESTS = 20
"""Expected requests of a conversation after its compaction: an agent at its window is in the middle of its work."""


@dataclass(frozen=True, slots=True)
class Prices:
    """Prices of an input token, in one currency: plain, read from the provider's prompt cache, and written into it."""

    plain: float
    cache_read: float
    cache_write: float


def cost_of(cached_tokens: int, new_tokens: int, prices: Prices) -> float:
    """Return the price of one request's input: the tokens that the cache serves, and those written into it."""
    return cached_tokens * prices.cache_read + new_tokens * prices.cache_write


def pays(before_tokens: int, after_tokens: int, prices: Prices) -> bool:
    """Whether rewriting `before_tokens` of the cache to `after_tokens` pays within EXPECTED_REQUESTS.

    The provider writes the rewrite into its cache once; each later request reads less.
    """
    rewrite = cost_of(0, after_tokens, prices) - cost_of(before_tokens, 0, prices)
    saved = (before_tokens - after_tokens) * prices.cache_read * EXPECTED_REQUESTS
    return saved > rewrite
