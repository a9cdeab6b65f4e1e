"""Pure functions that make the decision about a request that is not counted: small enough, or nothing else has worked."""

from dataclasses import replace

from ctx_hooks.attempts.attempt import Attempt, Limits, attempt_at
from ctx_hooks.attempts.request import Request
from ctx_hooks.attempts.target import Target
from ctx_hooks.compaction.plain_cut import BYTES_PER_TOKEN, NAME, json_bytes, plain_cut
from ctx_hooks.compaction.steps import StepReport
from ctx_hooks.flow.decision import Compressed, Decided, FailedOpen, Figures, Untouched
from ctx_hooks.overflow.retry_plan import BLIND_FRACTION
from ctx_hooks.tokens.budget import may_cut_result
from ctx_hooks.tokens.units import LocalTokens, ProviderTokens


def decide_by_size(request: Request, to: Target, limits: Limits, most_tokens: int) -> Decided | None:
    """Return the decision about a request that is small enough to need no counting, None for any other.

    `most_tokens` is an upper bound of the request's tokens in any vocabulary.
    """
    if to.counts or most_tokens > limits.uncounted_budget_tokens(to.policy, request.max_output_tokens):
        return None
    # A token has at least one character of the bound.
    if to.policy.repair == "always" or may_cut_result(to.policy, limits.window.tokens, most_tokens):
        return None
    return unchanged(request, attempt_at(request, to, limits, most_tokens=most_tokens), "fits by its size")


def decide_by_plain_cut(request: Request, to: Target, previous: Attempt | None, reason: str) -> Decided:
    """Return the decision to send only the newest messages, as they came; it cannot fail as the others have.

    A retry has at most the limit that the refusal names, and a share of the attempt before it.
    """
    received, beside = json_bytes(request.items), json_bytes(request.beside)
    limit = to.window.tokens
    if previous is not None and previous.overflow is not None:
        limit = min(limit, previous.overflow.limit_tokens or limit)
    most = min(limit * BYTES_PER_TOKEN, int((received + beside) * BLIND_FRACTION**to.attempt))
    items = request.items if isinstance(request.items, (list, tuple)) else []
    kept = plain_cut(items, most - beside)
    before, after = (LocalTokens((beside + size) // BYTES_PER_TOKEN) for size in (received, json_bytes(kept)))
    limits = Limits(to.window, previous=previous)
    attempt = Attempt(to, limits, request.format, received_tokens=before, sent_tokens=after, guessed_tokens=after)
    if len(kept) == len(items):
        return Decided(FailedOpen(reason=reason), attempt)
    step = StepReport(NAME, LocalTokens(before - after), len(items) - len(kept), reason)
    figures = Figures(ProviderTokens(before), ProviderTokens(after), ProviderTokens(limit), to.window.tokens)
    return Decided(Compressed({request.wire.messages_field: kept}, figures, (step,), reason), attempt)


def allowed_output(request: Request, attempt: Attempt) -> ProviderTokens | None:
    """Return the output to request from a deployment that would refuse the client's; None if it would not refuse."""
    requested, limits = request.max_output_tokens, attempt.limits
    if requested is None:
        return None
    sent = attempt.sent_provider_tokens if attempt.sent_tokens is not None else None
    allowed = limits.allowed_output_tokens(requested, sent)
    return allowed if allowed < requested else None


def unchanged(request: Request, attempt: Attempt, reason: str) -> Decided:
    """Return the decision about a request that fits: it may ask for less output."""
    output_tokens = allowed_output(request, attempt)
    if output_tokens is None:
        return Decided(Untouched(reason=reason), attempt)
    return Decided(Compressed(request.with_output(output_tokens)), replace(attempt, output_tokens=output_tokens))
