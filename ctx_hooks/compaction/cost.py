"""What compactions cost: whether one saves more than the prompt cache that it invalidates, and how low it compacts."""

from __future__ import annotations

import math
from dataclasses import dataclass

LEAST_TARGET_FRACTION = 0.25
"""Compacting to less loses names and saves nothing: what is written into the cache falls with the square of this share,
from a quarter to nothing by 6 %."""
LARGEST_TARGET_FRACTION = 0.625
"""At least 3/8 stay free until the next compaction: compactions stay rare where the cache costs nothing, too."""
TARGET_STEPS = 16
"""The share is rounded to sixteenths: what a few tokens of growth change is not worth a figure of its own."""
LOST_NAME_TOKENS = 25_000
"""A request misses this x freed / room^2 of the names it needs, the larger the room the fewer. Between a quarter and 0.7 left,
real coding sessions missed 1.3 x the freed share at 16,000 tokens and 1.2 x at 32,000, which is 20,000 and 39,000."""
LOST_NAME_REQUESTS = 3
"""What a missed name costs: the request that goes wrong without it, the one that looks it up, and the one done again."""


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


def target_fraction_of(growth_tokens: float, budget_tokens: int, fixed_tokens: int, prices: Prices) -> float:
    """Return what a compaction leaves, as the share of the room behind the fixed text that costs least a request.

    Of the room R a compaction frees F, which lasts n = 1 + F/g requests that grow by g each. A request pays for

    - reading the prompt, B - F/2 tokens of a budget B on average;
    - 1/n of writing what is left, R - F tokens, instead of reading it;
    - the names that it misses, LOST_NAME_TOKENS * F/R^2, of which each costs LOST_NAME_REQUESTS times reading B.

    The sum is least at F + g = sqrt((write - read) * g * (R + g) / (read * (missed * B/R^2 - 1/2))), the square root of
    ordering stock (Harris 1913): the dearer writing and the faster the growth, the more is freed at once.

    Args:
        growth_tokens: by how much a request is longer than the one before.
        budget_tokens: the most that a request may have.
        fixed_tokens: what no compaction makes smaller.
        prices: of input tokens.

    >>> [target_fraction_of(g, 32_000, 0, CACHE_PRICES) for g in (200, 1_000, 4_000)]
    [0.625, 0.5625, 0.25]
    """
    room = budget_tokens - fixed_tokens
    if room <= 0:
        return LARGEST_TARGET_FRACTION
    missed = LOST_NAME_REQUESTS * LOST_NAME_TOKENS * budget_tokens / room**2
    saved = prices.cache_read * (missed - 0.5)
    if saved <= 0:
        return LEAST_TARGET_FRACTION
    rewrite = max(0.0, prices.cache_write - prices.cache_read)
    free = math.sqrt(rewrite * growth_tokens * (room + growth_tokens) / saved) - growth_tokens
    fraction = round((1 - free / room) * TARGET_STEPS) / TARGET_STEPS
    return min(max(fraction, LEAST_TARGET_FRACTION), LARGEST_TARGET_FRACTION)
