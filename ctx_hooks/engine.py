"""From one attempt to one decision: pure functions. What they need of the world is handed in, frozen, once an attempt."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from ctx_hooks.compaction import cost, last_resort
from ctx_hooks.compaction.message_index import is_first_request, message_stats
from ctx_hooks.compaction.prefix_stable import History, Thresholds, compacted, history_of
from ctx_hooks.decision import Compressed, Decision, Figures, GaveUp, NotRetried, Rescued, Untouched, changes_of
from ctx_hooks.learning.attempts import Attempt
from ctx_hooks.learning.calibration import family_factor
from ctx_hooks.overflow.retry_plan import (
    LEAST_OUTPUT_TOKENS,
    SMALLER_FRACTION,
    RetryPlan,
    limit_for_retry,
    lower_output,
    plan_of,
)
from ctx_hooks.request.request import Request, output_limits_in
from ctx_hooks.telemetry.events import CompactionEvent, CompressionTimeoutEvent, emit
from ctx_hooks.tokens.budget import Budget
from ctx_hooks.tokens.counter import Counter
from ctx_hooks.tokens.vocabulary import vocabulary_of
from ctx_hooks.tokens.window import DYNAMIC_MESSAGES, Window, budget_tokens_of, target_tokens_of

if TYPE_CHECKING:
    from ctx_hooks.compaction.pipeline import Outcome
    from ctx_hooks.learning.stats import DeploymentStats
    from ctx_hooks.request.target import Target
    from ctx_hooks.runtime.deadline import Deadline

ESTIMATE_ERROR_FRACTION = 0.05
"""How far a calibrated figure may be off (its 95th percentile): an output that is lowered leaves this free."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of a deployment when an attempt at it begins.

    `window` is in provider tokens, with what was learned of it; `factor` is provider tokens per local
    token; `output_limit_tokens` the largest answer it gives, None where nothing was shown; `counts` asks for a
    count however small the request looks; `previous` is the attempt that was refused before this one.
    """

    window: Window
    factor: float = 1.0
    output_limit_tokens: int | None = None
    counts: bool = False
    previous: Attempt | None = None


class Decided(NamedTuple):
    """A decision, and the attempt that it leads to."""

    decision: Decision
    attempt: Attempt


def known_of(to: Target, stats: DeploymentStats, now: float, previous: Attempt | None = None) -> Known:
    """Return what is known at the time `now` (epoch seconds) for an attempt at `to`."""
    policy, tenant, window = to.policy, to.tenant, to.window
    learned = stats.limit_tokens(tenant, window.tokens, policy.learned_limit_floor_fraction, now)
    if learned is not None and learned < window.tokens:
        window = replace(window, tokens=learned, source="learned")
    held = stats.output_held(tenant, window.tokens, now)
    if held is not None and policy.window_holds_output is None:
        window = replace(window, holds_output=held)
    factor = stats.factor(tenant, to.model, now) if policy.calibrate else family_factor(to.model)
    if previous is not None and previous.deployment == to.deployment:
        window = _window_for_retry(window, factor, to.attempt, previous)
    counts = bool(to.attempt) or policy.looks_at_every_request or stats.counts_next(tenant, now)
    return Known(window, factor, stats.output_limit_tokens(tenant, now), counts, previous)


def decide_by_size(request: Request, to: Target, known: Known) -> Decided | None:
    """Return the decision about a request that fits by its size alone, None where it has to be counted."""
    if known.counts:
        return None
    most = _budget_tokens(request, to, known)
    size = request.most_tokens(most)
    if size > most:
        return None
    attempt = replace(_attempt(request, to, known, None), most_tokens=size)
    return _decided(_untouched("fits by its size alone", _lower_output(request, known, None)), attempt)


def decide(request: Request, to: Target, known: Known, deadline: Deadline | None = None) -> Decided:
    """Return the request fitted before the call, compressed harder on a retry, or untouched.

    Without a `deadline` it is the last resort: nothing is counted, sizes are estimated, and the oldest turns are dropped.
    Raises MalformedConversationError when the request holds no conversation, CompressionTimeoutError at the deadline.
    """
    if known.previous is not None and not known.window.tokens:
        spent = replace(known.previous, spent=True)
        return Decided(NotRetried("what only the provider sees of it exceeds the limit"), spent)
    counter = Counter(vocabulary_of(to.model), deadline)
    history = history_in(request, counter) if deadline else _estimated(request)
    received = history.tokens
    newest = request.newest_turns(history.index, to.policy.max_turns)
    if newest is not request:
        history = history_in(newest, counter) if deadline else _estimated(newest)
    plan = _plan(request, history, to, known)
    attempt = replace(_attempt(request, to, known, history), received_tokens=received)
    if newest is request and received <= plan.most_tokens and plan.max_output_tokens is None:
        return _fitting(request, to, known, attempt)
    compressed = _compressed if deadline else _last_resort
    budget = Budget(plan.most_tokens, known.window.tokens, counter, to.policy, plan.cut_newest)
    outcome = compressed(newest, history, budget, to)
    if not outcome.fits and to.attempt and not plan.cut_newest:
        outcome = compressed(newest, history, replace(budget, cut_newest=True), to)
    lowered = plan.max_output_tokens
    attempt = replace(attempt, sent_tokens=outcome.tokens_after, lowered=lowered is not None)
    changes = newest.changes(outcome.conversation) if outcome.tokens_after < received else {}
    if to.policy.repair == "always" and not changes:
        changes = request.repaired()
    changes |= _lower_output(request, known, attempt) if lowered is None else request.with_output(lowered)
    return _concluded(changes, outcome, received, plan, to, known, attempt)


def history_in(request: Request, counter: Counter) -> History:
    """Return the request's history as `counter` counts it."""
    index = message_stats(request.format, request.items, counter)
    return history_of(request.part, index, request.preamble(), counter, continues=request.continues_stored_history)


