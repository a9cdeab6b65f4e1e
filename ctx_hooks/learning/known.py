"""What is known of a deployment when an attempt at it begins: frozen once, and handed to the engine."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from ctx_hooks.compaction.summary.model_written import NO_SUMMARIES, Summaries
from ctx_hooks.overflow.retry_plan import limit_for_retry, unseen_tokens
from ctx_hooks.tokens.budget import DYNAMIC_MESSAGES, budget_tokens_of
from ctx_hooks.tokens.units import ESTIMATE_ERROR_FRACTION, LocalTokens, ProviderTokens, to_local, to_provider

if TYPE_CHECKING:
    from ctx_hooks.compaction.history import History
    from ctx_hooks.learning.attempts import Attempt
    from ctx_hooks.learning.stats import DeploymentStats
    from ctx_hooks.policy.settings import Policy
    from ctx_hooks.request.target import Target
    from ctx_hooks.tokens.budget import Window


OTHERS_FLOOR_FRACTION = 0.5
"""Of the window: no lower limit is taken from one other tenant's refusal, so that nobody cuts another's requests to less."""


@dataclass(frozen=True, slots=True)
class Known:
    """What an attempt is decided by, beside the request and its target.

    Attributes:
        window: the window, with what was learned of it.
        factor: provider tokens per local token.
        other_weight: what a local token of other scripts, figures and base64 counts as.
        output_limit_tokens: the largest output that the deployment gives; None where it has shown none.
        answer_tokens: what an answer to this tenant may need, by those before it; None before the first.
        counts: whether the request is counted, whatever its size.
        stored_tokens: the history that the provider keeps of the conversation; 0 where none is, or its size is not known.
        previous: the attempt that was refused before this one; None for the first attempt of a request.
        summaries: what models have written of the conversation, and which compactions hold it.
        limit_learned_seconds: when the limit that the window was lowered to was shown last, in epoch seconds; None for none.
    """

    window: Window
    factor: float = 1.0
    output_limit_tokens: ProviderTokens | None = None
    answer_tokens: ProviderTokens | None = None
    counts: bool = False
    stored_tokens: ProviderTokens = ProviderTokens(0)
    previous: Attempt | None = None
    summaries: Summaries = NO_SUMMARIES
    other_weight: float = 1.0
    limit_learned_seconds: float | None = None

    def budget_tokens(self, policy: Policy, least_output: ProviderTokens, history: History) -> LocalTokens:
        """Return what a request may have."""
        recent = history.index[-DYNAMIC_MESSAGES:]
        mean_tokens = sum(m.tokens for m in recent) / max(1, len(recent)) * self.factor
        return to_local(budget_tokens_of(self.window, policy, mean_tokens, least_output), self.factor)

    def window_less_error(self) -> LocalTokens:
        """Return what a request may have that leaves free the estimate's error and a usual answer, and nothing else."""
        answer = self.answer_tokens or 0 if self.window.holds_output else 0
        return to_local(ProviderTokens(int((self.window.tokens - answer) / (1 + ESTIMATE_ERROR_FRACTION))), self.factor)

    def uncounted_budget_tokens(self, policy: Policy, requested: ProviderTokens | None) -> LocalTokens:
        """Return the same for a request that is not counted: the output that it asks for has to fit beside it as it is."""
        budget = budget_tokens_of(self.window, policy)
        if requested is not None and self.window.holds_output:
            budget = min(budget, ProviderTokens(self.window.tokens - requested))
        return to_local(budget, self.factor)


def known_of(
    to: Target,
    stats: DeploymentStats,
    now: float,
    previous: Attempt | None = None,
    stored_tokens: ProviderTokens = ProviderTokens(0),
) -> Known:
    """Return what is known for an attempt; what is too old `now`, in epoch seconds, is not."""
    seen = stats.seen_by(to.tenant, now)
    factor, other_weight = seen.factor(to.model), seen.other_weight(to.model)
    window = to.window
    limit = seen.limit_tokens(window.tokens, OTHERS_FLOOR_FRACTION)
    learned_seconds = None
    if limit is not None and limit < window.tokens:
        window, learned_seconds = replace(window, tokens=limit, source="learned"), seen.limit_seconds
    held = seen.output_held(window.tokens)
    if held is not None:
        window = replace(window, holds_output=held)
    if previous is not None:
        previous = previous.weighed(other_weight)
        if previous.to.deployment == to.deployment:
            window = _window_for_retry(window, factor, to.attempt, previous, accepts="accepted_input" in seen.own)
    # A request of the tenant had oddly few provider tokens, and none since has had more: any size is counted.
    is_odd = "low_bill" in seen.own and any(seen.own["low_bill"].values)
    return Known(
        window,
        factor,
        output_limit_tokens=seen.output_limit_tokens(),
        answer_tokens=seen.answer_tokens(),
        counts=bool(to.attempt) or not to.retried or to.policy.max_turns is not None or is_odd,
        stored_tokens=stored_tokens,
        previous=previous,
        other_weight=other_weight,
        limit_learned_seconds=learned_seconds,
    )


def _window_for_retry(window: Window, factor: float, number: int, previous: Attempt, *, accepts: bool) -> Window:
    """Return the window that a retry keeps to: for this request only, what the refusal says or lets guess.

    The first keeps to what was learned where that stands on more than this refusal, a named limit or what the deployment
    `accepts`: so does the next request of the conversation, which then continues what the retry sends.

    No tokens at all are left where what only the provider sees exceeds the limit by itself. A stored history is no such
    content: the provider can shorten it, and what is sent besides is rarely to blame.
    """
    overflow, sent = previous.overflow, previous.sent_tokens
    if overflow is None or overflow.kind == "output_limit" or sent is None:
        return window
    if previous.stored:
        named = min(window.tokens, overflow.limit_tokens or window.tokens)
        return replace(window, tokens=named, source="refusal") if named < window.tokens else window
    refused = to_provider(sent, factor)
    first = to_provider(previous.first_tokens or sent, factor)
    limit = limit_for_retry(overflow, refused, first, number)
    if number == 1 and window.source == "learned" and window.tokens < refused and (accepts or overflow.limit_tokens):
        limit = max(limit, window.tokens)
    limit = ProviderTokens(max(0, limit - unseen_tokens(overflow, refused)))
    return replace(window, tokens=limit, source="refusal") if limit < window.tokens else window
