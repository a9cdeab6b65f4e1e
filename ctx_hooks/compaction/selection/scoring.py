"""The pieces of the older exchanges that could be kept, the cost of each, and their order: by names, for their tokens."""

from collections import Counter as Occurrences
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import NamedTuple

from ctx_hooks.compaction.selection.blocks import block_segments
from ctx_hooks.compaction.selection.segments import Position, Segments, Spans, chars_of, segments
from ctx_hooks.conversation.conversation import Conversation
from ctx_hooks.conversation.model import Part, Reasoning, Text, ToolResult
from ctx_hooks.texts.identifiers import identifiers_by_segment
from ctx_hooks.tokens.budget import Budget
from ctx_hooks.tokens.units import CHARS_PER_TOKEN

PLACEHOLDER_TOKENS = 24
"""Cost of the placeholder above the kept lines of a part (22 in English and o200k_base; 40 in Chinese)."""
REFERENCE_TOKENS = 11
"""Additional cost of a reference to the whole text."""
LARGEST_BLOCK_FRACTION = 0.25
"""A pasted block with a larger share of the goal is divided into pieces: a whole one would seldom find room."""
GAP_TOKENS = 1.5
"""Cost of the mark between two kept segments: a token, and sometimes one for its line break."""
WHOLE_RESULT_CHARS = 400
"""A result up to this length is hardly longer than the line that would replace it."""
WHOLE_TEXT_CHARS = 1_200
"""An older text up to this length is not shortened: its beginning and the placeholder would be a third of it."""

USED_VALUE = 9.0
"""The value of a name that the assistant has used: its next answers name 13.8 % of these, of names only seen 1.6 %."""


@dataclass(frozen=True)
class Source:
    """A part that may keep some of its segments: spans of lines, or blocks of a user's pasted text.

    Attributes:
        divide: makes its segments.
        words: its spans that stay with its exchange: the user's own words, or ends of an answer.
    """

    position: Position
    text: str
    tokens_per_char: float
    divide: Callable[[], Segments]
    words: Spans = ()

    @cached_property
    def segments(self) -> Segments:
        """Its segments, which only exchanges with a frame need."""
        return self.divide()

    @property
    def stays(self) -> frozenset[int]:
        """The numbers of the segments that stay."""
        spans = enumerate(self.segments.spans) if self.words else ()
        return frozenset(n for n, (a, b) in spans if any(c <= a and b <= d for c, d in self.words))

    def tokens(self, span: tuple[int, int]) -> float:
        """Return the estimated cost of the segment at `span`, with the mark beside it."""
        return (span[1] - span[0]) * self.tokens_per_char + GAP_TOKENS


@dataclass(frozen=True, slots=True)
class Item:
    """An older exchange: all of it, some lines, only its frame (calls, placeholders), or nothing is kept."""

    messages: range
    frame_tokens: float
    whole_tokens: float
    sources: tuple[Source, ...]
    spoken: bool
    """Whether it is plain dialogue, without calls or results."""
    is_answer: bool = False
    """Whether it is an answer of which at least the frame stays."""


def items_of(conversation: Conversation, budget: Budget, words: Mapping[Position, Spans]) -> tuple[Item, ...]:
    """Return the older exchanges as items, oldest first; `words` are the kept spans of users' texts and of answers."""
    return tuple([_item(conversation, exchange, budget, words) for exchange in conversation.older_exchanges])


def _item(conversation: Conversation, exchange: range, budget: Budget, words: Mapping[Position, Spans]) -> Item:
    counter = budget.counter
    messages = [conversation.messages[i] for i in exchange]
    whole = frame = float(counter.messages(messages, conversation.format))
    placeholder_tokens = PLACEHOLDER_TOKENS + (REFERENCE_TOKENS if budget.archives else 0)
    most_chars = int(budget.goal_tokens * LARGEST_BLOCK_FRACTION * CHARS_PER_TOKEN)
    sources, is_answer = [], False
    for i, message in zip(exchange, messages, strict=True):
        for k, part in enumerate(message.parts):
            text, spans = _text_to_shorten(part), words.get((i, k), ())
            is_answer = is_answer or (message.role == "assistant" and (i, k) in words)
            if text and spans != ((0, len(text)),):
                is_said = isinstance(part, Text) and (message.role == "user" or bool(spans))
                tokens = counter.text(text)
                divide = partial(block_segments, text, most_chars, spans) if is_said else partial(segments, text)
                sources.append(Source((i, k), text, tokens / len(text), divide, spans))
                frame += chars_of(spans) * tokens / len(text) + placeholder_tokens - tokens
            elif isinstance(part, Reasoning):
                left = conversation.reasoning_left(i, part, is_wanted=budget.wants_reasoning)
                frame -= counter.part(part, conversation.format) - (counter.part(left, conversation.format) if left else 0)
    spoken = not any(m.calls or m.results for m in messages)
    return Item(exchange, max(1.0, frame), whole, tuple(sources), spoken, is_answer)


def _text_to_shorten(part: Part) -> str:
    """Return the text of an older part if it may be reduced to some of its segments, else ""."""
    if not isinstance(part, (Text, ToolResult)) or part.is_cut or (isinstance(part, Text) and part.is_signed):
        return ""
    return part.text if len(part.text) > (WHOLE_TEXT_CHARS if isinstance(part, Text) else WHOLE_RESULT_CHARS) else ""


NEWEST_NAMES = 24
"""So many of the names used last count more in every segment that has them: an edit needs the text around them."""


class Row(NamedTuple):
    """A segment: the number of its exchange, its part, its number in the part, and its cost."""

    item: int
    position: Position
    segment: int
    tokens: float


def rows_of(items: Iterable[tuple[int, Item]], used: Sequence[str]) -> list[Row]:
    """Return the segments with names, most value for their tokens first; the assistant has `used` these, newest first."""
    known, newest = frozenset(used), frozenset(used[:NEWEST_NAMES])
    named: list[tuple[Row, frozenset[str]]] = []
    for n, item in items:
        for source in item.sources:
            spans = source.segments.spans
            for k, found in enumerate(identifiers_by_segment(source.text, source.segments.bounds)):
                if found:
                    named.append((Row(n, source.position, k, source.tokens(spans[k])), found))
    holding = Occurrences(name for _, found in named for name in found)
    values = {
        name: (USED_VALUE if name in known else 1.0) / times + (USED_VALUE / times**0.5 if name in newest else 0.0)
        for name, times in holding.items()
    }
    worth = {row: sum(sorted(values[name] for name in found)) / row.tokens for row, found in named}
    return sorted(worth, key=lambda row: -worth[row])
