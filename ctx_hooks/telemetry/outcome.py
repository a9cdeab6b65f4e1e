"""The words for what a request ends in: headers, metrics, events, log lines, spend log, report and commands use the same.

A request ends in exactly one of them. An attempt has the one that its request ends in if that attempt is answered; an
attempt that is not sent has `failed`.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from ctx_hooks.decision import Decision, NotRetried, changes_of
from ctx_hooks.request.output_limit import is_output_change

Outcome: TypeAlias = Literal["fits", "output_lowered", "compressed", "retried", "failed"]
"""In this order: sent unchanged; sent with a lower requested output, all else unchanged; sent with changed messages at the
first attempt; answered after at least one refused attempt; refused as too long in the end."""


def outcome_of(decision: Decision, attempt: int) -> Outcome:
    """Return what a request ends in if the attempt is answered.

    >>> from ctx_hooks.decision import Untouched
    >>> outcome_of(Untouched("fits"), 0), outcome_of(Untouched("fits"), 1)
    ('fits', 'retried')
    """
    if isinstance(decision, NotRetried):
        return "failed"
    if attempt:
        return "retried"
    changes = changes_of(decision)
    if not changes:
        return "fits"
    return "output_lowered" if is_output_change(changes) else "compressed"