def _window_for_retry(window: Window, factor: float, number: int, previous: Attempt) -> Window:
    """Return the window that a retry keeps to: for this request alone, what the refusal says or lets guess.

    Where the provider names its count, what that has more or less than the estimate here, beyond the estimate's error, is
    taken as fixed: it is content that only the provider sees, or media whose size is a guess. No tokens at all are left
    where that alone exceeds the limit.
    """
    overflow = previous.overflow
    if overflow is None or overflow.kind == "output_limit" or previous.sent_tokens is None:
        return window
    estimated = int(previous.sent_tokens * factor)
    first = int((previous.first_tokens or previous.sent_tokens) * factor)
    limit = limit_for_retry(overflow, estimated, first, number)
    if overflow.limit_tokens and overflow.input_tokens and not overflow.at_least:
        unseen = overflow.input_tokens - estimated
        if abs(unseen) > overflow.input_tokens * ESTIMATE_ERROR_FRACTION:
            limit = max(0, limit - unseen)
    return replace(window, tokens=limit, source="refusal") if limit < window.tokens else window


def _budget_tokens(request: Request, to: Target, known: Known, recent_tokens: float = 0.0, fixed_tokens: int = 0) -> int:
    """Return what the request may have, in local tokens."""
    output, recent, fixed = request.max_output_tokens, recent_tokens * known.factor, fixed_tokens * known.factor
    return int(budget_tokens_of(known.window, to.policy, output, recent, fixed) / known.factor)


def _plan(request: Request, history: History, to: Target, known: Known) -> RetryPlan:
    """Return what this attempt has to be: within the budget, and on a retry smaller than what was refused."""
    recent = history.index[-DYNAMIC_MESSAGES:]
    mean = sum(m.tokens for m in recent) / max(1, len(recent))
    most = _budget_tokens(request, to, known, mean, history.fixed_tokens)
    previous = known.previous
    if previous is None:
        # Where the provider has named its limit, what does not fit will be refused: nothing would be saved for a retry.
        return RetryPlan(most, cut_newest=known.window.source == "learned")
    lowered = None
    if previous.overflow is not None and not previous.lowered:
        lowered = lower_output(previous.overflow, request.max_output_tokens)
    plan = plan_of(to.attempt, to.policy.rescue_attempts, previous.sent_tokens, lowered)
    if plan.max_output_tokens is not None:
        return plan
    return replace(plan, most_tokens=max(1, min(most, plan.most_tokens)))


def _fitting(request: Request, to: Target, known: Known, attempt: Attempt) -> Decided:
    """Return the decision about a request that fits as it came."""
    changes = request.repaired() if to.policy.repair == "always" else {}
    return _decided(_untouched("fits", changes | _lower_output(request, known, attempt)), attempt)


def _compressed(request: Request, history: History, budget: Budget, to: Target) -> Outcome:
    """Return the history as it is to be sent, and tell the listeners."""
    event = CompactionEvent(
        "before_compaction", to.model, request.format, history.tokens, budget.goal_tokens, budget.window_tokens, to.attempt
    )
    emit(event)
    target_tokens = target_tokens_of(budget.goal_tokens, to.policy, history.fixed_tokens)
    if is_first_request(history.index):
        target_tokens = budget.goal_tokens
    if _does_not_pay(history.tokens, target_tokens, budget, to):
        outcome, _ = compacted(history, Thresholds(budget.with_goal(history.tokens), history.tokens), repair=False)
    else:
        outcome, _ = compacted(history, Thresholds(budget, target_tokens), repair=to.policy.repair != "off")
    steps = tuple(step.name for step in outcome.steps)
    emit(replace(event, name="after_compaction", tokens_after=outcome.tokens_after, steps=steps))
    return outcome


