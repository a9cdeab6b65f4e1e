"""The decision if the last resort fails, too: the newest messages go as they came, by code of its own."""

from ctx_hooks.compaction import last_resort
from ctx_hooks.compaction.pipeline import StepReport
from ctx_hooks.compaction.plain_cut import json_bytes, plain_cut
from ctx_hooks.engine.decision import Compressed, FailedOpen, Figures
from ctx_hooks.engine.engine import Decided
from ctx_hooks.learning.attempts import Attempt, Known
from ctx_hooks.request.request import Request
from ctx_hooks.request.target import Target
from ctx_hooks.tokens.units import LocalTokens, ProviderTokens

BLIND_FRACTION = 0.6
"""The share of a refused attempt that the next one has at most, if nothing else is known."""


def decide_by_plain_cut(request: Request, to: Target, previous: Attempt | None, reason: str) -> Decided:
    """Return the decision to send only the newest messages, as they came; it cannot fail as the others have.

    A retry has at most the limit that the refusal names, and BLIND_FRACTION of the attempt before it.
    """
    received, beside = json_bytes(request.items), json_bytes(request.beside)
    limit = to.window.tokens
    if to.attempt and previous is not None and previous.overflow is not None:
        limit = min(limit, previous.overflow.limit_tokens or limit)
    most = min(limit * last_resort.BYTES_PER_TOKEN, int((received + beside) * BLIND_FRACTION**to.attempt))
    items = request.items if isinstance(request.items, (list, tuple)) else []
    kept = plain_cut(items, most - beside)
    before, after = ((beside + size) // last_resort.BYTES_PER_TOKEN for size in (received, json_bytes(kept)))
    attempt = Attempt(
        to,
        Known(to.window, previous=previous),
        request.format,
        received_tokens=LocalTokens(before),
        sent_tokens=LocalTokens(after),
        guessed_tokens=LocalTokens(after),
    )
    if len(kept) == len(items):
        return Decided(FailedOpen(reason=reason), attempt)
    step = StepReport(last_resort.NAME, LocalTokens(before - after), len(items) - len(kept), reason)
    figures = Figures(ProviderTokens(before), ProviderTokens(after), ProviderTokens(limit), to.window.tokens)
    return Decided(Compressed({request.wire.messages_field: kept}, figures, (step,), reason), attempt)
