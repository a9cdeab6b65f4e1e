"""Runs the steps until the goal is met, and reports what each did."""

from dataclasses import dataclass

from ctx_hooks.compaction.steps import Step, long_request, older_parts, oldest_turns, results
from ctx_hooks.compaction.summary.model_written import Choice
from ctx_hooks.conversation.conversation import Conversation
from ctx_hooks.message_rules.reasoning import with_elisions
from ctx_hooks.tokens.budget import Budget
from ctx_hooks.tokens.units import LocalTokens

STEPS: tuple[Step, ...] = (
    older_parts.REPEATS,
    older_parts.REASONING,
    results.OVERSIZED,
    long_request.STEP,
    results.LARGE_NEWEST,
    older_parts.MEDIA,
    oldest_turns.STEP,
    results.NEWEST_LOOP,
)
"""The steps in their order: repeats compares results before any other step changes them."""


@dataclass(frozen=True, slots=True)
class StepReport:
    """What one step did; `messages_touched` counts edited, removed and added messages."""

    name: str
    tokens_saved: int
    messages_touched: int
    why: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A compressed conversation with its figures, in local tokens of the whole request.

    Attributes:
        conversation: the compressed form; the given object itself if nothing was done.
        reason: why the goal was not met, None if it was.
        rewrites: whether it does not share its prefix with the previous request: the prompt cache has no such prefix.
        choice: the form of the newest compaction in it; None without one, and if no model writes summaries.
        offers: whether a placeholder in it says that the model can retrieve the whole removed text.
    """

    conversation: Conversation
    tokens_before: LocalTokens
    tokens_after: LocalTokens
    fits: bool
    steps: tuple[StepReport, ...]
    reason: str | None = None
    rewrites: bool = False
    choice: Choice | None = None
    offers: bool = False


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
