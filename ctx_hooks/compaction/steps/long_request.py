"""Of a newest request that takes most of the budget the middle goes, in whole sections, once work on it has begun.

So the record and the newest exchanges have room: an agent that sees only its task begins it anew in every request.
"""

from ctx_hooks.compaction.selection.apply import kept_segments
from ctx_hooks.compaction.selection.blocks import block_segments, names_of
from ctx_hooks.compaction.steps import Step
from ctx_hooks.conversation import placeholders
from ctx_hooks.conversation.conversation import Conversation
from ctx_hooks.conversation.model import Text
from ctx_hooks.tokens.budget import Budget

REQUEST_FRACTION = 0.7
"""The newest request's share of the room beside fixed text; the rest is for the record and the newest exchanges."""
HEAD_FRACTION = 2 / 3
"""The goal is mostly at the beginning, and what to do first at the end."""
LEAST_CHARS, SECTION_CHARS = 6_000, 1_500
"""A shorter request stays whole, whatever the budget; a longer section is divided at its line ends."""
PLACEHOLDER_CHARS = 400
"""The longest placeholder without the names of files."""


def most_tokens(goal_tokens: int, fixed_tokens: int) -> int:
    """Return the most tokens that the newest request may have beside fixed text."""
    return int(max(0, goal_tokens - fixed_tokens) * REQUEST_FRACTION)


def _apply(conversation: Conversation, budget: Budget) -> Conversation:
    i, messages, counter = conversation.newest_request, conversation.messages, budget.counter
    if i is None or i < conversation.settled or all(m.role != "assistant" for m in messages[i + 1 :]):
        return conversation
    fixed = conversation.with_messages(tuple(m for m in messages if m.role == "system"))
    room_tokens = most_tokens(budget.goal_tokens, counter.conversation(fixed))
    excess_tokens = counter.message(messages[i], conversation.format) - room_tokens
    texts = [p for p in messages[i].parts if isinstance(p, Text) and not (p.is_cut or p.is_signed)]
    if excess_tokens <= 0 or messages[i].pinned or not texts:
        return conversation
    longest = max(texts, key=lambda part: len(part.text))
    left = 1 - excess_tokens / counter.text(longest.text)
    short = _shortened(longest, max(LEAST_CHARS, int(left * len(longest.text)) - PLACEHOLDER_CHARS), budget)
    request = messages[i].with_parts(tuple(short if part is longest else part for part in messages[i].parts))
    return conversation.with_messages((*messages[:i], request, *messages[i + 1 :]))


def _shortened(part: Text, most_chars: int, budget: Budget) -> Text:
    """Return a text with the sections at its beginning and end that have at most `most_chars`."""
    text, language = part.text, budget.policy.language
    spans = block_segments(text, SECTION_CHARS).spans
    head_end = most_chars * HEAD_FRACTION
    tail_start = len(text) - most_chars * (1 - HEAD_FRACTION)
    kept = frozenset(n for n, (start, end) in enumerate(spans) if end <= head_end or start >= tail_start)
    gone = [span for n, span in enumerate(spans) if n not in kept]
    if not gone:
        return part
    chars, reference = sum(b - a for a, b in gone), budget.reference(part.original_text)
    placeholder = placeholders.blocks_left_out(names_of(text, gone), chars, len(text), language, reference)
    return Text(kept_segments(text, placeholder, spans, kept, in_place=True), part.raw, came_text=part.original_text)


STEP = Step("long_request", "the record and the newest exchanges need room beside a long request", _apply)
