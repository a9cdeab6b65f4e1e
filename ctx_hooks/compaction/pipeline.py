"""Runs the steps until the goal is met, and reports what each did."""

from ctx_hooks.compaction.steps import Outcome, Step, StepReport, oldest_turns, parts, results
from ctx_hooks.conversation.conversation import Conversation
from ctx_hooks.message_rules.reasoning import with_elisions
from ctx_hooks.tokens.budget import Budget

STEPS: tuple[Step, ...] = (
    parts.REPEATS,
    parts.REASONING,
    results.OVERSIZED,
    parts.LONG_REQUEST,
    results.LARGE_NEWEST,
    parts.MEDIA,
    oldest_turns.STEP,
    results.NEWEST_LOOP,
)
"""The steps in their order: repeats compares results before any other step changes them."""


def compress(conversation: Conversation, budget: Budget, steps: tuple[Step, ...] = STEPS) -> Outcome:
    """Run steps in order until the goal is met, without those that do not make the conversation smaller.

    Raises CompressionTimeoutError if the deadline of the budget's counter is over.
    """
    before = tokens = budget.counter.conversation(conversation)
    reports: list[StepReport] = []
    for step in steps:
        if tokens <= budget.goal_tokens:
            break
        budget.counter.deadline.check()
        applied = step.apply(conversation, budget)
        if budget.wants_reasoning:
            applied = with_elisions(conversation, applied)
        if applied is conversation:
            continue
        left = budget.counter.conversation(applied)
        if left >= tokens:
            continue
        old, new = ({id(m) for m in c.messages} for c in (conversation, applied))
        reports.append(StepReport(step.name, tokens - left, max(len(old - new), len(new - old)), step.why))
        conversation, tokens = applied, left
    fits = tokens <= budget.goal_tokens
    reason = None if fits else f"{tokens} tokens are protected or cannot be cut, the budget is {budget.goal_tokens}"
    return Outcome(conversation, before, tokens, fits, tuple(reports), reason)
