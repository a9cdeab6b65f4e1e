"""What the provider saw of a session, as a row of the table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from client import Client

from ctx_hooks.testing.rules import violations

HEAD = (
    "| client | version | route | deployment | window | finished | overflows | violations | upstream calls | cache share |\n"
    "|---|---|---|---|---|---|---|---|---|---|"
)


@dataclass(frozen=True, slots=True)
class Figures:
    """What the upstream requests of a session show.

    Attributes:
        overflows: How many the provider refused as larger than the window.
        violations: How many broke a rule of its format.
        upstream_calls: How many there were.
        cache_share: The share of all answered prompts that a prefix cache would have served.

    """

    overflows: int
    violations: int
    upstream_calls: int
    cache_share: float


def figures(records: Sequence[Mapping[str, Any]]) -> Figures:
    """Return the figures of the provider's records of a session."""
    broken = [bool(violations(r["format"], r["payload"])) for r in records]
    refused = [r["status"] != 200 for r in records]
    answered = [r for r in records if r["status"] == 200]
    prompt_tokens = sum(r["input_tokens"] for r in answered)
    cached_tokens = sum(r["cached_tokens"] for r in answered)
    overflows = sum(r and not b for r, b in zip(refused, broken, strict=True))
    return Figures(overflows, sum(broken), len(records), cached_tokens / max(1, prompt_tokens))


def line(client: Client, version: str, window: str, finished: str, found: Figures) -> str:
    """Return the row of a session, in Markdown."""
    counts = (found.overflows, found.violations, found.upstream_calls, f"{found.cache_share:.2f}")
    cells = (client.name, version, f"`{client.route}`", client.provider, window, finished, *counts)
    return f"| {' | '.join(map(str, cells))} |"
