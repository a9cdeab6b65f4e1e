"""Fits an output into what the window leaves, and a history into a budget, by compaction or by the last resort."""

from dataclasses import replace

from ctx_hooks import message_rules
from ctx_hooks.compaction import cost
from ctx_hooks.compaction.asked_again import NOTHING, AskedAgain, asked_again
from ctx_hooks.compaction.history import History
from ctx_hooks.compaction.message_index import is_first_request
from ctx_hooks.compaction.pipeline import Outcome, StepReport
from ctx_hooks.compaction.prefix_stable import compacted
from ctx_hooks.compaction.steps.oversized_results import least_capped_chars
from ctx_hooks.compaction.thresholds import Thresholds
from ctx_hooks.conversation.cut_texts import CutTexts
from ctx_hooks.formats.fields import compact_json
from ctx_hooks.learning.attempts import Known
from ctx_hooks.overflow.retry_plan import LEAST_OUTPUT_TOKENS, RetryPlan
from ctx_hooks.policy.settings import Policy
from ctx_hooks.request.request import Request
from ctx_hooks.request.target import Target
from ctx_hooks.runtime.deadline import CompressionTimeoutError
from ctx_hooks.telemetry.events import CompactionEvent
from ctx_hooks.telemetry.listeners import emit
from ctx_hooks.tokens.budget import Budget, Window
from ctx_hooks.tokens.counter import Counter
from ctx_hooks.tokens.units import ESTIMATE_ERROR_FRACTION, LocalTokens, ProviderTokens, to_provider


def allowed_output_tokens(
    requested: ProviderTokens, most: ProviderTokens | None, window: Window, input_tokens: ProviderTokens | None
) -> ProviderTokens:
    """Return as much of the requested output as a deployment accepts.

    It leaves room for the estimate's error while LEAST_OUTPUT_TOKENS remain. It never asks for less than these: then the
    provider decides, and if it refuses, the conversation is compacted.

    Args:
        requested: the output that the request asks for.
        most: the largest output that the deployment gives, None if unknown.
        window: the limit for input and output together, if the window includes the output.
        input_tokens: an estimate of the input; None if it was not counted, and the window allows any output.
    """
    allowed = requested
    if most is not None and most >= LEAST_OUTPUT_TOKENS:
        allowed = min(requested, most)
    if window.holds_output and input_tokens is not None and LEAST_OUTPUT_TOKENS <= window.tokens - input_tokens < allowed:
        room = ProviderTokens(window.tokens - int(input_tokens * (1 + ESTIMATE_ERROR_FRACTION)))
        allowed = max(room, LEAST_OUTPUT_TOKENS)
    return allowed


def budget_of(to: Target, known: Known, plan: RetryPlan, counter: Counter, received: LocalTokens) -> Budget:
    """Return the budget of a request of `received` tokens, without the retrieval tool's own tokens.

    A retry, or a request that may exceed the window, is compressed in full: the alternative is an error.
    """
    is_gentle = to.policy.compaction == "gentle" and not to.attempt and received <= known.window_less_error()
    policy = to.policy.model_copy(update={"compaction": "gentle" if is_gentle else "full"})
    cut_texts, tool_tokens = None, LocalTokens(0)
    found = to.retrievable
    if found is not None:
        cut_texts = CutTexts(found.handles, found.kept_days, is_offered=found.tool is not None)
        tool_tokens = counter.text(compact_json(found.tool)) if found.tool is not None else tool_tokens
    goal_tokens = LocalTokens(max(1, plan.most_tokens - tool_tokens))
    window_tokens, wants_reasoning = known.window.tokens, known.wants_reasoning
    return Budget(goal_tokens, window_tokens, counter, policy, plan.cut_newest, cut_texts, wants_reasoning)


def may_cut(policy: Policy, window_tokens: ProviderTokens, longest_chars: int) -> bool:
    """Whether a result of so many characters may be cut although its request fits."""
    return policy.tool_results.apply == "always" and longest_chars > least_capped_chars(window_tokens, policy)


def repaired(history: History, budget: Budget) -> Outcome | None:
    """Return the history with what its provider refuses repaired; None if the policy does not ask, or nothing is broken."""
    if budget.policy.repair != "always":
        return None
    conversation = history.conversation(budget.counter)
    made, repairs = message_rules.repair(conversation, continues=history.continues, language=budget.policy.language)
    if not repairs:
        return None
    after = budget.counter.conversation(made)
    step = StepReport("repair", history.tokens - after, len(repairs), "the provider refuses the messages as they came")
    return Outcome(made, history.tokens, after, fits=True, steps=(step,))


def arrived(history: History, budget: Budget) -> Outcome:
    """Return the history with oversized results cut as on arrival, and nothing else changed: no compaction is due."""
    return compacted(history, Thresholds(budget.with_goal(LocalTokens(2 * history.tokens))))[0]


def compressed(
    known: Known, request: Request, history: History, to: Target, budget: Budget, *, remakes: bool = False
) -> Outcome:
    """Return the history to send, and report it to the listeners.

    With `remakes` it has all removed texts, including those of earlier requests' compactions, and emits no event.
    """
    if remakes:
        budget = replace(budget, cut_texts=budget.cut_texts and replace(budget.cut_texts, remakes=True))
    tokens, goal = (to_provider(size, known.factor) for size in (history.tokens, budget.goal_tokens))
    window = budget.window_tokens
    event = CompactionEvent(
        name="before_compaction",
        model=to.model,
        format=request.format,
        tokens_before=tokens,
        budget_tokens=goal,
        window_tokens=window,
        reserve_tokens=ProviderTokens(max(0, window - goal)),
        usage_fraction=tokens / window,
        messages_before=len(history.index),
        attempt=to.attempt,
        request_id=to.request_id,
        mode=to.policy.mode,
    )
    if not remakes:
        emit(event)
    thresholds = _thresholds(history, budget)
    if history.tokens <= known.window_less_error() and _does_not_pay(history, thresholds, to):
        whole = Outcome(history.conversation(budget.counter), history.tokens, history.tokens, fits=True, steps=())
        outcome = arrived(history, budget) if budget.policy.tool_results.apply == "always" else whole
    else:
        outcome, _ = compacted(history, thresholds, known.summaries)
    if not remakes:
        steps = tuple(step.name for step in outcome.steps)
        after, touched = to_provider(outcome.tokens_after, known.factor), sum(s.messages_touched for s in outcome.steps)
        emit(replace(event, name="after_compaction", tokens_after=after, messages_touched=touched, steps=steps))
    return outcome


def calls_asked_again(known: Known, history: History, budget: Budget) -> AskedAgain:
    """Return the newest answer's calls that were made before, nothing if the search would take too long."""
    try:
        return asked_again(history, _thresholds(history, budget), known.summaries)
    except CompressionTimeoutError:
        return NOTHING  # the request itself is fitted by now


def _thresholds(history: History, budget: Budget) -> Thresholds:
    return Thresholds(budget, budget.goal_tokens if is_first_request(history.index) else None)


def _does_not_pay(history: History, thresholds: Thresholds, to: Target) -> bool:
    """Whether compacting a request that fits the window costs more than it saves."""
    if to.policy.compaction != "cost_aware" or to.prices is None or to.attempt:
        return False
    left_tokens = thresholds.target_tokens_behind(history.fixed_tokens)
    summary, prices = to.policy.summary, to.writing_prices
    summary_cost = (
        prices.of_summary(history.tokens, summary.max_tokens) if summary is not None and prices is not None else 0.0
    )
    return not cost.pays(history.tokens, left_tokens, to.prices, summary_cost)
