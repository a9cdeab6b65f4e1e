"""A single oversized result keeps its head, its tail and the error lines between.

A share of the window limits an arriving result. Of an older result, `oldest_turns` selects lines from the whole text, so the
share applies to it only without selection (`compaction: gentle`). The policy's caps in characters, bytes and lines always
apply. Of the names that 178 requests of coding sessions use from long ago, 0.76 survive a fit to 16,000 tokens. If large
older results lose their middle before the selection, 0.73 survive.
"""

import functools
from collections.abc import Callable
from itertools import groupby

from ctx_hooks.compaction.steps import Step
from ctx_hooks.compaction.summary.actions import changes_nothing
from ctx_hooks.compaction.summary.extractive import CHARS_PER_TOKEN
from ctx_hooks.compaction.tool_results import call_of, with_results, with_text
from ctx_hooks.conversation import placeholders
from ctx_hooks.conversation.model import Conversation, Message, ToolResult
from ctx_hooks.conversation.placeholders import Reference
from ctx_hooks.policy.settings import Direction, Language, Policy, ToolResultLimits
from ctx_hooks.texts.error_lines import error_lines
from ctx_hooks.texts.pieces import head_end, tail_start, utf8_bytes
from ctx_hooks.tokens.budget import Budget

LEAST_KEPT_CHARS = 2_000
"""At least this much of a cut result is kept (OpenClaw)."""
HEAD_FRACTION = 2 / 3
"""nanobot keeps 20 lines of the head for 10 of the tail."""
ERROR_FRACTION = 0.15
"""The share of error lines from the middle in the kept text: an agent acts on the first few of them."""
MOST_OF_A_TRY = 0.98
"""Each try to keep the policy's lines and bytes keeps at most this share of the one before."""
SPARE_CHARS = 32
"""The line breaks and figures around a placeholder: a cut text that is read again is not cut a second time."""


def largest_chars(window_tokens: int, policy: Policy) -> int:
    """Return the characters a single result may have: a share of the window, at least 2,000, at most the policy's cap."""
    share = int(window_tokens * policy.tool_results.max_fraction * CHARS_PER_TOKEN)
    return max(LEAST_KEPT_CHARS, min(share, policy.tool_results.max_chars))


def least_capped_chars(window_tokens: int, policy: Policy) -> int:
    """Return a length below which no cap of any kind can apply: shorter results need no check."""
    most = largest_chars(window_tokens, policy)
    if policy.tool_results.max_bytes is not None:
        most = min(most, policy.tool_results.max_bytes // 4)
    return most if policy.tool_results.max_lines is None else min(most, policy.tool_results.max_lines)


def cut(
    text: str,
    kept_chars: int,
    direction: Direction,
    language: Language,
    reference: Reference | None = None,
    *,
    is_limited: bool = False,
    may_repeat: bool = False,
) -> str:
    """Return about `kept_chars` of `text` and a placeholder for the rest; `text` itself if it is short.

    `reference` says where the whole text is, `is_limited` whether a limit of the policy cuts it and not the window,
    `may_repeat` whether its call is known to change nothing.
    """
    placeholder = placeholders.oversized(
        kept_chars, len(text), language, reference, is_limited=is_limited, may_repeat=may_repeat
    )
    if len(text) <= kept_chars + len(placeholder) + SPARE_CHARS:
        return text
    if direction == "head":
        return f"{text[: head_end(text, kept_chars)]}\n{placeholder}"
    if direction == "tail":
        return f"{placeholder}\n{text[tail_start(text, kept_chars) :]}"
    head = text[: head_end(text, int(kept_chars * (1 - ERROR_FRACTION) * HEAD_FRACTION))]
    tail = text[tail_start(text, int(kept_chars * (1 - ERROR_FRACTION) * (1 - HEAD_FRACTION))) :]
    errors = _error_lines(text[len(head) : len(text) - len(tail)], int(kept_chars * ERROR_FRACTION))
    return "\n".join([head, placeholder, *errors, tail])


def _error_lines(text: str, chars: int) -> list[str]:
    """Return the first lines that name an error, up to `chars` in all."""
    lines: list[str] = []
    for line, _ in groupby(error_lines(text)):
        chars -= len(line) + 1
        if chars < 0:
            break
        lines.append(line)
    return lines


def on_arrival(message_at: Callable[[int], Message], i: int, budget: Budget) -> Message:
    """Return message `i` with its oversized results cut.

    Only the message and the call of each result decide, so later requests cut the same.
    """
    message = message_at(i)
    if message.pinned or not message.results:
        return message
    most_chars = largest_chars(budget.window_tokens, budget.policy)
    parts = (_capped(message_at, i, p, most_chars, budget) if isinstance(p, ToolResult) else p for p in message.parts)
    return message.with_parts(tuple(parts))


def _capped(message_at: Callable[[int], Message], i: int, result: ToolResult, most_chars: int, budget: Budget) -> ToolResult:
    return result if result.is_cut else cut_result(message_at, i, result, most_chars, budget)


def cut_result(
    message_at: Callable[[int], Message], i: int, result: ToolResult, kept_chars: int, budget: Budget
) -> ToolResult:
    """Return a result of message `i` with about `kept_chars` of its text, within the policy's lines and bytes.

    The same object if it is short. What was cut before is cut anew from its whole text.
    """
    policy, whole = budget.policy, result.original_text
    limits = policy.tool_results
    share = _allowed_share(whole, limits)
    if len(result.text) <= kept_chars and (result.is_cut or share == 1):
        return result
    call = call_of(message_at, i, result)
    make = functools.partial(
        cut,
        whole,
        direction=limits.direction,
        language=policy.language,
        reference=budget.reference(result.original_text),
        is_limited=share < 1 or kept_chars >= limits.max_chars,
        may_repeat=call is not None and changes_nothing(call),
    )
    kept_chars = min(kept_chars, int(len(whole) * share))
    text = make(kept_chars=kept_chars)
    # Lines differ in length: what is kept may have more of them than its share of the characters.
    while kept_chars and (share := _allowed_share(text, limits)) < 1:
        kept_chars = int(kept_chars * min(share, MOST_OF_A_TRY))
        text = make(kept_chars=kept_chars)
    return result if text == whole else with_text(result, text)


def _allowed_share(text: str, limits: ToolResultLimits) -> float:
    """Return the share of `text` that the limits in lines and bytes allow, at most 1."""
    lines = 1 if limits.max_lines is None else limits.max_lines / (text.count("\n") + 1)
    size = 1 if limits.max_bytes is None else limits.max_bytes / max(1, utf8_bytes(text))
    return min(1, lines, size)


def _apply(conversation: Conversation, budget: Budget) -> Conversation:
    policy = budget.policy
    is_selected = policy.compaction != "gentle"
    most_chars = policy.tool_results.max_chars if is_selected else largest_chars(budget.window_tokens, policy)
    message_at = conversation.messages.__getitem__
    results = (
        (i, k, part)
        for i, message in enumerate(conversation.messages)
        if not message.pinned
        for k, part in enumerate(message.parts)
        if isinstance(part, ToolResult)
    )
    capped = {(i, k): _capped(message_at, i, result, most_chars, budget) for i, k, result in results}
    return with_results(conversation, capped)


STEP = Step("oversized_results", "a single result may not fill the window", _apply)
