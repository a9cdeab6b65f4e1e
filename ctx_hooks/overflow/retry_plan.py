"""Plan the attempts after an overflow: they are few, and each is smaller or requests less output."""

from dataclasses import dataclass

from ctx_hooks.overflow.recognise import Overflow
from ctx_hooks.tokens.units import ESTIMATE_ERROR_FRACTION, LocalTokens, ProviderTokens

SMALLER_FRACTION = 0.95
"""Each attempt is at least 5 % smaller than the one before; any other retry is skipped."""
BLIND_FRACTION = 0.6
"""The assumed limit if the error gave no figures, as a share of the refused attempt."""
UNCOUNTED_FRACTION = 0.8
"""The share of a limit that the first retry uses, if the provider named the limit but not its count of the request."""
LEAST_OUTPUT_TOKENS = ProviderTokens(256)
"""A shorter answer helps nobody: below this, the conversation is made smaller instead."""
OUTPUT_MARGIN_TOKENS = 64
"""Left free beside input and output: providers add a few tokens of their own to a request (OpenAI: 3 before the answer)."""
NO_BOUND = LocalTokens(2**63)


@dataclass(frozen=True, slots=True)
class RetryPlan:
    """The most that one attempt may have: tokens, a lower output than requested, and bytes of JSON, None for no bound.

    `cut_newest`: the newest tool results may be cut. `truncates`: the provider drops the oldest items of its kept history.
    """

    most_tokens: LocalTokens
    cut_newest: bool
    max_output_tokens: ProviderTokens | None = None
    truncates: bool = False
    most_bytes: int | None = None

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


def limit_for_retry(overflow: Overflow, refused_tokens: ProviderTokens, number: int) -> ProviderTokens:
    """Return the limit for a retry, counted from 1: the error's limit, else a guess from the estimate of what was refused."""
    limit = overflow.limit_tokens
    if limit and overflow.input_tokens and not overflow.at_least:
        return limit
    share = UNCOUNTED_FRACTION if limit and number == 1 else BLIND_FRACTION
    return ProviderTokens(max(1, int(min(limit or refused_tokens, refused_tokens) * share)))


def bytes_for_retry(overflow: Overflow, received_bytes: int, number: int) -> int:
    """Return the most bytes of a retry after a refusal for bytes: below the error's limit, else a share of the received."""
    if overflow.limit_bytes is None or overflow.limit_bytes >= received_bytes:
        return int(received_bytes * BLIND_FRACTION**number)
    return int(overflow.limit_bytes * SMALLER_FRACTION**number)


def unseen_tokens(overflow: Overflow, refused_tokens: ProviderTokens) -> int:
    """Return by how many tokens the provider's exact count of the refused attempt differs from the estimate, beyond its error.

    They count as fixed: content that only the provider sees, or media whose size is a guess.
    """
    if not overflow.limit_tokens or not overflow.input_tokens or overflow.at_least:
        return 0
    unseen = overflow.input_tokens - refused_tokens
    return unseen if abs(unseen) > overflow.input_tokens * ESTIMATE_ERROR_FRACTION else 0


def smaller_than(refused_tokens: LocalTokens | None) -> LocalTokens:
    """Return the most that may be sent after a refusal of this many tokens; no bound if they were not counted."""
    return NO_BOUND if refused_tokens is None else LocalTokens(int(refused_tokens * SMALLER_FRACTION))
