"""The requests of a session, and what a prefix cache serves of them and they cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ctx_hooks.compaction.cost import Prices, cost_of

CACHE_PRICES = Prices(plain=1.0, cache_read=0.1, cache_write=1.25)
"""Anthropic's prompt caching, relative to a plain input token."""


@dataclass(frozen=True, slots=True)
class Sent:
    """One request: its tokens, how many of them a prefix cache would serve, and the compactions up to it."""

    tokens: int
    cached_tokens: int
    compactions: int = 0


def price(sent: Sequence[Sent]) -> float:
    """Return the price of requests in plain input tokens."""
    return sum(cost_of(s.cached_tokens, s.tokens - s.cached_tokens, CACHE_PRICES) for s in sent)


def cache_share(sent: Sequence[Sent]) -> float:
    """Return the share of all prompt tokens that a prefix cache would serve."""
    return sum(s.cached_tokens for s in sent) / max(1, sum(s.tokens for s in sent))
