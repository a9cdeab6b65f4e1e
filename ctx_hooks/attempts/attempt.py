"""An attempt: the inputs of its decision, frozen at its beginning, the sent request, its target, and its end."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from ctx_hooks.attempts.observations import DeploymentStats
from ctx_hooks.attempts.request import Request
from ctx_hooks.attempts.sizes import Uncounted, uncounted_in
from ctx_hooks.attempts.target import Target
from ctx_hooks.compaction.history import History
from ctx_hooks.compaction.steps import Choice
from ctx_hooks.formats import Format
from ctx_hooks.message_rules.reasoning import wants_reasoning
from ctx_hooks.overflow.recognise import Overflow
from ctx_hooks.overflow.retry_plan import LEAST_OUTPUT_TOKENS, NO_BOUND, limit_for_retry, unseen_tokens
from ctx_hooks.policy.settings import Policy
from ctx_hooks.tokens.budget import DYNAMIC_MESSAGES, Window, budget_tokens_of
from ctx_hooks.tokens.units import ESTIMATE_ERROR_FRACTION, LocalTokens, ProviderTokens, to_local, to_provider

ANSWER_FRACTION = 0.01
"""Of the window: the room for an answer where no reserve is kept. Of 3,733 recorded answers of agents 95 % have at most
1,166 tokens, which are 1 % of a window of 128,000; the estimate's error leaves room for more."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What an attempt at a target may have, by all that is known of its deployment and tenant.

    Attributes:
        window: the window, corrected by learned limits.
        factor: provider tokens per local token.
        other_weight: the weight of a local token of other scripts, figures and base64.
        output_limit_tokens: the largest output that the deployment gives; None if unknown.
        previous: the attempt that was refused before this one; None for the first attempt of a request.
        wants_reasoning: whether the deployment refuses messages without the reasoning that they came with.
    """

    window: Window
    factor: float = 1.0
    output_limit_tokens: ProviderTokens | None = None
    previous: "Attempt | None" = None
    other_weight: float = 1.0
    wants_reasoning: bool = False

    def budget_tokens(self, policy: Policy, request: Request, history: History) -> LocalTokens:
        """Return the budget of a request."""
        recent = history.index[-DYNAMIC_MESSAGES:]
        mean_tokens = sum(m.tokens for m in recent) / max(1, len(recent)) * self.factor
        outputs = request.least_output_tokens, request.max_output_tokens or 0
        return to_local(budget_tokens_of(self.window, policy, mean_tokens, *outputs), self.factor)

    def window_less_error(self) -> LocalTokens:
        """Return the budget that leaves room only for the estimate's error and a usual answer."""
        usable = self.window.tokens * (1 - ANSWER_FRACTION if self.window.holds_output else 1)
        return to_local(ProviderTokens(int(usable / (1 + ESTIMATE_ERROR_FRACTION))), self.factor)

    def most_tokens(self, to: Target, request: Request, history: History) -> LocalTokens:
        """Return the most that an attempt may have before anything is removed from it.

        Where a shorter request is no use yet, that is the window, or any size if the window is unknown.
        """
        budget, window = self.budget_tokens(to.policy, request, history), self.window_less_error()
        if to.defers:
            budget = NO_BOUND if self.window.source == "default" else max(budget, window)
        elif to.waits:
            budget = max(budget, window)
        return min(budget, window) if to.checked else budget

    def allowed_output_tokens(self, requested: ProviderTokens, input_tokens: ProviderTokens | None) -> ProviderTokens:
        """Return as much of the requested output as the deployment accepts beside this input, None for an unknown one.

        It leaves room for the estimate's error while LEAST_OUTPUT_TOKENS remain. It never asks for less than these: then the
        provider decides, and if it refuses, the conversation is compacted.
        """
        allowed, most, window = requested, self.output_limit_tokens, self.window
        if most is not None and most >= LEAST_OUTPUT_TOKENS:
            allowed = min(requested, most)
        if input_tokens is None or not window.holds_output:
            return allowed
        if LEAST_OUTPUT_TOKENS <= window.tokens - input_tokens < allowed:
            room = ProviderTokens(window.tokens - int(input_tokens * (1 + ESTIMATE_ERROR_FRACTION)))
            allowed = max(room, LEAST_OUTPUT_TOKENS)
        return allowed

    def uncounted_budget_tokens(self, policy: Policy, requested: ProviderTokens | None) -> LocalTokens:
        """Return the budget of an uncounted request: its requested output has to fit beside it unchanged."""
        budget = budget_tokens_of(self.window, policy, requested=requested or 0)
        if requested is not None and self.window.holds_output:
            budget = min(budget, ProviderTokens(self.window.tokens - requested))
        return to_local(budget, self.factor)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt: the received and the sent request, and its end.

    Attributes:
        received_tokens: the request as the client sent it; None if it was not counted.
        sent_tokens: the request as sent; None if it was not counted.
        output_tokens: the requested output, as it was sent.
        most_tokens: an upper bound of the request in any vocabulary, if it was not counted.
        guessed_tokens: how much of `sent_tokens` is a guess: media, reasoning and unknown parts.
        lowered: whether the retry asks for less output than the refused attempt.
        stored: whether the provider keeps part of the conversation.
        truncates: whether the provider is asked to drop the oldest items of its stored history.
        spent: whether no retry could make the request smaller.
        overflow: the content of the provider's refusal, if it was an overflow; `refusal` is its text.
        states_usage: False if the answer states no usage, so that any figure is LiteLLM's estimate.
        decided_tokens: the size that would have been sent, if the mode only observes.
        seen_tokens: the part of `received_tokens` that the conversation's previous request had too.
        rewrites: whether the decided request does not share its prefix with the previous request.
        budget_tokens: the request's budget; None if none was computed.
        choice: the form of the newest compaction in the decided request; None without one, or if no model writes summaries.
        other_tokens: how much of `sent_tokens` is of other scripts, figures and base64, without its weight.
        rereads: the newest answer's re-reads by tool, as the request's first attempt shows them.
    """

    to: Target
    limits: Limits
    format: Format
    received_tokens: LocalTokens | None = None
    sent_tokens: LocalTokens | None = None
    output_tokens: ProviderTokens | None = None
    most_tokens: int = 0
    guessed_tokens: LocalTokens = LocalTokens(0)
    uncounted: Uncounted = field(default_factory=Uncounted)
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
    choice: Choice | None = None
    other_tokens: LocalTokens = LocalTokens(0)
    rereads: Mapping[str, int] = field(default_factory=dict)

    @property
    def sent_provider_tokens(self) -> ProviderTokens:
        """The estimate of the sent request; 0 if it was not counted."""
        return to_provider(self.sent_tokens or LocalTokens(0), self.limits.factor)

    @property
    def received_provider_tokens(self) -> ProviderTokens:
        """The estimate of the received request; 0 if it was not counted."""
        return to_provider(self.received_tokens or LocalTokens(0), self.limits.factor)

    @property
    def is_shortened(self) -> bool:
        """Whether the plugin has removed something from the sent request."""
        return (self.sent_tokens or 0) < (self.received_tokens or 0)

    @property
    def latin_tokens(self) -> float:
        """The part of `sent_tokens` without other scripts, figures and base64; 0 if it was not counted."""
        return (self.sent_tokens or 0) - self.other_tokens * self.limits.other_weight

    def weighed(self, other_weight: float) -> "Attempt":
        """Return the attempt with its sent tokens for another weight of other scripts."""
        limits = replace(self.limits, other_weight=other_weight)
        if not self.sent_tokens:
            return replace(self, limits=limits)
        added_tokens = int(self.other_tokens * (other_weight - self.limits.other_weight))
        return replace(self, limits=limits, sent_tokens=LocalTokens(max(1, self.sent_tokens + added_tokens)))


def attempt_at(
    request: Request, to: Target, limits: Limits, history: History | None = None, most_tokens: int = 0
) -> Attempt:
    """Return the attempt that sends a request unchanged, with its counts; `history` is None if nothing was counted.

    Media, reasoning, and definitions of hosted tools are guessed. `most_tokens` bounds an uncounted request.
    """
    attempt = Attempt(
        to,
        limits,
        request.format,
        output_tokens=request.max_output_tokens,
        most_tokens=most_tokens,
        stored=request.continues_stored_history,
        truncates=request.asks_for_truncation,
    )
    return attempt if history is None else with_counts(attempt, request, history)


def with_counts(attempt: Attempt, request: Request, history: History) -> Attempt:
    """Return an attempt that sends its request unchanged, with its later counts."""
    tokens, guessed_tokens = history.tokens, sum(m.guessed_tokens for m in history.index)
    uncounted = uncounted_in(request)
    return replace(
        attempt,
        received_tokens=tokens,
        sent_tokens=tokens,
        guessed_tokens=LocalTokens(guessed_tokens + uncounted.tools_tokens),
        other_tokens=history.other_tokens,
        uncounted=uncounted,
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


def limits_of(to: Target, stats: DeploymentStats, now: float, previous: Attempt | None = None) -> Limits:
    """Return the knowledge for an attempt, without figures that are too old `now`, in epoch seconds."""
    seen = stats.seen_by(to.tenant, now)
    factor, other_weight = seen.factor(to.model), seen.other_weight(to.model)
    window = to.window
    limit = seen.limit_tokens(window.tokens)
    if limit is not None and limit < window.tokens:
        window = replace(window, tokens=limit, source="learned")
    if previous is not None:
        previous = previous.weighed(other_weight)
        if previous.to.deployment == to.deployment:
            window = _window_for_retry(window, factor, to.attempt, previous)
    return Limits(
        window,
        factor,
        output_limit_tokens=seen.output_limit_tokens(),
        previous=previous,
        other_weight=other_weight,
        wants_reasoning=wants_reasoning(to.model) or seen.wants_reasoning(),
    )


def _window_for_retry(window: Window, factor: float, number: int, previous: Attempt) -> Window:
    """Return the window for a retry: the limit that the refusal taught, else the one that it names or suggests.

    The conversation's next request uses the learned limit too, and continues the retry's text.

    No tokens are left if content that only the provider sees exceeds the limit by itself. A stored history is no such
    content: the provider can shorten it, and the request's own items are rarely the cause.
    """
    overflow, sent = previous.overflow, previous.sent_tokens
    if overflow is None or overflow.kind in ("output_limit", "bytes") or sent is None:
        return window
    if previous.stored:
        named = min(window.tokens, overflow.limit_tokens or window.tokens)
        return replace(window, tokens=named, source="refusal") if named < window.tokens else window
    refused = to_provider(sent, factor)
    # An accepted size just below the refused one makes that the limit; a second refusal contradicts it.
    is_below = window.tokens < refused or (number == 1 and window.tokens == refused)
    is_learned = window.source == "learned" and is_below
    limit = window.tokens if is_learned else limit_for_retry(overflow, refused, number)
    limit = ProviderTokens(max(0, limit - unseen_tokens(overflow, refused)))
    return replace(window, tokens=limit, source="refusal") if limit < window.tokens else window