def _does_not_pay(received: int, target_tokens: int, budget: Budget, to: Target) -> bool:
    """Whether the window would hold the request uncompressed, and compacting costs more than it saves."""
    if not to.policy.cost_aware or to.prices is None or to.attempt or received > budget.window_tokens:
        return False
    return not cost.pays(received, target_tokens, to.policy.expected_turns, to.prices)


def _concluded(
    changes: dict[str, Any],
    outcome: Outcome,
    received: int,
    plan: RetryPlan,
    to: Target,
    known: Known,
    attempt: Attempt,
) -> Decided:
    """Return the decision about a request that was compressed, or tried to be."""
    before, after, most = (int(n * known.factor) for n in (received, outcome.tokens_after, plan.most_tokens))
    figures = Figures(before, after, most, known.window.tokens)
    refused = known.previous
    if refused is not None and plan.max_output_tokens is None and not _is_smaller(outcome, refused):
        spent = replace(refused, spent=True)
        return Decided(NotRetried(outcome.reason or "it cannot be made smaller", figures), spent)
    if not changes:
        return Decided(Untouched("nothing to do", figures), attempt)
    if not outcome.fits:
        return _decided(GaveUp(changes, figures, outcome.reason or "", outcome.steps), attempt)
    if to.attempt:
        return _decided(Rescued(changes, figures, outcome.steps, to.attempt), attempt)
    return _decided(Compressed(changes, figures, outcome.steps), attempt)


def _is_smaller(outcome: Outcome, refused: Attempt) -> bool:
    """Whether it is smaller by a margin than what was refused, or what was refused is not known."""
    return refused.sent_tokens is None or outcome.tokens_after <= refused.sent_tokens * SMALLER_FRACTION


def _decided(decision: Decision, attempt: Attempt) -> Decided:
    """Return the decision with the attempt that asks for the output which the decision leaves."""
    changes = changes_of(decision)
    output = next(iter(output_limits_in(changes).values()), attempt.output_tokens)
    return Decided(decision, replace(attempt, output_tokens=output))


def _last_resort(request: Request, history: History, budget: Budget, to: Target) -> Outcome:
    """Return the request without its oldest turns, and tell the listeners."""
    del history  # it is estimated: the conversation itself is walked once
    outcome = last_resort.compress(request.conversation(), budget, continues=request.continues_stored_history)
    figures = (outcome.tokens_before, outcome.tokens_after, budget.goal_tokens)
    seconds = None if request.is_too_large else budget.policy.compression_timeout_seconds
    emit(CompressionTimeoutEvent("compression_timeout", to.model, request.format, *figures, seconds))
    return outcome


def _estimated(request: Request) -> History:
    """Return the history with estimated figures, of which none teaches anything."""
    conversation = request.conversation()
    preamble_tokens = sum(map(last_resort.text_tokens, conversation.preamble))
    return History(conversation.part, last_resort.estimated_stats(conversation), preamble_tokens, b"")


def _untouched(reason: str, changes: dict[str, Any]) -> Decision:
    return Compressed(changes, None, ()) if changes else Untouched(reason)


def _lower_output(request: Request, known: Known, attempt: Attempt | None) -> dict[str, Any]:
    """Return the lower output for a deployment that would refuse the requested one, nothing where it would not.

    `known.output_limit_tokens` is the most that any answer of the deployment may have; beside it the window may leave
    less, where the request was counted.
    """
    asked, cap, window = request.max_output_tokens, known.output_limit_tokens, known.window
    if asked is None:
        return {}
    allowed = asked
    if cap is not None and cap >= LEAST_OUTPUT_TOKENS:
        allowed = min(asked, cap)
    if window.holds_output and attempt is not None and attempt.sent_tokens is not None:
        room = window.tokens - int(attempt.sent_provider_tokens * (1 + ESTIMATE_ERROR_FRACTION))
        if allowed > window.tokens - attempt.sent_provider_tokens and room >= LEAST_OUTPUT_TOKENS:
            allowed = room
    return request.with_output(allowed) if allowed < asked else {}


def _attempt(request: Request, to: Target, known: Known, history: History | None) -> Attempt:
    """Return the attempt that sends `history` as it came; None where it was not counted."""
    tokens = history.tokens if history is not None else None
    return Attempt(
        to.deployment,
        to.model,
        to.tenant,
        request.format,
        tokens,
        tokens,
        known.window,
        known.factor,
        to.window.tokens,
        to.attempt,
        output_tokens=request.max_output_tokens,
        guessed_tokens=sum(m.guessed_tokens for m in history.index) if history is not None else 0,
        counts_all=history is None or not request.has_uncounted_content,
    )
