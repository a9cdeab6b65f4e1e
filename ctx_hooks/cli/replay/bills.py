"""Figures of a session, with and without the plugin, that are summed up request by request."""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field

from ctx_hooks.cli.sums import Sums
from ctx_hooks.tokens.usage import Billed


@dataclass(slots=True)
class Bill(Sums):
    """What was or would have been sent, and what it costs. All tokens are the provider's.

    Attributes:
        requests: those that are answered.
        refused: those that exceed the window.
        compactions: how many of the sent ones begin with a new compaction.
        input_tokens: the prompts of those that are answered.
        cached_tokens: as much of these as the provider's prompt cache serves.
        output_tokens: their answers, as far as the history states them.
        dollars: the price of those that are answered.
        unpriced: how many of these have no price.
    """

    requests: int = 0
    refused: int = 0
    compactions: int = 0
    input_tokens: int = 0
    cached_tokens: int = 0
    output_tokens: int = 0
    dollars: float = 0.0
    unpriced: int = 0

    def answer(self, billed: Billed, dollars: float | None) -> None:
        """Count a request that is answered."""
        self.requests += 1
        self.input_tokens += billed.input_tokens
        self.cached_tokens += billed.cached_tokens
        self.output_tokens += billed.output_tokens
        self.dollars += dollars or 0.0
        self.unpriced += dollars is None

    @property
    def cached_fraction(self) -> float | None:
        """The share of the prompts that comes from the provider's cache; None without any."""
        return self.cached_tokens / self.input_tokens if self.input_tokens else None


@dataclass(slots=True)
class SessionBills:
    """The figures of one session, or of all.

    Attributes:
        name: what the history calls it; "" where it does not.
        model: what is asked.
        recorded: what the history says was billed, as far as it does.
        without: as it would be without the plugin.
        ways: as it would be in each way.
        not_held_tokens: what the client sent besides what the history holds, in each request.
        window_tokens: the smallest window of the models that are asked.
        sizes: for without and for each way, the prompt of each request in tokens, refused or not.
    """

    name: str
    model: str
    recorded: Bill
    without: Bill
    ways: list[Bill]
    not_held_tokens: int = 0
    window_tokens: int = 0
    sizes: list[array[int]] = field(default_factory=list)

    def add(self, other: SessionBills) -> None:
        """Add the figures of another session."""
        self.recorded += other.recorded
        self.without += other.without
        self.ways = [bill + others for bill, others in zip(self.ways, other.ways, strict=True)]


def no_bills(name: str, model: str, ways: int) -> SessionBills:
    """Return the figures of a session before its first request."""
    sizes = [array("q") for _ in range(ways + 1)]
    return SessionBills(name, model, Bill(), Bill(), [Bill() for _ in range(ways)], sizes=sizes)
