"""The public functions that need no proxy: compress and repair lists of messages."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from ctx_hooks import message_rules
from ctx_hooks.compaction import pipeline
from ctx_hooks.compaction.cut_points import Thresholds
from ctx_hooks.compaction.history import history_of, is_first_request, message_stats, newest_turns
from ctx_hooks.compaction.prefix_stable import compacted
from ctx_hooks.compaction.steps import StepReport
from ctx_hooks.errors import ArgumentError
from ctx_hooks.formats import WIRE_FORMATS, Format, MessageReader
from ctx_hooks.formats.fields import preamble_of
from ctx_hooks.message_rules.reasoning import wants_reasoning
from ctx_hooks.message_rules.rule import Repair
from ctx_hooks.policy.settings import DEFAULT_POLICY, Policy
from ctx_hooks.tokens.budget import DEFAULT_WINDOW_TOKENS, Budget, Window, budget_tokens_of
from ctx_hooks.tokens.counter import Counter, vocabulary_of
from ctx_hooks.tokens.units import LocalTokens, ProviderTokens, to_local, to_provider


@dataclass(frozen=True, slots=True)
class CompressionResult:
    """The result of `compress`: new messages in the format they came in, and local tokens of messages, system and tools.

    If the budget was not met (`fits`), these are the fewest possible, and `reason` says why.
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
    """The result of `repair`: new messages in the format they came in, and the repairs in order."""

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
    """Compress a conversation to a token budget, keeping the provider's rules and the text that the next step needs.

    Args:
        messages: the list of the format: chat `messages`, Anthropic `messages`, responses `input` items, or Google's
            `contents`.
        format: a name of `Format`.
        budget_tokens: the most that the whole request may have; without it, it is `window_tokens` less the policy's reserve.
        target_tokens: compacts the conversation as if at each earlier request, down to this many tokens whenever it exceeded
            the budget ("auto": the usual share of it, or all of it while no assistant has answered).
            The proxy's hooks do this, so that consecutive requests of one conversation share their prefix. Without it, only
            the newest request is fitted, to keep the most.
        window_tokens: the model's context window; by default the policy's override, else 128,000; its cap applies.
        model: chooses the vocabulary that counts, by default o200k_base, and whether older reasoning is elided or removed.
        tools: the tool definitions, counted and never changed.
        system: Anthropic's `system`, Responses' `instructions` or Google's `systemInstruction`, counted and never changed.
        policy: how to compress; by default as the proxy does without settings.

    Raises:
        ArgumentError: the format is unknown, or a number of tokens is not positive.
        MalformedConversationError: `messages` is no list of mappings, or nested in more than 100 levels.

    >>> from ctx_hooks import Policy
    >>> said = [{"role": "assistant" if n % 2 else "user", "content": f"Remark number {n}. " * 3} for n in range(299)]
    >>> result = compress(said, format="openai-chat", budget_tokens=2_000, policy=Policy(language="en"))
    >>> result.fits, result.tokens_after <= 2_000, result.messages[-1] == said[-1]
    (True, True, True)
    """
    _check_format(format)
    for name, tokens in {"budget": budget_tokens, "target": target_tokens, "window": window_tokens}.items():
        if tokens is not None and (name, tokens) != ("target", "auto") and (not isinstance(tokens, int) or tokens <= 0):
            raise ArgumentError(f"{name}_tokens is {tokens!r}; expected a positive number")
    policy = policy or DEFAULT_POLICY
    reader = MessageReader(format, messages, *preamble_of(system, tools))
    windows = (DEFAULT_WINDOW_TOKENS if window_tokens is None else window_tokens, policy.window_tokens)
    window = ProviderTokens(min(tokens for tokens in windows if tokens is not None))
    within_window = to_local(budget_tokens_of(Window(window, "policy"), policy), factor=1.0)
    goal = LocalTokens(budget_tokens) if budget_tokens is not None else within_window
    counter = Counter(vocabulary_of(model))
    most = max(window, to_provider(goal, factor=1.0))
    budget = Budget(goal, most, counter, policy, wants_reasoning=wants_reasoning(model or ""))
    index = message_stats(reader, counter)
    received = history_of(reader, index, counter)
    kept, newest = reader, newest_turns(index, policy.max_turns)
    if len(newest) < len(index):  # a turn that goes may have had the call of a later result
        left = MessageReader(format, [reader.items[i] for i in newest], *preamble_of(system, tools))
        repaired, _ = message_rules.repair(left.conversation(), language=policy.language)
        kept = MessageReader(format, WIRE_FORMATS[format].write(repaired), *preamble_of(system, tools))
        index = message_stats(kept, counter)
    history = replace(received, messages=kept, index=index)
    if target_tokens is None:
        conversation = history.conversation(counter)
        if history.tokens > goal:
            conversation, _ = message_rules.repair(conversation, language=policy.language)
        outcome = pipeline.compress(conversation, budget)
    else:
        target = goal if is_first_request(history.index) else None
        if target_tokens != "auto":
            target = min(LocalTokens(target_tokens), goal)
        outcome, _ = compacted(history, Thresholds(budget, target))
    sent = outcome.conversation.messages
    return CompressionResult(
        messages=WIRE_FORMATS[format].sent(outcome.conversation, reader.items),
        tokens_before=received.tokens,
        tokens_after=outcome.tokens_after,
        fits=outcome.fits,
        changed=len(sent) != len(reader.items) or any(m is not reader.message(i) for i, m in enumerate(sent)),
        steps=outcome.steps,
        reason=outcome.reason,
    )


def repair(messages: Sequence[Any], *, format: Format) -> RepairResult:  # noqa: A002 - the field's own word for it
    """Repair what providers refuse: misplaced, orphaned, doubled and missing tool results, and empty content.

    Raises:
        ArgumentError: the format is unknown.
        MalformedConversationError: `messages` is no list of mappings, or nested in more than 100 levels.

    >>> answer = {"role": "tool", "tool_call_id": "lost", "content": "42"}
    >>> repair([{"role": "user", "content": "Hi"}, answer], format="openai-chat").changed
    True
    """
    _check_format(format)
    codec = WIRE_FORMATS[format]
    reader = MessageReader(format, messages)
    conversation, repairs = message_rules.repair(reader.conversation())
    return RepairResult(codec.sent(conversation, reader.items), bool(repairs), repairs)


def _check_format(name: str) -> None:
    if name not in WIRE_FORMATS:
        raise ArgumentError(f"format is {name!r}; expected one of {', '.join(WIRE_FORMATS)}")
