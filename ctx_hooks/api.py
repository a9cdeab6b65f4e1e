"""The public functions that need no proxy: compress and repair lists of messages."""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

from ctx_hooks import message_rules
from ctx_hooks.compaction import pipeline
from ctx_hooks.compaction.message_index import is_first_request, message_stats, newest_turns
from ctx_hooks.compaction.prefix_stable import Thresholds, compacted, history_of
from ctx_hooks.formats import CODECS
from ctx_hooks.policy.settings import DEFAULT_POLICY, Policy
from ctx_hooks.tokens.budget import Budget
from ctx_hooks.tokens.counter import Counter
from ctx_hooks.tokens.vocabulary import vocabulary_of
from ctx_hooks.tokens.window import DEFAULT_WINDOW_TOKENS, Window, budget_tokens_of, target_tokens_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctx_hooks.compaction.pipeline import StepReport
    from ctx_hooks.conversation.model import Format
    from ctx_hooks.message_rules import Repair


@dataclass(frozen=True, slots=True)
class CompressionResult:
    """What `compress` returns.

    `messages` are in the format they came in, new objects throughout. Token figures count the whole request: messages,
    system and tools. `fits` says whether the budget was met; when it is False, `reason` says why and `tokens_after` is
    the smallest size that could be reached.
    """

    messages: list[Any]
    tokens_before: int
    tokens_after: int
    fits: bool
    changed: bool
    steps: tuple[StepReport, ...]
    reason: str | None = None


@dataclass(frozen=True, slots=True)
class RepairResult:
    """What `repair` returns: messages as new objects, and what was done to them, in order."""

    messages: list[Any]
    changed: bool
    repairs: tuple[Repair, ...]


def compress(
    messages: Sequence[Any],
    *,
    format: Format,  # noqa: A002 - the field's own word for it
    budget_tokens: int | None = None,
    target_tokens: int | Literal["auto"] | None = None,
    window_tokens: int | None = None,
    model: str | None = None,
    tools: Any = None,
    system: Any = None,
    policy: Policy | None = None,
) -> CompressionResult:
    """Compress a conversation to a token budget, keeping the provider's rules and what the next step needs.

    `messages` is the list of the format: chat `messages`, Anthropic `messages`, responses `input` items, or Gemini's
    `contents`. `system` and `tools` are counted and never changed. `budget_tokens` is the most the whole request may
    have; without it, it is `window_tokens` (default: the policy's, else 128,000) less the policy's reserve. With
    `target_tokens` the conversation is compacted as if it had been along the way, down to that many tokens whenever the
    budget was exceeded ("auto": the policy's `target_fraction` of it, all of it while no assistant has answered): this
    is what the proxy's hooks do, and consecutive requests of one conversation share their prefix. Without it the newest
    request is fitted on its own, to keep the most. `model` chooses the vocabulary that counts; None counts in
    o200k_base.

    Raises MalformedConversationError when `messages` is not a list of mappings or is nested deeper than 100 levels.
    """
    policy = policy or DEFAULT_POLICY
    codec = CODECS[format]
    original = codec.read(messages, system=system, tools=tools)
    given = window_tokens if window_tokens is not None else policy.window_tokens
    window = given if given is not None else DEFAULT_WINDOW_TOKENS
    goal = budget_tokens if budget_tokens is not None else budget_tokens_of(Window(window, "policy"), policy)
    counter = Counter(vocabulary_of(model))
    budget = Budget(goal, max(window, goal), counter, policy)
    index = message_stats(format, messages, counter)
    newest = newest_turns(index, policy.max_turns)
    conversation = original.with_messages(tuple(original.messages[i] for i in newest))
    repairs = policy.repair != "off"
    if target_tokens is None:
        needed = policy.repair == "always" or counter.conversation(conversation) > goal
        outcome = pipeline.compress(message_rules.repair(conversation)[0] if repairs and needed else conversation, budget)
    else:
        history = history_of(conversation.part, tuple(index[i] for i in newest), conversation.preamble, counter)
        target = goal if target_tokens == "auto" else min(target_tokens, goal)
        if target_tokens == "auto" and not is_first_request(history.index):
            target = target_tokens_of(goal, policy, history.fixed_tokens)
        outcome, _ = compacted(history, Thresholds(budget, target), repair=repairs)
    written = deepcopy(codec.write(outcome.conversation))
    return CompressionResult(
        messages=written,
        tokens_before=counter.conversation(original),
        tokens_after=outcome.tokens_after,
        fits=outcome.fits,
        changed=original.with_messages(outcome.conversation.messages) is not original,
        steps=outcome.steps,
        reason=outcome.reason,
    )


def repair(messages: Sequence[Any], *, format: Format) -> RepairResult:  # noqa: A002 - the field's own word for it
    """Repair what providers refuse: misplaced, orphaned, doubled and missing tool results, and empty content.

    Raises MalformedConversationError as `compress` does.
    """
    codec = CODECS[format]
    conversation, repairs = message_rules.repair(codec.read(messages))
    return RepairResult(deepcopy(codec.write(conversation)), bool(repairs), repairs)
