"""Pure functions that make the decision about an attempt that is counted. Their inputs are frozen once an attempt."""

import time
from collections.abc import Callable, Mapping
from copy import copy
from dataclasses import replace
from functools import partial
from typing import Any

from ctx_hooks.attempts.attempt import Attempt, Limits, attempt_at
from ctx_hooks.attempts.request import TRUNCATION, Request, counted_history
from ctx_hooks.attempts.target import Target
from ctx_hooks.compaction import last_resort
from ctx_hooks.compaction.history import History
from ctx_hooks.compaction.rereads import rereads
from ctx_hooks.compaction.steps import Outcome
from ctx_hooks.flow import fitting
from ctx_hooks.flow.decision import (
    Compressed,
    Decided,
    Figures,
    GaveUp,
    LeftToFallback,
    NotRetried,
    Untouched,
)
from ctx_hooks.flow.uncounted import allowed_output, unchanged
from ctx_hooks.formats.fields import items_of
from ctx_hooks.overflow.retry_plan import RetryPlan, smaller_than
from ctx_hooks.runtime.deadline import CompressionTimeoutError, Deadline, Timings
from ctx_hooks.tokens.budget import Budget
from ctx_hooks.tokens.counter import Counter, vocabulary_of
from ctx_hooks.tokens.units import LocalTokens, to_local, to_provider

MOST_BYTE_ROUNDS = 8
"""Each round brings a request nearer to its goal in bytes; screenshots take one or two."""
KEPT_BY_PROVIDER = "the provider keeps the history that exceeds the window"


def decide(request: Request, to: Target, limits: Limits, deadline: Deadline, timings: Timings) -> Decided:
    """Return the decision: the request is fitted before the call, compressed harder on a retry, or untouched.

    The work stops at `deadline`, and `timings` records its times. If a request is too large to select the kept text, it
    loses its oldest turns.

    Raises:
        MalformedConversationError: the request has no conversation.
        CompressionTimeoutError: the deadline has passed.
    """
    if request.is_too_large:
        return decide_by_last_resort(request, to, limits)
    counter = Counter(vocabulary_of(to.model), deadline, limits.other_weight)
    measure = partial(counted_history, counter=counter)
    return _decide(request, to, limits, counter, timings, measure, partial(fitting.compressed, limits))


def holds(request: Request, to: Target, limits: Limits, deadline: Deadline) -> bool:
    """Return whether a deployment gets a request whole; raises what `decide` raises."""
    decided = decide(request, replace(to, defers=True), limits, deadline, Timings())
    return not isinstance(decided.decision, LeftToFallback)


def decide_by_last_resort(request: Request, to: Target, limits: Limits, reason: str = last_resort.TOO_LONG) -> Decided:
    """Return the decision to drop the oldest turns for this reason: nothing is counted, and the sent size is an estimate.

    Raises:
        MalformedConversationError: the request has no conversation.
    """
    items = items_of(request.items)
    skimmed = last_resort.skim(items, request.wire, to_local(limits.window.tokens, limits.factor))

    def compress(asked: Request, _history: History, _to: Target, budget: Budget) -> Outcome:
        messages, continues = asked.messages.conversation(), asked.continues_stored_history
        return last_resort.compress(messages, budget, continues=continues, skimmed=skimmed)

    measure, counter = partial(_estimated_history, left_out=skimmed.tokens), Counter(vocabulary_of(to.model))
    decided = _decide(request.with_only(skimmed.kept), to, limits, counter, Timings(), measure, compress)
    is_cut = isinstance(decided.decision, (Compressed, GaveUp))
    return decided._replace(decision=replace(decided.decision, reason=reason)) if is_cut else decided


def _estimated_history(request: Request, left_out: LocalTokens) -> History:
    """Return the request's history with estimated figures, which teach nothing; `left_out` tokens are of other messages."""
    conversation = request.messages.conversation()
    preamble_tokens = LocalTokens(left_out + sum(map(last_resort.ESTIMATE.text, conversation.preamble)))
    return History(request.messages, last_resort.estimated_stats(conversation), preamble_tokens, b"")


def _decide(
    request: Request,
    to: Target,
    limits: Limits,
    counter: Counter,
    timings: Timings,
    measure: Callable[[Request], History],
    compress: Callable[[Request, History, Target, Budget], Outcome],
) -> Decided:
    request = copy(request)  # the deciding thread frees its cached data: on the event loop that would take 30 ms
    if limits.previous is not None and (reason := fitting.without_remedy(limits.previous, limits)):
        return _not_retried(reason, None, limits.previous)
    started = time.perf_counter()
    received = measure(request)
    kept = fitting.with_newest_turns(request, received, to.policy)
    newest = request.as_read_by(to.model, received.index) if kept is request else kept
    history = received if newest is request else measure(newest)
    timings.add("counting", started)
    plan = fitting.plan_attempt(request, history, to, limits)
    if plan is None:
        return _not_retried(KEPT_BY_PROVIDER, None, limits.previous or attempt_at(request, to, limits, history))
    most, factor = plan.most_tokens, limits.factor
    attempt = attempt_at(request, to, limits, history)
    attempt = replace(attempt, received_tokens=received.tokens, budget_tokens=to_provider(most, factor))
    budget = fitting.budget_of(to, limits, plan, counter)

    is_left = plan.truncates and received.tokens <= most
    fits = is_left or (kept is request and history.tokens <= most and plan.max_output_tokens is None)
    arrived = fitting.as_arrived(received, budget) if fits else None
    if arrived is None:
        if is_left:  # the provider shortens its stored history
            size, window = to_provider(received.tokens, factor), limits.window.tokens
            figures = Figures(size, min(size, window), to_provider(most, factor), window)
            return Decided(Compressed(TRUNCATION, figures), replace(attempt, truncates=True))
        if fits:
            return unchanged(request, attempt, "fits")
        if to.defers and history.tokens > most:
            return Decided(LeftToFallback(), attempt)
    started = time.perf_counter()
    outcome = arrived or _fitted(partial(compress, newest, history, to), newest, plan, budget, to, limits)
    timings.add("compressing", started)
    return _sent(request, to, plan, budget, history, attempt, outcome, newest if arrived is None else None)


