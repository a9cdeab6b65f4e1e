"""What compactions cost: whether one saves more than the prompt cache that it invalidates, and how low it compacts."""

from __future__ import annotations

import math
from dataclasses import dataclass

LEAST_TARGET_FRACTION = 0.25
"""Compacting to less loses names and saves nothing: what is written into the cache falls with the square of this share,
from a quarter to nothing by 6 %."""
SETTLING_TARGET_FRACTION = 0.5
"""The same where the compactions behind one write anew only what came since: less saves little (docs/fidelity.md)."""
LARGEST_TARGET_FRACTION = 0.625
"""At least 3/8 stay free until the next compaction: compactions stay rare where the cache costs nothing, too."""
TARGET_STEPS = 16
"""The share is rounded to sixteenths: what a few tokens of growth change is not worth a figure of its own."""
MISSED_NAMES_TOKENS = 25_000
"""A request misses this / budget x the freed share of the room of the names it needs: in real coding sessions 1.3 x that
share at 16,000 tokens and 1.2 x at 32,000, which is 20,000 and 39,000."""
MISSED_NAME_REQUESTS = 4
"""What a missed name costs, in prompts read: the request that goes wrong, the one that finds out, the one that looks the
name up, and the one done again."""


@dataclass(frozen=True, slots=True)
class Prices:
    """What one input token costs plain, read from the provider's prompt cache, and written into it, in any one currency."""

    plain: float
    cache_read: float
    cache_write: float

    def __post_init__(self) -> None:
        if min(self.plain, self.cache_read, self.cache_write) < 0:
            raise ValueError("a price cannot be negative")


CACHE_PRICES = Prices(plain=1.0, cache_read=0.1, cache_write=1.25)
"""Anthropic's prompt caching, relative to a plain input token; taken for a deployment whose prices are not known."""


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


def pays(before_tokens: int, after_tokens: int, expected_turns: int, prices: Prices, summary_cost: float = 0.0) -> bool:
    """Whether rewriting `before_tokens`, which the cache holds, to `after_tokens` pays within `expected_turns` requests.

    The rewrite is written into the cache once, and a summary of it costs `summary_cost`; afterwards each request reads the
    shorter prompt instead of the longer one.
    """
    rewrite = cost_of(0, after_tokens, prices) - cost_of(before_tokens, 0, prices) + summary_cost
    saved = (before_tokens - after_tokens) * prices.cache_read * expected_turns
    return saved > rewrite


def target_fraction_of(growth_tokens: float, room_tokens: int, prices: Prices) -> float:
    """Return what a compaction leaves, as the share of the room that costs least a request.

    Of the room R behind the fixed text a compaction frees F, which lasts 1 + F/g requests that grow by g each. Of a budget B
    a request pays for

    - reading the prompt, B - F/2 tokens on average;
    - writing what is left, R - F tokens, instead of reading it, once in 1 + F/g requests;
    - the names that it misses, MISSED_NAMES_TOKENS / B * F/R, of which each costs reading B MISSED_NAME_REQUESTS times.

    The sum is least where (F + g)^2 = (write - read) * g * (R + g) / (read * (missed / R - 1/2)): as in ordering stock
    (Harris 1913) a square root, so that twice the growth frees not twice as much.

    Args:
        growth_tokens: by how much a request is longer than the one before.
        room_tokens: what a request may have behind the text that no compaction makes smaller.
        prices: of input tokens.

    >>> [target_fraction_of(g, 32_000, CACHE_PRICES) for g in (200, 2_000, 4_000)]
    [0.625, 0.5, 0.3125]
    """
    if room_tokens <= 0:
        return LARGEST_TARGET_FRACTION
    kept = prices.cache_read * (MISSED_NAME_REQUESTS * MISSED_NAMES_TOKENS / room_tokens - 0.5)
    if kept <= 0:
        return LEAST_TARGET_FRACTION
    rewrite = max(0.0, prices.cache_write - prices.cache_read)
    free = math.sqrt(rewrite * growth_tokens * (room_tokens + growth_tokens) / kept) - growth_tokens
    fraction = round((1 - free / room_tokens) * TARGET_STEPS) / TARGET_STEPS
    return min(max(fraction, LEAST_TARGET_FRACTION), LARGEST_TARGET_FRACTION)
