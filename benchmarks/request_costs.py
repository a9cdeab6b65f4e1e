"""What a session's requests cost behind a contestant, one after another, with a provider that caches prefixes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from itertools import pairwise, takewhile
from typing import Any

import litellm
from contestants import SUMMARISED, Contestant, size
from results import OVER_FRACTION, Session

PRICED = {"openai-chat": "gpt-5", "anthropic": "claude-sonnet-4-5"}
"""A model of each format whose prices LiteLLM knows: one caches by itself, one has a price for writing to the cache."""


@dataclass(frozen=True, slots=True)
class Requests:
    """What one contestant sent for some requests.

    Attributes:
        number: how many requests these are.
        over_budget: how many of them exceed the budget.
        tokens: of all their messages.
        cached_tokens: those in messages that the request before began with, too.
        usd: what their input costs by LiteLLM's price list.
    """

    number: int = 0
    over_budget: int = 0
    tokens: int = 0
    cached_tokens: int = 0
    usd: float = 0.0

    def __add__(self, other: Requests) -> Requests:
        """Return both together."""
        return Requests(*map(sum, zip(astuple(self), astuple(other), strict=True)))


def contexts(session: Session, budget_tokens: int, most: int) -> list[list[Any]]:
    """Return the last context that fits the budget and up to `most` that follow it; none where the session is smaller.

    A context is what stands before an assistant's message that follows another's.
    """
    messages = session.messages
    places = [
        t for t in range(1, len(messages)) if messages[t]["role"] == "assistant" and messages[t - 1]["role"] != "assistant"
    ]
    found = [messages[:t] for t in places]
    fitting = sum(1 for _ in takewhile(lambda context: size(context) <= budget_tokens, found))
    return found[fitting - 1 :][: most + 1] if 0 < fitting < len(found) else []


def sent(name: str, contestant: Contestant, session: Session, found: list[list[Any]], budget: int) -> Iterator[list[Any]]:
    """Yield what a contestant sends for each context; one that replaces its client's history is given what it left."""
    history: list[Any] = []
    seen = 0
    for context in found:
        history = [*history, *context[seen:]] if name == SUMMARISED else context
        history, seen = contestant(json.loads(json.dumps(history)), None, session.format, budget), len(context)
        yield history


def measured(name: str, contestant: Contestant, session: Session, found: list[list[Any]], budget_tokens: int) -> Requests:
    """Return what a contestant sends for all contexts but the first; a cache holds what the request before has sent."""
    total = Requests()
    for before, messages in pairwise(sent(name, contestant, session, found, budget_tokens)):
        shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(messages, before, strict=False)))
        tokens, cached_tokens = size(messages), size(messages[:shared])
        usd = input_usd(PRICED[session.format], tokens - cached_tokens, cached_tokens)
        total += Requests(1, int(tokens > OVER_FRACTION * budget_tokens), tokens, cached_tokens, usd)
    return total


def input_usd(model: str, new_tokens: int, cached_tokens: int) -> float:
    """Return the price of a request's input: what is new is written to the cache where the provider has a price for that."""
    prices = litellm.model_cost[model]
    written = prices.get("cache_creation_input_token_cost", prices["input_cost_per_token"])
    return new_tokens * written + cached_tokens * prices["cache_read_input_token_cost"]
