"""The final context-window error: what is known of the request, and the text that its caller reads."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ctx_hooks import litellm_compat
from ctx_hooks.overflow.message import CODE, Facts, NotRetried, readable_error
from ctx_hooks.request.request import format_of
from ctx_hooks.tokens.units import to_provider

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ctx_hooks.learning.attempts import Attempt
    from ctx_hooks.overflow.recognise import Overflow
    from ctx_hooks.policy.settings import Policy


def final_error(fields: Mapping[str, Any], error: Exception, attempt: Attempt | None, policy: Policy) -> Exception:
    """Return the final context-window error as its caller reads it."""
    noted = attempt.overflow if attempt is not None else None
    facts = facts_of(attempt, noted or litellm_compat.overflow_of(error), policy)
    fmt = format_of(fields)
    return litellm_compat.worded_error(error, readable_error(fmt, facts, policy), CODE, fmt)


def facts_of(attempt: Attempt | None, overflow: Overflow | None, policy: Policy) -> Facts:
    """Return what is known of a request from its last attempt and from the error that it ended in."""
    if attempt is None:
        return Facts(overflow=overflow)
    spent: NotRetried = "stored_history" if attempt.stored else "cannot_shrink"
    not_retried = spent if attempt.spent else None
    received, sent = (
        None if tokens is None else to_provider(tokens, attempt.factor)
        for tokens in (attempt.received_tokens, attempt.sent_tokens)
    )
    return Facts(
        attempts=attempt.number + 1,
        received_tokens=received,
        sent_tokens=sent,
        window_tokens=attempt.window.tokens,
        lowered_output=attempt.lowered,
        not_retried=not_retried if policy.rescue_attempts else "switched_off",
        overflow=attempt.overflow or overflow,
    )
