"""What a session's requests cost behind a contestant, one after another, with a provider that caches prefixes.

    uv run --group bench python benchmarks/request_costs.py SESSIONS.jsonl... [--window 64000]

prints it for whole sessions in a window: a request that exceeds it is neither answered nor paid.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import astuple, dataclass
from itertools import pairwise, takewhile
from pathlib import Path
from typing import Any

import litellm
from contestants import SUMMARISED, Contestant, replayed, size
from results import OVER_FRACTION, Session, sessions

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
    """Return the last context that fits the budget and up to `most` that follow it; none where the session is smaller."""
    found = every_context(session)
    fitting = sum(1 for _ in takewhile(lambda context: size(context) <= budget_tokens, found))
    return found[fitting - 1 :][: most + 1] if 0 < fitting < len(found) else []


def every_context(session: Session) -> list[list[Any]]:
    """Return what stands before each assistant's message that follows another's."""
    roles = [message["role"] for message in session.messages]
    places = [t for t in range(1, len(roles)) if roles[t] == "assistant" and roles[t - 1] != "assistant"]
    return [session.messages[:t] for t in places]


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
        total += priced(session.format, messages, before, int(OVER_FRACTION * budget_tokens))
    return total


def priced(fmt: str, messages: list[Any], before: list[Any], most_tokens: int) -> Requests:
    """Return one request after another, whose messages the provider has in its cache."""
    shared = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(messages, before, strict=False)))
    tokens, cached_tokens = size(messages), size(messages[:shared])
    usd = input_usd(PRICED[fmt], tokens - cached_tokens, cached_tokens)
    return Requests(1, int(tokens > most_tokens), tokens, cached_tokens, usd)


def answered(contestant: Contestant, session: Session, window_tokens: int) -> Requests:
    """Return the answered requests of a whole session; `over_budget` are those that exceed the window."""
    total, before = Requests(), []
    for context in every_context(session):
        messages = contestant(context, None, session.format, window_tokens * 4 // 5)
        request = priced(session.format, messages, before, window_tokens)
        total += Requests(over_budget=1) if request.over_budget else request
        before = before if request.over_budget else messages
    return total


def input_usd(model: str, new_tokens: int, cached_tokens: int) -> float:
    """Return the price of a request's input: what is new is written to the cache where the provider has a price for that."""
    prices = litellm.model_cost[model]
    written = prices.get("cache_creation_input_token_cost", prices["input_cost_per_token"])
    return new_tokens * written + cached_tokens * prices["cache_read_input_token_cost"]


def main() -> None:
    """Print the requests and their price without the package and with it."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--window", type=int, default=64_000)
    given = parser.parse_args()
    found = list(sessions(given.paths))
    for name, contestant in {"without": lambda messages, *_: messages, "with": replayed}.items():
        sums = sum((answered(contestant, session, given.window) for session in found), Requests())
        share = sums.cached_tokens / max(1, sums.tokens)
        figures = f"{sums.number} answered, {sums.over_budget} refused, {sums.tokens:,} tokens, {share:.2f} cached"
        print(f"{name}: {figures}, ${sums.usd:.2f}, ${sums.usd / max(1, sums.number):.3f} an answer")


if __name__ == "__main__":
    main()
