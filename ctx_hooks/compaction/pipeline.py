"""Runs the steps until the goal is met, and says what each did."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ctx_hooks.compaction.steps import (
    Step,
    json_layout,
    live_results,
    log_runs,
    long_texts,
    newest_loop,
    older_reasoning,
    oldest_turns,
    oversized_results,
    repeats,
    terminal_noise,
)
from ctx_hooks.compaction.steps.installed import extra_steps

if TYPE_CHECKING:
    from ctx_hooks.conversation.model import Conversation
    from ctx_hooks.tokens.budget import Budget
    from ctx_hooks.tokens.units import LocalTokens

LOSSLESS: tuple[Step, ...] = (terminal_noise.STEP, json_layout.STEP)
"""Steps that keep every visible character of every text."""
LOSSY: tuple[Step, ...] = (
    repeats.STEP,
    log_runs.STEP,
    older_reasoning.STEP,
    oversized_results.STEP,
    live_results.STEP,
    long_texts.STEP,
    oldest_turns.STEP,
    newest_loop.STEP,
)
"""Steps that drop something and say so in a placeholder where text is dropped."""
STEPS = (LOSSY[0], *LOSSLESS, *LOSSY[1:])
"""In the order in which they run: repeats compares results as they came."""

GENTLE_STEPS = frozenset({*LOSSLESS, repeats.STEP, log_runs.STEP, oversized_results.STEP})
"""What `compaction: gentle` runs: what is lossless, what says the same again, and the caps."""


@dataclass(frozen=True, slots=True)
class StepReport:
    """What one step did: tokens saved, messages touched (edited, removed or added), and the reason for such a step."""

    name: str
    tokens_saved: int
    items_touched: int
    why: str


@dataclass(frozen=True, slots=True)
class Outcome:
    """A compressed conversation with its figures; `fits` says whether the goal was met, `reason` why it was not."""

    conversation: Conversation
    tokens_before: LocalTokens
    tokens_after: LocalTokens
    fits: bool
    steps: tuple[StepReport, ...]
    reason: str | None = None


def compress(conversation: Conversation, budget: Budget, steps: tuple[Step, ...] | None = None) -> Outcome:
    """Run `steps` (by default all) in order, stopping as soon as the goal is met.

    A step that would make the conversation larger is passed over.
    """
    before = tokens = budget.counter.conversation(conversation)
    reports: list[StepReport] = []
    for step in _steps(budget) if steps is None else steps:
        if tokens <= budget.goal_tokens:
            break
        budget.counter.deadline.check()
        candidate = step.apply(conversation, budget)
        if candidate is conversation:
            continue
        smaller = budget.counter.conversation(candidate)
        if smaller >= tokens:
            continue
        reports.append(StepReport(step.name, tokens - smaller, _touched(conversation, candidate), step.why))
        conversation, tokens = candidate, smaller
    fits = tokens <= budget.goal_tokens
    reason = None if fits else f"{tokens} tokens are protected or cannot be cut, the budget is {budget.goal_tokens}"
    return Outcome(conversation, before, tokens, fits, tuple(reports), reason)


def _steps(budget: Budget) -> tuple[Step, ...]:
    if budget.policy.compaction == "gentle":
        return tuple(s for s in STEPS if s in GENTLE_STEPS)
    cheap = STEPS.index(older_reasoning.STEP) if older_reasoning.STEP in STEPS else len(STEPS)
    return (*STEPS[:cheap], *extra_steps(), *STEPS[cheap:])


def _touched(before: Conversation, after: Conversation) -> int:
    old, new = {id(m) for m in before.messages}, {id(m) for m in after.messages}
    return max(len(old - new), len(new - old))
