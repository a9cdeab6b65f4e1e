"""Cut single tool results: those above a limit, and those of the newest tool loop, largest first.

The share of the window limits only an arriving result: of an older one `oldest_turns` selects lines from the whole text. Of
the names that 178 requests of coding sessions use from long ago, 0.76 survive a fit to 16,000 tokens, else 0.73.
"""

from collections.abc import Callable, Collection
from itertools import groupby

from ctx_hooks.compaction.steps import Step
from ctx_hooks.compaction.summary.actions import changes_nothing
from ctx_hooks.compaction.tool_texts import call_of, with_text
from ctx_hooks.conversation import placeholders
from ctx_hooks.conversation.conversation import Conversation
from ctx_hooks.conversation.model import Message, ToolResult
from ctx_hooks.policy.settings import Direction, ToolResultLimits
from ctx_hooks.texts.pieces import error_lines, head_end, tail_start, utf8_bytes
from ctx_hooks.tokens.budget import Budget, largest_result_chars
from ctx_hooks.tokens.units import LocalTokens

HEAD_FRACTION = 2 / 3
"""nanobot keeps 20 lines of the head for 10 of the tail."""
ERROR_FRACTION = 0.15
"""The share of error lines from the middle in the kept text: an agent acts on the first few of them."""
MOST_OF_A_TRY = 0.98
"""Each try to keep the policy's lines and bytes keeps at most this share of the one before."""
SPARE_CHARS = 32
"""The line breaks and figures around a placeholder: a cut text that is read again is not cut a second time."""
LEAST_KEPT_CHARS = 400
"""A shorter result says too little; if that is not enough, the request is too large."""
SHRINK_FACTOR = 0.7
"""Each round reduces the size to at most this fraction: a few rounds reach every reachable goal."""
NEWEST_FRACTION = 0.5
"""The newest results' share of the room beside fixed text, if older exchanges need the rest. Of 292 requests of coding
sessions, fitted to 16,000 tokens, 0.958 of the names that the next step needs stay; with whole newest results, 0.940."""


def on_arrival(message_at: Callable[[int], Message], i: int, budget: Budget) -> Message:
    """Return message `i` with its oversized results cut, by itself and its calls only: later requests cut the same."""
    return with_cut_results(message_at, i, largest_result_chars(budget.window_tokens, budget.policy), budget)


def with_cut_results(
    message_at: Callable[[int], Message], i: int, kept_chars: int, budget: Budget, *, again: bool = False
) -> Message:
    """Return message `i` with about `kept_chars` of each result, within the policy's lines and bytes.

    `again`: cut results that were cut before anew, from their whole texts.
    """
    message = message_at(i)
    if message.pinned or not message.results:
        return message
    return message.with_parts(
        tuple(
            _cut_result(message_at, i, part, kept_chars, budget)
            if isinstance(part, ToolResult) and (again or not part.is_cut)
            else part
            for part in message.parts
        )
    )


def _cut_result(
    message_at: Callable[[int], Message], i: int, result: ToolResult, kept_chars: int, budget: Budget
) -> ToolResult:
    limits, language, whole = budget.policy.tool_results, budget.policy.language, result.original_text
    share = _allowed_share(whole, limits)
    if len(result.text) <= kept_chars and (result.is_cut or share == 1):
        return result
    call, reference = call_of(message_at, i, result), budget.reference(whole)
    may_repeat = call is not None and changes_nothing(call)
    is_limited = share < 1 or kept_chars >= limits.max_chars
    kept_chars = min(kept_chars, int(len(whole) * share))
    while True:
        name = "limited" if is_limited else "oversized"
        placeholder = placeholders.line(name, language, reference, may_repeat=may_repeat, total=len(whole), kept=kept_chars)
        text = _cut(whole, kept_chars, limits.direction, placeholder)
        # Lines differ in length: what is kept may have more of them than its share of the characters.
        share = _allowed_share(text, limits)
        if not kept_chars or share == 1:
            return result if text == whole else with_text(result, text)
        kept_chars = int(kept_chars * min(share, MOST_OF_A_TRY))


