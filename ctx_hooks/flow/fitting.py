"""What an attempt may have, and a history compressed to it."""

from dataclasses import replace

from ctx_hooks import message_rules
from ctx_hooks.attempts.attempt import Attempt, Limits
from ctx_hooks.attempts.request import Request
from ctx_hooks.attempts.target import Target
from ctx_hooks.compaction import cost
from ctx_hooks.compaction.cut_points import Thresholds
from ctx_hooks.compaction.history import History, is_first_request, newest_turns
from ctx_hooks.compaction.prefix_stable import compacted
from ctx_hooks.compaction.steps import Outcome, StepReport
from ctx_hooks.conversation.handles import CutTexts
from ctx_hooks.formats.fields import compact_json
from ctx_hooks.overflow.retry_plan import RetryPlan, bytes_for_retry, lower_output, smaller_than
from ctx_hooks.policy.settings import Policy
from ctx_hooks.telemetry.events import CompactionEvent
from ctx_hooks.telemetry.listeners import emit
from ctx_hooks.tokens.budget import Budget, may_cut_result
from ctx_hooks.tokens.counter import Counter
from ctx_hooks.tokens.units import LocalTokens, ProviderTokens, to_provider


def without_remedy(refused: Attempt, limits: Limits) -> str:
    """Return why no retry can help, "" if one may: a refusal of the output says nothing against the messages."""
    if not limits.window.tokens:
        return "what only the provider sees of it exceeds the limit"
    said = refused.overflow
    if said is not None and said.kind == "output_limit" and lower_output(said, refused.output_tokens) is None:
        return "its output was refused, and no lower limit of it is known"
    return ""


def with_newest_turns(request: Request, history: History, policy: Policy) -> Request:
    """Return the request with the turns that the policy sends, repaired if others go: they may have had a result's call."""
    kept = request if policy.max_turns is None else request.with_only(newest_turns(history.index, policy.max_turns))
    if kept is request:
        return request
    continues, conversation = request.continues_stored_history, kept.messages.conversation()
    made, _ = message_rules.repair(conversation, continues=continues, language=policy.language)
    return kept if made is conversation else kept.with_fields({**kept.fields, **kept.changes(made)})


def plan_attempt(request: Request, history: History, to: Target, limits: Limits) -> RetryPlan | None:
    """Return the plan for this attempt: within the budget, and on a retry smaller than the refused request.

    None if a history that the provider keeps exceeds the window, and the plugin cannot reduce it further.
    """
    most, previous = limits.most_tokens(to, request, history), limits.previous
    if previous is None:
        # If the provider has named its limit, it will refuse a larger request: nothing would be saved for a retry.
        return RetryPlan(most, cut_newest=limits.window.source == "learned")
    said, lowered, most_bytes = previous.overflow, None, None
    if said is not None and (said.kind == "output_limit" or not previous.lowered):
        lowered = lower_output(said, previous.output_tokens)
    if lowered is not None:  # with the budget of the refused attempt its messages become the same
        return RetryPlan(max(most, previous.sent_tokens or most), cut_newest=False, max_output_tokens=lowered)
    if request.continues_stored_history:
        # The request's own items are new, and are not removed to make room for old ones.
        if request.wire.has_items and not request.asks_for_truncation and not previous.truncates:
            return RetryPlan(most, cut_newest=True, truncates=True)
        if history.tokens <= most:
            return None
    if history.tokens <= most:
        most = min(most, smaller_than(previous.sent_tokens))
    # A request above the budget is compacted as the next one will be, so that the next one begins with the same text.
    if said is not None and said.kind == "bytes":
        most_bytes = bytes_for_retry(said, request.json_bytes({}), to.attempt)
    return RetryPlan(most, cut_newest=limits.window.source in ("learned", "refusal"), most_bytes=most_bytes)


def budget_of(to: Target, limits: Limits, plan: RetryPlan, counter: Counter) -> Budget:
    """Return the budget of a request, without the retrieval tool's own tokens."""
    found = to.retrievable
    cut_texts, tool = CutTexts(found), None if found is None else found.tool
    tool_tokens = LocalTokens(0) if tool is None else counter.text(compact_json(tool))
    goal_tokens = LocalTokens(max(1, plan.most_tokens - tool_tokens))
    window_tokens, wants_reasoning = limits.window.tokens, limits.wants_reasoning
    return Budget(goal_tokens, window_tokens, counter, to.policy, plan.cut_newest, cut_texts, wants_reasoning)


def as_arrived(history: History, budget: Budget) -> Outcome | None:
    """Return a history that need not be compressed with its oversized results cut, or repaired; None if it is sent whole."""
    if may_cut_result(budget.policy, budget.window_tokens, max((stats.result_chars for stats in history.index), default=0)):
        outcome = _capped(history, budget)
        if any(message.edited for message in outcome.conversation.messages):
            return outcome
    if budget.policy.repair != "always":
        return None
    conversation = history.conversation(budget.counter)
    made, repairs = message_rules.repair(conversation, continues=history.continues, language=budget.policy.language)
    if not repairs:
        return None
    after = budget.counter.conversation(made)
    step = StepReport("repair", history.tokens - after, len(repairs), "the provider refuses the messages as they came")
    return Outcome(made, history.tokens, after, fits=True, steps=(step,))


def _capped(history: History, budget: Budget) -> Outcome:
    """Return the history with oversized results cut as on arrival, and nothing else changed: no compaction is due."""
    return compacted(history, Thresholds(budget.with_goal(LocalTokens(2 * history.tokens))))[0]


def compressed(limits: Limits, request: Request, history: History, to: Target, budget: Budget) -> Outcome:
    """Return the history to send, and report it to the listeners."""
    tokens, goal = (to_provider(size, limits.factor) for size in (history.tokens, budget.goal_tokens))
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
        attempt=to.attempt,
        request_id=to.request_id,
        mode=to.policy.mode,
    )
    emit(event)
    thresholds = thresholds_of(history, budget)
    if history.tokens > limits.window_less_error() or not _costs_more(history, thresholds, to):
        outcome, _ = compacted(history, thresholds, to.summaries)
    elif budget.policy.tool_results.apply == "always":
        outcome = _capped(history, budget)
    else:
        outcome = Outcome(history.conversation(budget.counter), history.tokens, history.tokens, fits=True, steps=())
    steps = tuple(step.name for step in outcome.steps)
    after, touched = to_provider(outcome.tokens_after, limits.factor), sum(s.messages_touched for s in outcome.steps)
    emit(replace(event, name="after_compaction", tokens_after=after, messages_touched=touched, steps=steps))
    return outcome


def thresholds_of(history: History, budget: Budget) -> Thresholds:
    """Return the sizes that a compaction of a history goes by."""
    return Thresholds(budget, budget.goal_tokens if is_first_request(history.index) else None)


def _costs_more(history: History, thresholds: Thresholds, to: Target) -> bool:
    """Whether compacting a request that fits the window costs more than it saves."""
    if to.policy.compaction != "cost_aware" or to.prices is None or to.attempt:
        return False
    left_tokens = thresholds.target_tokens_behind(history.fixed_tokens)
    return not cost.pays(history.tokens, left_tokens, to.prices)
