"""What follows for an attempt from those of the same request before it: pure functions."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ctx_hooks.learning.attempts import Attempt
    from ctx_hooks.request.request import Request
    from ctx_hooks.request.target import Target


def number_of(to: Target, previous: Attempt | None) -> int:
    """Return the number of the retry that an attempt is.

    An operator's `retry_policy` for bad requests makes the Router ask the deployment that refused again, before any
    fallback and without a mark: the same request would be refused again.
    """
    if not to.policy.enforces or (previous is not None and holds_more(to, previous)):
        return 0
    if to.attempt or previous is None or previous.overflow is None or previous.to.deployment != to.deployment:
        return to.attempt
    return min(previous.to.attempt + 1, to.policy.rescue_attempts)


def as_it_came(request: Request, attempt: Attempt) -> Attempt:
    """Return an attempt that sends the request as it came, whatever was decided."""
    return replace(
        attempt,
        sent_tokens=attempt.received_tokens,
        decided_tokens=attempt.sent_tokens,
        output_tokens=request.max_output_tokens,
        lowered=False,
        truncates=request.asks_for_truncation,
    )


def was_translated(previous: Attempt, request: Request, to: Target) -> bool:
    """Whether this is the same attempt again: LiteLLM asks twice where it translates a request to another format.

    The second time it carries no mark of a retry: the first has taken it out.
    """
    return not previous.failed and to.attempt in (0, previous.to.attempt) and previous.format != request.format


def holds_more(to: Target, refused: Attempt) -> bool:
    """Whether a request goes on to a deployment with a larger window because it holds more than the one that refused.

    What was too long for the one need not be smaller for the other: it begins anew there.
    """
    prefers = to.policy.deployment_choice == "holds_request"
    return prefers and to.deployment != refused.to.deployment and to.window.tokens > refused.known.window.tokens
