"""How small the next attempt has to be. Every rung is smaller than the one before, and their number is bounded."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ctx_hooks.store.attempts import Attempt

SAFETY_FRACTION = 0.97
"""Providers count a request a little differently each time it changes its form."""
BLIND_FRACTIONS = (0.70, 0.45, 0.25)
"""Goals of the rungs as shares of what was refused, when the error gave no figures."""
SMALLER_FRACTION = 0.95
"""Each attempt is at least 5 % smaller than the one before."""


@dataclass(frozen=True, slots=True)
class Rung:
    """The goal of one retry in our own count, and whether the newest tool results may be cut to reach it."""

    goal_tokens: int
    cut_newest: bool


def rung_of(number: int, rungs: int, budget_tokens: int, attempt: Attempt | None, reserve_tokens: int) -> Rung:
    """Return the rung `number` (from 1) of `rungs`.

    `budget_tokens` is what the window was believed to leave, `attempt` what was refused. With the provider's limit and
    count the goal is exact: its limit less the reserve, in our tokens. With nothing known it is a share of what was sent.
    """
    last = number >= rungs
    refused = attempt.sent_tokens if attempt else budget_tokens
    ceiling = int(refused * SMALLER_FRACTION)
    overflow = attempt.overflow if attempt else None
    blind = int(min(refused, budget_tokens) * BLIND_FRACTIONS[min(number, len(BLIND_FRACTIONS)) - 1])
    if overflow is None or not overflow.limit_tokens:
        return Rung(min(blind, ceiling), cut_newest=last)
    counted = overflow.input_tokens or 0
    # Without the provider's count its tokens are taken to be a little smaller than ours, more so at each rung.
    ratio = counted / refused if counted > 0 and refused > 0 else 1.0 + 0.3 * number
    limit = overflow.limit_tokens - min(reserve_tokens, overflow.limit_tokens // 4)
    goal = int(limit / ratio * SAFETY_FRACTION**number)
    return Rung(max(1, min(goal, ceiling)), cut_newest=last)
