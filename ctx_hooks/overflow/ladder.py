"""What the next attempt has to be after an overflow: every rung smaller than the one before, and few of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ctx_hooks.overflow.recognise import Overflow
    from ctx_hooks.store.attempts import Attempt

SMALLER_FRACTION = 0.95
"""Each attempt is at least 5 % smaller than the one before."""
BLIND_FRACTIONS = (0.6, 0.35, 0.2)
"""What is taken for the limit, as shares of what was refused first, when the error gave no figures."""
UNCOUNTED_FRACTIONS = (0.8, 0.6, 0.4)
"""How much of a limit is used when the provider named it but not its count of the request."""
LEAST_OUTPUT_TOKENS = 256
"""An answer shorter than this helps nobody: below, the conversation has to give way instead."""
OUTPUT_MARGIN_TOKENS = 64


@dataclass(frozen=True, slots=True)
class Rung:
    """One retry: the most it may have in our count, whether the newest tool results may be cut, and a lower output."""

    most_tokens: int
    cut_newest: bool
    max_output_tokens: int | None = None


def lower_output(overflow: Overflow, asked_tokens: int | None) -> int | None:
    """Return the output that still fits when the input does, None when lowering the output is no remedy."""
    limit, given = overflow.limit_tokens, overflow.input_tokens
    asked = overflow.requested_output_tokens or asked_tokens
    if overflow.kind == "input" or not limit:
        return None
    if overflow.kind == "output_limit":
        return limit if asked is None or limit < asked else None
    if given is None:
        given = limit if asked is None else None
    room = limit - given - OUTPUT_MARGIN_TOKENS if given is not None else 0
    return room if room >= LEAST_OUTPUT_TOKENS and (asked is None or room < asked) else None


def limit_shown(overflow: Overflow, refused_tokens: int, refused_first_tokens: int, number: int) -> int:
    """Return what an overflow shows of the limit, in the provider's tokens: what it says, else a guess by the rung.

    `refused_tokens` and `refused_first_tokens` are our estimates of what was refused last and first.
    """
    if not overflow.limit_tokens:
        return max(1, int(refused_first_tokens * BLIND_FRACTIONS[min(number, len(BLIND_FRACTIONS)) - 1]))
    if overflow.input_tokens:
        return overflow.limit_tokens
    return int(min(overflow.limit_tokens, refused_tokens) * UNCOUNTED_FRACTIONS[min(number, len(UNCOUNTED_FRACTIONS)) - 1])


def rung_of(number: int, rungs: int, attempt: Attempt | None, asked_output_tokens: int | None) -> Rung:
    """Return the rung `number` (from 1) of `rungs` after `attempt` was refused."""
    last = number >= rungs
    if attempt is None or attempt.sent_tokens is None:
        return Rung(2**63, cut_newest=last)
    lowered = lower_output(attempt.overflow, asked_output_tokens) if attempt.overflow and not attempt.lowered else None
    if lowered is not None:
        return Rung(attempt.sent_tokens, cut_newest=False, max_output_tokens=lowered)
    return Rung(int(attempt.sent_tokens * SMALLER_FRACTION), cut_newest=last)
