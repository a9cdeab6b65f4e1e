"""An attempt: what it is decided by, what was sent of a request, to where, and how it ended.

What is known when it begins is frozen once, and handed to the engine. A retry has to be smaller than the attempt before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ctx_hooks.compaction.asked_again import NOTHING, AskedAgain
from ctx_hooks.compaction.history import History
from ctx_hooks.compaction.summary.model_written import NO_SUMMARIES, Choice, Summaries
from ctx_hooks.conversation.model import Format
from ctx_hooks.learning.stats import DeploymentStats
from ctx_hooks.overflow.recognise import Overflow
from ctx_hooks.overflow.retry_plan import limit_for_retry, unseen_tokens
from ctx_hooks.policy.settings import Policy
from ctx_hooks.request.request import Request
from ctx_hooks.request.sizes import uncounted_in
from ctx_hooks.request.target import Target
from ctx_hooks.tokens.budget import DYNAMIC_MESSAGES, Window, budget_tokens_of
from ctx_hooks.tokens.units import ESTIMATE_ERROR_FRACTION, LocalTokens, ProviderTokens, to_local, to_provider

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


@dataclass(frozen=True, slots=True)
class Attempt:
    """What happened with one attempt: what was received and sent, and how it ended.

    Attributes:
        to: where it went, and what held there.
        known: what it was decided by.
        format: the format of the request.
        received_tokens: the request as the client sent it; None if it was not counted.
        sent_tokens: what was sent of it; None if it was not counted.
        first_tokens: what the first attempt of the request sent.
        output_tokens: the requested output, as it was sent.
        most_tokens: an upper bound of the request in any vocabulary, where it was not counted.
        other_tokens: how much of `sent_tokens` is of other scripts, figures and base64, without its weight.
        guessed_tokens: how much of `sent_tokens` is a guess: media, reasoning and unknown parts.
        counts_all: False for a request with content that cannot be counted here, such as a stored history.
        hosted_calls: whether what cannot be counted is only what hosted tools have left in the history.
        unbilled: whether part of it fills the window and is missing in the usage.
        lowered: whether the retry asks for less output than was refused.
        stored: whether part of the conversation lies with the provider.
        truncates: whether the provider is asked to drop the oldest items of what it keeps.
        failed: whether the attempt is over.
        spent: whether no retry could make the request smaller.
        overflow: what the provider's refusal said, if it was an overflow.
        refusal: the provider's own text.
        states_usage: False where the answer states none, so that any figure is LiteLLM's estimate.
        decided_tokens: what would have been sent, where it is only observed.
        seen_tokens: as much of `received_tokens` as the request before this one of the same conversation had.
        rewrites: whether what was decided does not share its prefix with the request before it.
        budget_tokens: what the request may have; None where it was not asked.
        milliseconds: what each phase of the decision took.
        choice: which form the newest compaction in what was decided has; None without one, and where no model writes
            summaries.
        timed_out: whether it took too long to compress, and lost its oldest turns instead.
        asked_again: the calls of the newest answer that had been made before, as the request's first attempt shows it.
    """

    to: Target
    known: Known
    format: Format
    received_tokens: LocalTokens | None = None
    sent_tokens: LocalTokens | None = None
    first_tokens: LocalTokens | None = None
    output_tokens: ProviderTokens | None = None
    most_tokens: int = 0
    guessed_tokens: LocalTokens = LocalTokens(0)
    counts_all: bool = True
    hosted_calls: bool = False
    unbilled: bool = False
    lowered: bool = False
    stored: bool = False
    truncates: bool = False
    failed: bool = False
    spent: bool = False
    overflow: Overflow | None = None
    refusal: str = ""
    states_usage: bool = True
    decided_tokens: LocalTokens | None = None
    seen_tokens: LocalTokens = LocalTokens(0)
    rewrites: bool = False
    budget_tokens: ProviderTokens | None = None
    milliseconds: Mapping[str, float] = field(default_factory=dict)
    choice: Choice | None = None
    other_tokens: LocalTokens = LocalTokens(0)
    timed_out: bool = False
    asked_again: AskedAgain = NOTHING

    @property
    def sent_provider_tokens(self) -> ProviderTokens:
        """The estimate of what was sent; 0 where it was not counted."""
        return to_provider(self.sent_tokens or LocalTokens(0), self.known.factor)

    @property
    def received_provider_tokens(self) -> ProviderTokens:
        """The estimate of what was received; 0 where it was not counted."""
        return to_provider(self.received_tokens or LocalTokens(0), self.known.factor)

    @property
    def latin_tokens(self) -> float:
        """As much of `sent_tokens` as is not of other scripts, figures and base64; 0 where it was not counted."""
        return (self.sent_tokens or 0) - self.other_tokens * self.known.other_weight

    def weighed(self, other_weight: float) -> Attempt:
        """Return the attempt with what it sent by another weight of other scripts."""
        known = replace(self.known, other_weight=other_weight)
        if self.sent_tokens is None or not self.sent_tokens:
            return replace(self, known=known)
        added_tokens = int(self.other_tokens * (other_weight - self.known.other_weight))
        sent = LocalTokens(max(1, self.sent_tokens + added_tokens))
        first = LocalTokens(int((self.first_tokens or self.sent_tokens) * sent / self.sent_tokens))
        return replace(self, known=known, sent_tokens=sent, first_tokens=first)


def attempt_at(request: Request, to: Target, known: Known, history: History | None = None, most_tokens: int = 0) -> Attempt:
    """Return the attempt that sends a request unchanged, with what was counted of it; `history` is None if nothing was.

    A guess are media, reasoning, and definitions of hosted tools. `most_tokens` bounds what was not counted.
    """
    attempt = Attempt(
        to,
        known,
        request.format,
        output_tokens=request.max_output_tokens,
        most_tokens=most_tokens,
        stored=request.continues_stored_history,
        truncates=request.asks_for_truncation,
    )
    return attempt if history is None else counted(attempt, request, history)


def counted(attempt: Attempt, request: Request, history: History) -> Attempt:
    """Return an attempt that sends its request unchanged, with what was counted of it later."""
    uncounted, tokens = uncounted_in(request), history.tokens
    return replace(
        attempt,
        received_tokens=tokens,
        sent_tokens=tokens,
        guessed_tokens=LocalTokens(sum(m.guessed_tokens for m in history.index) + uncounted.tools_tokens),
        other_tokens=history.other_tokens,
        counts_all=not uncounted.holds_any,
        hosted_calls=uncounted.holds_hosted,
        unbilled=uncounted.holds_unbilled,
        seen_tokens=history.seen_tokens,
    )


def sent_unchanged(request: Request, attempt: Attempt) -> Attempt:
    """Return an attempt that sends the request unchanged, whatever was decided."""
    return replace(
        attempt,
        sent_tokens=attempt.received_tokens,
        decided_tokens=attempt.sent_tokens,
        output_tokens=request.max_output_tokens,
        lowered=False,
        truncates=request.asks_for_truncation,
    )


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
