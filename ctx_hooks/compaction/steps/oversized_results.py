"""A single result that is too large keeps its head, its tail and the error lines between.

A share of the window bounds a result as it arrives. Of an older one the lines that later steps may name are selected from
all of it, so that this share holds only where nothing is selected (`compaction: gentle`); the policy's caps in characters,
bytes and lines hold in any case. Of the names that 178 requests of coding sessions take from long ago, 0.76 survive a fit to
16,000 tokens, and 0.73 where large older results lose their middle before anything is selected.
"""

from itertools import groupby

from ctx_hooks.compaction.steps import Step
from ctx_hooks.compaction.summary.extractive import CHARS_PER_TOKEN
from ctx_hooks.compaction.tool_results import with_results, with_text
from ctx_hooks.conversation import placeholders
from ctx_hooks.conversation.cut_texts import Reference
from ctx_hooks.conversation.model import Conversation, Message, ToolResult
from ctx_hooks.conversation.protection import older_results
from ctx_hooks.policy.settings import Direction, Language, Policy
from ctx_hooks.texts.error_lines import error_lines
from ctx_hooks.texts.pieces import head_end, tail_start, utf8_bytes
from ctx_hooks.tokens.budget import Budget

LEAST_KEPT_CHARS = 2_000
"""At least this much of a cut result is kept (OpenClaw)."""
HEAD_FRACTION = 2 / 3
"""nanobot keeps 20 lines of the head for 10 of the tail."""
ERROR_FRACTION = 0.15
"""Of what is kept, the share of error lines from the middle: an agent acts on the first few of them."""
SPARE_CHARS = 32
"""The line breaks and figures around a placeholder: what has been cut and is read again is not cut a second time."""


def largest_chars(window_tokens: int, policy: Policy) -> int:
    """Return the characters a single result may have: a share of the window, at least 2,000, at most the policy's cap."""
    share = int(window_tokens * policy.tool_results.max_fraction * CHARS_PER_TOKEN)
    return max(LEAST_KEPT_CHARS, min(share, policy.tool_results.max_chars))


def least_capped_chars(window_tokens: int, policy: Policy) -> int:
    """Return a length up to which no cap, of whatever kind, can hold: shorter results need no look."""
    most = largest_chars(window_tokens, policy)
    if policy.tool_results.max_bytes is not None:
        most = min(most, policy.tool_results.max_bytes // 4)
    return most if policy.tool_results.max_lines is None else min(most, policy.tool_results.max_lines)


def cut(text: str, kept_chars: int, direction: Direction, language: Language, reference: Reference | None = None) -> str:
    """Return `text` with about `kept_chars` of it and a placeholder where the rest was; `text` itself when it is short.

    `reference` says where the whole is.
    """
    placeholder = placeholders.oversized(kept_chars, len(text), language, reference)
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
    """Return the first lines that name an error, as many as `chars` hold."""
    lines: list[str] = []
    for line, _ in groupby(error_lines(text)):
        chars -= len(line) + 1
        if chars < 0:
            break
        lines.append(line)
    return lines


def on_arrival(message: Message, budget: Budget) -> Message:
    """Return the message with its oversized results cut: decided from it alone, so never decided otherwise later."""
    if message.pinned or not message.results:
        return message
    most_chars = largest_chars(budget.window_tokens, budget.policy)
    return message.with_parts(
        tuple(_capped(p, most_chars, budget) if isinstance(p, ToolResult) else p for p in message.parts)
    )


def _capped(result: ToolResult, most_chars: int, budget: Budget) -> ToolResult:
    return result if result.is_cut else cut_result(result, _allowed_chars(result.text, most_chars, budget.policy), budget)


def cut_result(result: ToolResult, kept_chars: int, budget: Budget) -> ToolResult:
    """Return the result with about `kept_chars` of its text; the very object when it is short."""
    policy, whole = budget.policy, result.text
    if len(whole) <= kept_chars:
        return result
    reference = budget.reference(result.original_text)
    text = cut(whole, kept_chars, policy.tool_results.direction, policy.language, reference)
    return result if text == whole else with_text(result, text)


def _allowed_chars(text: str, most: int, policy: Policy) -> int:
    """Return how many characters of `text` the caps in characters, bytes and lines allow together."""
    if policy.tool_results.max_bytes is not None:
        most = min(most, len(text) * policy.tool_results.max_bytes // max(1, utf8_bytes(text)))
    if policy.tool_results.max_lines is not None:
        lines = text.count("\n") + 1
        if lines > policy.tool_results.max_lines:
            most = min(most, len(text) * policy.tool_results.max_lines // lines)
    return most


def _apply(conversation: Conversation, budget: Budget) -> Conversation:
    policy = budget.policy
    is_selected = policy.compaction != "gentle"
    most_chars = policy.tool_results.max_chars if is_selected else largest_chars(budget.window_tokens, policy)
    capped = {(i, k): _capped(result, most_chars, budget) for i, k, result in older_results(conversation)}
    return with_results(conversation, capped)


STEP = Step("oversized_results", "a single result may not fill the window", _apply)
