"""What the next attempt has to be after an overflow: smaller than the one before or asking for less, and few of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ctx_hooks.overflow.recognise import Overflow

SMALLER_FRACTION = 0.95
"""Each attempt is at least 5 % smaller than the one before; a retry that is not is not sent."""
BLIND_FRACTIONS = (0.6, 0.35, 0.2)
"""What is taken for the limit, as shares of what was refused first, when the error gave no figures."""
UNCOUNTED_FRACTIONS = (0.8, 0.6, 0.4)
"""How much of a limit is used when the provider named it but not its count of the request."""
LEAST_OUTPUT_TOKENS = 256
"""An answer shorter than this helps nobody: below, the conversation has to give way instead."""
OUTPUT_MARGIN_TOKENS = 64


@dataclass(frozen=True, slots=True)
class RetryPlan:
    """One retry: the most local tokens it may have, whether the newest tool results may be cut, and a lower output."""

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
        return None
    room = limit - given - OUTPUT_MARGIN_TOKENS
    return room if room >= LEAST_OUTPUT_TOKENS and (asked is None or room < asked) else None


def limit_for_retry(overflow: Overflow, refused_tokens: int, refused_first_tokens: int, number: int) -> int:
    """Return the limit that the retry `number` (from 1) keeps to, for this request alone.

    It is what the error says, in provider tokens, else a guess that falls with each retry. `refused_tokens` and
    `refused_first_tokens` are the sizes of what was refused last and first, as estimated here. Where the provider tokens
    are far above the estimate, the rest is content that only it sees, and is set aside.
    """
    if not overflow.limit_tokens:
        return max(1, int(refused_first_tokens * BLIND_FRACTIONS[min(number, len(BLIND_FRACTIONS)) - 1]))
    if overflow.input_tokens:
        return overflow.limit_tokens
    return int(min(overflow.limit_tokens, refused_tokens) * UNCOUNTED_FRACTIONS[min(number, len(UNCOUNTED_FRACTIONS)) - 1])


def plan_of(number: int, retries: int, sent_tokens: int | None, lowered_output_tokens: int | None = None) -> RetryPlan:
    """Return the plan of the retry `number` (from 1) of `retries`, after `sent_tokens` were refused."""
    last = number >= retries
    if sent_tokens is None:
        return RetryPlan(2**63, cut_newest=last)
    if lowered_output_tokens is not None:
        return RetryPlan(sent_tokens, cut_newest=False, max_output_tokens=lowered_output_tokens)
    return RetryPlan(int(sent_tokens * SMALLER_FRACTION), cut_newest=last)
