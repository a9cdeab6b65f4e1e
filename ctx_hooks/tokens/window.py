"""How large a model's window is, and how much of it a request may fill."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ctx_hooks.policy.settings import Policy

DEFAULT_WINDOW_TOKENS = 128_000
"""The window of a model that nobody knows (nanobot)."""
LEAST_BUDGET_TOKENS = 4_096
"""The history's budget never falls below this (nanobot), unless the window itself is smaller."""
LARGEST_RESERVE_FRACTION = 0.25
"""A fixed reserve above this share of the window gives way to the scaled one: a small window must stay usable."""


def reserve_tokens_of(window_tokens: int, policy: Policy) -> int:
    """Return the tokens kept free for the answer: the fixed reserve (pi), or its scaled form in a small window."""
    if policy.reserve_tokens <= window_tokens * LARGEST_RESERVE_FRACTION:
        return policy.reserve_tokens
    return int(window_tokens * policy.reserve_fraction)


def budget_tokens_of(window_tokens: int, policy: Policy) -> int:
    """Return how many tokens a request may have: the window less the reserve."""
    budget = window_tokens - reserve_tokens_of(window_tokens, policy)
    return max(budget, min(LEAST_BUDGET_TOKENS, window_tokens))


def window_tokens_of(override: int | None, configured: object, known: int | None) -> int:
    """Return the window in tokens: the policy's override (0 is a value), the deployment's own figure, LiteLLM's, 128,000.

    A configured value that is no positive number is passed over.
    """
    if override is not None:
        return override
    if isinstance(configured, int) and not isinstance(configured, bool) and configured > 0:
        return configured
    return known or DEFAULT_WINDOW_TOKENS
