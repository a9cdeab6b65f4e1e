"""Runs the steps until the goal is met, and reports what each did."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ctx_hooks.compaction.steps import Step, newest_loop, older_parts, oldest_turns, oversized_results, repeats
from ctx_hooks.compaction.summary.model_written import Choice
from ctx_hooks.conversation.model import Conversation
from ctx_hooks.message_rules.reasoning import with_elisions
from ctx_hooks.tokens.budget import Budget
from ctx_hooks.tokens.units import LocalTokens

STEPS: tuple[Step, ...] = (
    repeats.STEP,
    older_parts.REASONING,
    oversized_results.STEP,
    newest_loop.LARGE,
    older_parts.MEDIA,
    oldest_turns.STEP,
    newest_loop.STEP,
)
"""The steps in their order: repeats compares results before any other step changes them."""
GENTLE_STEPS = frozenset({repeats.STEP, oversized_results.STEP})
"""The steps of `compaction: gentle`: they remove repeated text, and apply the caps."""


@dataclass(frozen=True, slots=True)
class StepReport:
    """What one step did.

    `messages_touched` counts edited, removed and added messages; `why` is "" in events of earlier versions.
    """

    name: str
    tokens_saved: int
    messages_touched: int
    why: str = ""


@dataclass(frozen=True, slots=True)
class Outcome:
    """A compressed conversation with its figures, in local tokens of the whole request.

    Attributes:
        conversation: the compressed form; the given object itself if nothing was done.
        fits: whether the goal was met.
        steps: reports of the steps that changed something, in order.
        reason: why the goal was not met, None if it was.
        rewrites: whether it does not share its prefix with the previous request: the prompt cache has no such prefix.
        choice: the form of the newest compaction in it; None without one, and if no model writes summaries.
        cut: the removed texts that it refers to, by handle; None for a text that an earlier request has removed.
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
    cut: Mapping[str, str | None] = field(default_factory=dict, repr=False)
    offers: bool = False


def compress(conversation: Conversation, budget: Budget, steps: tuple[Step, ...] | None = None) -> Outcome:
    """Run steps in order until the goal is met. Skip a step that would not make the conversation smaller.

    `steps` are by default those of the policy and of installed packages.

    Raises:
        CompressionTimeoutError: the deadline of the budget's counter is over.

    >>> from ctx_hooks.conversation.model import Conversation, Message, Text
    >>> from ctx_hooks.tokens.budget import Budget
    >>> from ctx_hooks.tokens.counter import Counter
    >>> said = [Message("user" if n % 2 else "assistant", (Text(f"This is remark number {n}. " * 9),)) for n in range(99)]
    >>> budget = Budget(goal_tokens=1_500, window_tokens=8_000, counter=Counter("o200k_base"))
    >>> outcome = compress(Conversation("openai-chat", tuple(said)), budget)
    >>> outcome.fits, outcome.tokens_after <= 1_500, [step.name for step in outcome.steps]
    (True, True, ['oldest_turns'])
    """
    before = tokens = budget.counter.conversation(conversation)
    reports: list[StepReport] = []
    for step in steps_of(budget) if steps is None else steps:
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


def steps_of(budget: Budget) -> tuple[Step, ...]:
    """Return the steps of the budget's policy in their order."""
    if budget.policy.compaction == "gentle":
        return tuple(s for s in STEPS if s in GENTLE_STEPS)
    return STEPS
