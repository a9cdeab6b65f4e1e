"""What is known of a request that ended in an overflow, for the error that its caller reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ctx_hooks.overflow.message import Facts, NotRetried

if TYPE_CHECKING:
    from ctx_hooks.learning.attempts import Attempt
    from ctx_hooks.overflow.recognise import Overflow
    from ctx_hooks.policy.settings import Policy


def facts_of(attempt: Attempt | None, overflow: Overflow | None, policy: Policy) -> Facts:
    """Return what is known of a request from its last attempt and from the error that it ended in."""
    if attempt is None:
        return Facts(overflow=overflow)
    not_retried: NotRetried | None = "cannot_shrink" if attempt.spent else None
    received, sent = (
        None if tokens is None else int(tokens * attempt.factor) for tokens in (attempt.received_tokens, attempt.sent_tokens)
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