def _fitted(
    compress: Callable[[Budget], Outcome], request: Request, plan: RetryPlan, budget: Budget, to: Target, limits: Limits
) -> Outcome:
    """Return the request within its budget; a retry gets a lower one only if it is no smaller than the refused request.

    A refusal for bytes lowers it until the bytes fit: tokens show little of them, since an image has many more.
    """
    outcome = compress(budget)
    refused, tool_tokens = limits.previous, plan.most_tokens - budget.goal_tokens
    if refused is not None and not plan.remedies:
        smaller = smaller_than(refused.sent_tokens)
        if outcome.tokens_after + tool_tokens > smaller:
            budget = budget.with_goal(min(budget.goal_tokens, LocalTokens(max(1, smaller - tool_tokens))))
            outcome = compress(budget)
    if not outcome.fits and (to.attempt or to.checked) and not plan.cut_newest:
        outcome = compress(replace(budget, cut_newest=True))
    for _ in range(0 if plan.most_bytes is None else MOST_BYTE_ROUNDS):
        share = (plan.most_bytes or 0) / request.json_bytes(request.changes(outcome.conversation))
        if share >= 1:
            break
        goal_tokens = LocalTokens(max(1, int(min(budget.goal_tokens, outcome.tokens_after) * share)))
        outcome = compress(budget := replace(budget, cut_newest=True).with_goal(goal_tokens))
    return outcome


def _sent(
    request: Request,
    to: Target,
    plan: RetryPlan,
    budget: Budget,
    history: History,
    attempt: Attempt,
    outcome: Outcome,
    compressed: Request | None,
) -> Decided:
    """Return the decision about a request after its compression, successful or not; None is for one sent as it arrived."""
    changes: dict[str, Any] = {}
    # A cut depends on its message only, even if its placeholder has more tokens than what it replaces.
    if compressed is None:
        changes = request.changes(outcome.conversation)
    elif outcome.tokens_after < (attempt.received_tokens or 0):
        changes = compressed.changes(outcome.conversation)
    refused = attempt.limits.previous
    sent, others, offers = outcome.tokens_after, attempt.other_tokens, bool(changes) and outcome.offers
    if changes and others and to.policy.mode == "enforce":
        others = budget.counter.others(outcome.conversation.messages, outcome.conversation.preamble)
    if offers:
        sent = LocalTokens(sent + plan.most_tokens - budget.goal_tokens)
        if to.retrievable is not None and to.retrievable.tool is not None:
            changes |= request.with_tool(to.retrievable.tool)
    if changes and not to.attempt:
        attempt = replace(attempt, rereads=_rereads_in(to, history, budget))
    # A later retry asks for it too: else the provider would send the whole stored history again.
    truncates = attempt.truncates or plan.truncates or (refused is not None and refused.truncates)
    attempt = replace(
        attempt,
        sent_tokens=sent,
        other_tokens=others,
        lowered=plan.max_output_tokens is not None,
        truncates=truncates,
        rewrites=outcome.rewrites,
        choice=outcome.choice,
    )
    changes |= TRUNCATION if truncates and not request.asks_for_truncation else {}
    output_tokens = allowed_output(request, attempt) if plan.max_output_tokens is None else plan.max_output_tokens
    if output_tokens is not None:
        changes |= request.with_output(output_tokens)
        attempt = replace(attempt, output_tokens=output_tokens)
    return _concluded(changes, outcome, plan, attempt)._replace(offers=offers)


def _rereads_in(to: Target, history: History, budget: Budget) -> Mapping[str, int]:
    """Return the newest answer's re-reads by tool, none if the search would take too long."""
    try:
        return rereads(history, fitting.thresholds_of(history, budget), to.summaries)
    except CompressionTimeoutError:
        return {}  # the request itself is fitted by now


def _concluded(changes: dict[str, Any], outcome: Outcome, plan: RetryPlan, attempt: Attempt) -> Decided:
    limits, sent = attempt.limits, attempt.sent_provider_tokens
    most, refused = to_provider(plan.most_tokens, limits.factor), attempt.limits.previous
    figures = Figures(attempt.received_provider_tokens, sent, most, limits.window.tokens)
    if refused and not plan.remedies and (attempt.sent_tokens or 0) > smaller_than(refused.sent_tokens):
        return _not_retried(outcome.reason or "it cannot be made smaller", figures, refused)
    if not outcome.fits:
        return Decided(GaveUp(changes, figures, outcome.steps, outcome.reason or ""), attempt)
    if changes:
        return Decided(Compressed(changes, figures, outcome.steps), attempt)
    return Decided(Untouched(figures=figures, reason="a compaction would cost more than it saves"), attempt)


def _not_retried(reason: str, figures: Figures | None, refused: Attempt) -> Decided:
    """Return the decision to send nothing, and the refused attempt, which has no retry."""
    return Decided(NotRetried(figures=figures, reason=reason), replace(refused, spent=True))
