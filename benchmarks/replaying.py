"""The requests of a session, and what a prefix cache serves of them and they cost."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from ctx_hooks.compaction.cost import Prices, cost_of
from ctx_hooks.compaction.cut_points import Thresholds
from ctx_hooks.compaction.history import History, digest_of, message_stats, request_points
from ctx_hooks.compaction.prefix_stable import compacted
from ctx_hooks.formats import WIRE_FORMATS, MessageReader
from ctx_hooks.tokens.budget import Budget

CACHE_PRICES = Prices(plain=1.0, cache_read=0.1, cache_write=1.25)
"""Anthropic's prompt caching, relative to a plain input token."""


@dataclass(frozen=True, slots=True)
class Sent:
    """One request: its tokens, how many of them a prefix cache would serve, and the compactions up to it."""

    tokens: int
    cached_tokens: int
    compactions: int = 0


def requests(fmt: Any, messages: list[Any], budget: Budget) -> Iterator[Sent]:
    """Yield each request of a session as it is sent."""
    index = message_stats(MessageReader(fmt, messages), budget.counter)
    before: list[bytes] = []
    for length in request_points(index):
        history = History(MessageReader(fmt, messages[:length]), index[:length], 0, b"")
        outcome, cut = compacted(history, Thresholds(budget, None))
        digests = [digest_of(m) for m in WIRE_FORMATS[fmt].write(outcome.conversation)]
        sizes = [budget.counter.message(m, fmt) for m in outcome.conversation.messages]
        pairs = enumerate(zip(digests, before, strict=False))
        shared = next((i for i, (a, b) in pairs if a != b), min(len(before), len(digests)))
        yield Sent(sum(sizes), sum(sizes[:shared]), cut.number)
        before = digests


def price(sent: Sequence[Sent]) -> float:
    """Return the price of requests in plain input tokens."""
    return sum(cost_of(s.cached_tokens, s.tokens - s.cached_tokens, CACHE_PRICES) for s in sent)


def cache_share(sent: Sequence[Sent]) -> float:
    """Return the share of all prompt tokens that a prefix cache would serve."""
    return sum(s.cached_tokens for s in sent) / max(1, sum(s.tokens for s in sent))
