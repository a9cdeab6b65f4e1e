"""Plan the attempts after an overflow: they are few, and each is smaller or requests less output."""

from dataclasses import dataclass

from ctx_hooks.overflow.recognise import Overflow
from ctx_hooks.tokens.units import ESTIMATE_ERROR_FRACTION, LocalTokens, ProviderTokens

SMALLER_FRACTION = 0.95
"""Each attempt is at least 5 % smaller than the one before; any other retry is skipped."""
BLIND_FRACTIONS = (0.6, 0.35, 0.2)
"""The assumed limits if the error gave no figures, as shares of the first refused attempt."""
UNCOUNTED_FRACTIONS = (0.8, 0.6, 0.4)
"""The used shares of a limit, if the provider named the limit but not its count of the request."""
LEAST_OUTPUT_TOKENS = ProviderTokens(256)
"""A shorter answer helps nobody: below this, the conversation is made smaller instead."""
OUTPUT_MARGIN_TOKENS = 64
"""Left free beside input and output: providers add a few tokens of their own to a request (OpenAI: 3 before the answer)."""
NO_BOUND = LocalTokens(2**63)
"""More tokens than any request has."""


@dataclass(frozen=True, slots=True)
class RetryPlan:
    """The requirements of one attempt.

    Attributes:
        most_tokens: the most tokens that it may have.
        cut_newest: whether the newest tool results may be cut.
        max_output_tokens: the lower output that it requests; None if the output stays as requested.
        truncates: whether it asks the provider to drop the oldest items of its kept history.

    >>> plan_of(1, retries=3, sent_tokens=LocalTokens(1_000))
    RetryPlan(most_tokens=950, cut_newest=False, max_output_tokens=None, truncates=False)
    """

    most_tokens: LocalTokens
    cut_newest: bool
    max_output_tokens: ProviderTokens | None = None
    truncates: bool = False

    @property
    def remedies(self) -> bool:
        """Whether a change other than a smaller request makes it fit."""
        return self.truncates or self.max_output_tokens is not None


def lower_output(overflow: Overflow, asked_tokens: ProviderTokens | None) -> ProviderTokens | None:
    """Return the output that fits beside the input; None if lowering the output is no remedy."""
    limit, given = overflow.limit_tokens, overflow.input_tokens
    asked = overflow.requested_output_tokens or asked_tokens
    if overflow.kind == "input" or not limit:
        return None
    if overflow.kind == "output_limit":
        return limit if asked is None or limit < asked else None
    if given is None or overflow.at_least:
        return None  # vLLM's lower bound is the window less the output, whatever the input
    room = ProviderTokens(limit - given - OUTPUT_MARGIN_TOKENS)
    return room if room >= LEAST_OUTPUT_TOKENS and (asked is None or room < asked) else None


def limit_for_retry(
    overflow: Overflow, refused_tokens: ProviderTokens, refused_first_tokens: ProviderTokens, number: int
) -> ProviderTokens:
    """Return the limit for a retry of this request only: the error's limit, else a guess.

    Args:
        overflow: the last refusal.
        refused_tokens: the estimated size of the last refused attempt.
        refused_first_tokens: the estimated size of the first refused attempt.
        number: of the retry, from 1; guesses fall with it.
    """
    if not overflow.limit_tokens:
        return ProviderTokens(max(1, int(refused_first_tokens * _of(BLIND_FRACTIONS, number))))
    if overflow.input_tokens and not overflow.at_least:
        return overflow.limit_tokens
    return ProviderTokens(int(min(overflow.limit_tokens, refused_tokens) * _of(UNCOUNTED_FRACTIONS, number)))


def unseen_tokens(overflow: Overflow, refused_tokens: ProviderTokens) -> int:
    """Return by how many tokens the provider's count of the refused attempt exceeds the estimate; below 0 if it is smaller.

    They count as fixed: content that only the provider sees, or media whose size is a guess. The result is 0 if the error
    gives no exact count beside its limit, or the difference is within the estimate's error.
    """
    if not overflow.limit_tokens or not overflow.input_tokens or overflow.at_least:
        return 0
    unseen = overflow.input_tokens - refused_tokens
    return unseen if abs(unseen) > overflow.input_tokens * ESTIMATE_ERROR_FRACTION else 0


def plan_of(
    number: int, retries: int, sent_tokens: LocalTokens | None, lowered_output_tokens: ProviderTokens | None = None
) -> RetryPlan:
    """Return the plan of a retry.

    Args:
        number: of the retry, from 1.
        retries: how many there may be.
        sent_tokens: the size of the refused attempt; None if it was not counted.
        lowered_output_tokens: the output that fits beside the unchanged input; None if only a smaller input helps.
    """
    if sent_tokens is not None and lowered_output_tokens is not None:
        return RetryPlan(sent_tokens, cut_newest=False, max_output_tokens=lowered_output_tokens)
    return RetryPlan(smaller_than(sent_tokens), cut_newest=number >= retries)


def smaller_than(refused_tokens: LocalTokens | None) -> LocalTokens:
    """Return the most that may be sent after a refusal of this many tokens; no bound if they were not counted."""
    return NO_BOUND if refused_tokens is None else LocalTokens(int(refused_tokens * SMALLER_FRACTION))


def _of(fractions: tuple[float, ...], number: int) -> float:
    """Return the fraction for a retry; the last one for all that follow."""
    return fractions[min(number, len(fractions)) - 1]