def _cut(text: str, kept_chars: int, direction: Direction, placeholder: str) -> str:
    """Return about `kept_chars` of `text` and the placeholder for the rest; `text` itself if it is short."""
    if len(text) <= kept_chars + len(placeholder) + SPARE_CHARS:
        return text
    if direction == "head":
        return f"{text[: head_end(text, kept_chars)]}\n{placeholder}"
    if direction == "tail":
        return f"{placeholder}\n{text[tail_start(text, kept_chars) :]}"
    head = text[: head_end(text, int(kept_chars * (1 - ERROR_FRACTION) * HEAD_FRACTION))]
    tail = text[tail_start(text, int(kept_chars * (1 - ERROR_FRACTION) * (1 - HEAD_FRACTION))) :]
    errors, left_chars = [], int(kept_chars * ERROR_FRACTION)
    for line, _ in groupby(error_lines(text[len(head) : len(text) - len(tail)])):
        left_chars -= len(line) + 1
        if left_chars < 0:
            break
        errors.append(line)
    return "\n".join([head, placeholder, *errors, tail])


def _allowed_share(text: str, limits: ToolResultLimits) -> float:
    """Return the share of `text` that the limits in lines and bytes allow, at most 1."""
    lines = 1 if limits.max_lines is None else limits.max_lines / (text.count("\n") + 1)
    size = 1 if limits.max_bytes is None else limits.max_bytes / max(1, utf8_bytes(text))
    return min(1, lines, size)


def _apply(conversation: Conversation, budget: Budget) -> Conversation:
    message_at, most_chars = conversation.messages.__getitem__, budget.policy.tool_results.max_chars
    places = range(len(conversation.messages))
    return conversation.with_messages(tuple(with_cut_results(message_at, i, most_chars, budget) for i in places))


OVERSIZED = Step("oversized_results", "a single result may not fill the window", _apply)


def _large(conversation: Conversation, budget: Budget) -> Conversation:
    tokens = budget.counter.conversation(conversation)
    newest_tokens, older_tokens = (
        budget.counter.messages((conversation.messages[i] for i in indices), conversation.format)
        for indices in (conversation.newest_loop, conversation.older_messages)
    )
    room_tokens = budget.goal_tokens - (tokens - newest_tokens - older_tokens)
    allowed_tokens = max(int(room_tokens * NEWEST_FRACTION), room_tokens - older_tokens)
    if newest_tokens <= allowed_tokens:
        return conversation
    return _shrunk(conversation, budget.with_goal(LocalTokens(tokens - newest_tokens + allowed_tokens)))


def _shrunk(conversation: Conversation, budget: Budget) -> Conversation:
    return shrunk(conversation, budget, conversation.newest_loop if budget.cut_newest else ())


def shrunk(conversation: Conversation, budget: Budget, indices: Collection[int]) -> Conversation:
    """Return the conversation with the largest results of the messages at `indices` cut to meet the goal, if possible."""
    cut = [i for i in indices if not conversation.messages[i].pinned]
    largest = max((len(r.text) for i in cut for r in conversation.messages[i].results), default=0)
    fitted = conversation
    while (excess := budget.excess(fitted)) > 0 and largest > LEAST_KEPT_CHARS:
        # No result shrinks by more than all must together: the first round comes near, at any size.
        needed = budget.goal_tokens / (budget.goal_tokens + excess)
        largest = max(LEAST_KEPT_CHARS, int(largest * min(SHRINK_FACTOR, needed)))
        messages = list(conversation.messages)
        for i in cut:
            messages[i] = with_cut_results(conversation.messages.__getitem__, i, largest, budget, again=True)
        fitted = conversation.with_messages(tuple(messages))
    return fitted


LARGE_NEWEST = Step("large_newest", "the newest results leave half of the room to what came before", _large)
NEWEST_LOOP = Step("newest_loop", "the newest results alone were too large", _shrunk)
