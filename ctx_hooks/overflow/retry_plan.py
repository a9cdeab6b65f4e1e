"""What the next attempt has to be after an overflow: smaller than the one before or asking for less, and few of them."""

from dataclasses import dataclass

from ctx_hooks.overflow.recognise import Overflow
from ctx_hooks.tokens.units import ESTIMATE_ERROR_FRACTION, LocalTokens, ProviderTokens

SMALLER_FRACTION = 0.95
"""Each attempt is at least 5 % smaller than the one before; a retry that is not is not sent."""
BLIND_FRACTIONS = (0.6, 0.35, 0.2)
"""What is taken for the limit, as shares of what was refused first, when the error gave no figures."""
UNCOUNTED_FRACTIONS = (0.8, 0.6, 0.4)
"""How much of a limit is used when the provider named it but not its count of the request."""
LEAST_OUTPUT_TOKENS = ProviderTokens(256)
"""An answer shorter than this helps nobody: below, the conversation has to give way instead."""
OUTPUT_MARGIN_TOKENS = 64
"""Left free beside input and output: providers add a few tokens of their own to a request (OpenAI: 3 before the answer)."""
NO_BOUND = LocalTokens(2**63)
"""More tokens than any request has."""


@dataclass(frozen=True, slots=True)
class RetryPlan:
    """What one attempt has to be.

    Attributes:
        most_tokens: the most that it may have.
        cut_newest: whether the newest tool results may be cut.
        max_output_tokens: the lower output that it asks for; None if the output stays as requested.
        truncates: whether the provider is asked to drop the oldest items of the history that it keeps.

    >>> plan_of(1, retries=3, sent_tokens=LocalTokens(1_000))
    RetryPlan(most_tokens=950, cut_newest=False, max_output_tokens=None, truncates=False)
    """

    most_tokens: LocalTokens
    cut_newest: bool
    max_output_tokens: ProviderTokens | None = None
    truncates: bool = False

    @property
    def remedies(self) -> bool:
        """Whether something else than a smaller request is to make it fit."""
        return self.truncates or self.max_output_tokens is not None


def lower_output(overflow: Overflow, asked_tokens: ProviderTokens | None) -> ProviderTokens | None:
    """Return the output that still fits when the input does, None when lowering the output is no remedy."""
    limit, given = overflow.limit_tokens, overflow.input_tokens
    asked = overflow.requested_output_tokens or asked_tokens
    if overflow.kind == "input" or not limit:
        return None
    if overflow.kind == "output_limit":
        return limit if asked is None or limit < asked else None
    if given is None:
        return None
    room = ProviderTokens(limit - given - OUTPUT_MARGIN_TOKENS)
    return room if room >= LEAST_OUTPUT_TOKENS and (asked is None or room < asked) else None


def limit_for_retry(
    overflow: Overflow, refused_tokens: ProviderTokens, refused_first_tokens: ProviderTokens, number: int
) -> ProviderTokens:
    """Return the limit that a retry keeps to, only for this request: what the error says, else a guess.

    Args:
        overflow: what the last refusal said.
        refused_tokens: an estimate of what was refused last.
        refused_first_tokens: an estimate of what was refused first.
        number: of the retry, from 1; guesses fall with it.
    """
    if not overflow.limit_tokens:
        return ProviderTokens(max(1, int(refused_first_tokens * _of(BLIND_FRACTIONS, number))))
    if overflow.input_tokens:
        return overflow.limit_tokens
    return ProviderTokens(int(min(overflow.limit_tokens, refused_tokens) * _of(UNCOUNTED_FRACTIONS, number)))


def unseen_tokens(overflow: Overflow, refused_tokens: ProviderTokens) -> int:
    """Return how many tokens more than the estimate of what was refused the provider has counted; below 0: fewer.

    They are taken as fixed: content that only the provider sees, or media whose size is a guess. The result is 0 if the error
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
    """Return the most that may be sent behind a refusal of so many tokens; no bound where they were not counted."""
    return NO_BOUND if refused_tokens is None else LocalTokens(int(refused_tokens * SMALLER_FRACTION))


def _of(fractions: tuple[float, ...], number: int) -> float:
    """Return the fraction for a retry; the last one for all that follow."""
    return fractions[min(number, len(fractions)) - 1]
