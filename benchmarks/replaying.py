"""The requests of a session as received, as compacted to a budget, and with the oldest exchanges cut at each request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ctx_hooks.compaction.cost import Prices, cost_of
from ctx_hooks.compaction.history import History
from ctx_hooks.compaction.message_index import digest_of, message_stats, request_points
from ctx_hooks.compaction.prefix_stable import compacted
from ctx_hooks.compaction.thresholds import Thresholds
from ctx_hooks.conversation.model import Conversation, Format
from ctx_hooks.formats import WIRE_FORMATS
from ctx_hooks.formats.reader import MessageReader
from ctx_hooks.tokens.budget import Budget
from ctx_hooks.tokens.counter import DEFAULT, Counter
from ctx_hooks.tokens.units import LocalTokens, ProviderTokens

CACHE_PRICES = Prices(plain=1.0, cache_read=0.1, cache_write=1.25)
"""Anthropic's prompt caching, relative to a plain input token."""


@dataclass(frozen=True, slots=True)
class Sent:
    """One request: its tokens, how many of them a prefix cache would serve, and the compactions up to it."""

    tokens: int
    cached_tokens: int
    compactions: int = 0


@dataclass(frozen=True, slots=True)
class Session:
    """A session's requests as received, as the policy sends them, and with the oldest exchanges cut at each request."""

    name: str
    uncompressed: tuple[Sent, ...]
    replayed: tuple[Sent, ...]
    sliding: tuple[Sent, ...]


def measure(name: str, fmt: Format, messages: Sequence[Any], budget_tokens: int) -> Session:
    """Return the requests of a session as received, as the policy sends them, and with a cut at each request."""
    counter = Counter(DEFAULT)
    codec = WIRE_FORMATS[fmt]
    goal = LocalTokens(budget_tokens)
    budget = Budget(goal, ProviderTokens(goal * 5 // 4), counter)
    reader = MessageReader(fmt, messages)
    index = message_stats(reader, counter)
    ways: tuple[list[Sent], ...] = ([], [], [])
    before: list[list[bytes]] = [[], [], []]
    for length in request_points(index):
        conversation = reader.conversation(0, length)
        history = History(reader, index[:length], LocalTokens(0), b"")
        outcome, cut = compacted(history, Thresholds(budget))
        slid = _newest(conversation, budget)
        for n, sent in enumerate((conversation, outcome.conversation, slid)):
            digests = [digest_of(m) for m in codec.write(sent)]
            sizes = [counter.message(m, fmt) for m in sent.messages]
            shared = next((i for i, (a, b) in enumerate(zip(digests, before[n], strict=False)) if a != b), len(before[n]))
            ways[n].append(Sent(sum(sizes), sum(sizes[: min(shared, len(sizes))]), cut.number if n == 1 else 0))
            before[n] = digests
    return Session(name, *(tuple(way) for way in ways))


def _newest(conversation: Conversation, budget: Budget) -> Conversation:
    """Return the system text and the newest exchanges that fit: a cut that moves with every request."""
    kept = [i for i, m in enumerate(conversation.messages) if m.role == "system"]
    room = budget.goal_tokens - sum(budget.counter.message(conversation.messages[i], conversation.format) for i in kept)
    newest: list[int] = []
    for exchange in reversed(conversation.exchanges):
        room -= sum(budget.counter.message(conversation.messages[i], conversation.format) for i in exchange)
        if room < 0:
            break
        newest = [*exchange, *newest]
    return conversation.with_messages(tuple(conversation.messages[i] for i in sorted({*kept, *newest})))


def price(sent: Sequence[Sent]) -> float:
    """Return the price of requests in plain input tokens."""
    return sum(cost_of(s.cached_tokens, s.tokens - s.cached_tokens, CACHE_PRICES) for s in sent)


def cache_share(sent: Sequence[Sent]) -> float:
    """Return the share of all prompt tokens that a prefix cache would serve."""
    return sum(s.cached_tokens for s in sent) / max(1, sum(s.tokens for s in sent))
