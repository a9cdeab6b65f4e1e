"""What users wrote stays as they wrote it: which spans of their older messages no step may take.

All of it while it is a share of the goal. Of more, what people type is separated from what they paste, and from what their
client wraps around it, by form and repetition: an element or fence that is long, or that opens in several messages, is no
typing. Of a long text the sentences at either end, short paragraphs on their own and what directs somebody are typed. A
mistake is cheap: what is taken for typed costs some room, what is taken for pasted is still chosen from by value.

First stays what directs somebody or tells a figure, a name, a place, the newest before the older; then what else was said,
and habits that direct somebody; last what is said again and again.
"""

import re
from collections import Counter as Occurrences
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple, TypeAlias

from ctx_hooks.compaction.selection.blocks import FENCES, FILE_TAGS, enclosed
from ctx_hooks.conversation.exchanges import is_question, is_request
from ctx_hooks.conversation.model import Conversation, Text
from ctx_hooks.conversation.protection import newest_words, older_messages
from ctx_hooks.texts import pieces
from ctx_hooks.texts.statements import corrections, directs, tells
from ctx_hooks.tokens.budget import Budget

WORDS_FRACTION = 0.3
"""The share of the goal that users' words may have whatever else is needed. In recorded sessions of agents they are .001 to
.01 of the context; Codex keeps up to 20,000 tokens of them."""
MOST_FREE_FRACTION, LEAST_WORDS_FRACTION = 0.6, 0.08
"""They have at most so much of what protected text leaves of the goal, and at least so much of all of it."""
TELLING_FRACTION, MOST_TELLING_FRACTION = 0.4, 0.65
"""The same of what directs or tells something: a rule or a figure that is lost cannot be found out again."""
NEWEST_FRACTION, FREE_OF_NEWEST_TOKENS = 0.25, 1_000
"""Where no tool has been used and nobody asks, what directs or tells may have all but this fraction of what protected text
leaves above so many tokens: no tool finds it out again. The fraction is for answers and the newest turns."""
SAID_FRACTION = 0.5
"""Of that, all that is said there."""
RECORD_TOKENS, ENTRY_TOKENS = 50, 3
"""What the record of what was said has in any case, and a text in it beside its words: whose they are, a line break."""
LONGEST_TYPED_CHARS = 2_000
"""A longer text, or element in it, is seldom typed."""
LARGEST_WHOLE_FRACTION = 0.5
"""Of the room for users' words, what a single long text may take whole."""
OPENING_FRACTION = 0.5
"""Of the room for users' words, what those have first that open the conversation, the task above all, which is the last
before the first answer: agents that have no tools of the provider's get every result as a user's turn."""
EDGE_SENTENCES = 3
"""So many sentences at either end of a long text are the user's: what is pasted stands between or beside them."""
LONGEST_ASIDE_CHARS = 300
"""A paragraph up to this length that stands on its own in a long text is the user's."""
LONGEST_SENTENCE_CHARS = 600
"""A longer stretch without an end is no sentence."""
REPEATED_TIMES = 3
"""A text that was said so often to the letter is a habit, such as "go on"; what it says is no news."""
REPEATED_TAG = 3
"""An element of one name in so many messages is put there by the client."""
TELLING, SAID, REST, REPEATED = 0, 1, 4, 6
"""The ranks of short texts that direct or tell something, of other short ones, of what is typed and neither short, at an
end, a directive nor an aside, and of what says nothing new."""
NO_ELEMENTS = (*FENCES, *FILE_TAGS)
"""In these people paste what they have not written."""
Spans: TypeAlias = tuple[tuple[int, int], ...]
Position: TypeAlias = tuple[int, int]
"""Index of a message, and of a part in it."""
_END = re.compile(r"\n\s*|(?<![.!?])[.!?]{1,8}[\"')\]”’»*_]{0,4}(?=\s)\s*|[。!?]+[」』”’)]{0,4}\s*")


class _Piece(NamedTuple):
    """A span of a user's text, and how soon it gives way: of rank 0 last."""

    rank: int
    position: Position
    start: int
    end: int


def user_words(conversation: Conversation, budget: Budget) -> Mapping[Position, Spans]:
    """Return the spans of older users' texts that stay, in order, by position of the text; a text without any has none.

    A text that was said again to the letter stays where it was said last; what is corrected only where its correction stays.
    """
    said = list(_said(conversation))
    times = Occurrences(text for _, text in said)
    texts = {position: text for text, position in {text: position for position, text in said}.items()}
    typed = _typed_spans(texts)
    goal_tokens, free = budget.goal_tokens, free_tokens(conversation, budget)
    least_tokens = goal_tokens * LEAST_WORDS_FRACTION
    if budget.cut_newest and free > 0:  # nothing gives way to them then, and records that do not fit would have none
        least_tokens = min(least_tokens, free * MOST_TELLING_FRACTION)
    room_tokens = max(least_tokens, min(goal_tokens * WORDS_FRACTION, free * MOST_FREE_FRACTION))
    tokens_per_char = {position: budget.counter.text(text) / len(text) for position, text in texts.items()}
    if sum(chars_of(spans) * tokens_per_char[position] for position, spans in typed.items()) <= room_tokens:
        return {position: spans for position, spans in typed.items() if spans}
    telling_tokens = min(goal_tokens * TELLING_FRACTION, free * MOST_TELLING_FRACTION)
    if not (asks(conversation) or any(m.calls or m.results for m in conversation.messages)):
        telling_tokens = free - RECORD_TOKENS - NEWEST_FRACTION * max(0, free - FREE_OF_NEWEST_TOKENS)
        room_tokens = max(room_tokens, telling_tokens * SAID_FRACTION)
    most_tokens = {TELLING: max(room_tokens, telling_tokens)}
    answered = next((i for i, message in enumerate(conversation.messages) if message.role == "assistant"), 0)
    task = max((position for position in texts if position[0] < answered), default=None)
    found: list[_Piece] = []
    for position, text in texts.items():
        most_chars = LARGEST_WHOLE_FRACTION * room_tokens / tokens_per_char[position]
        opens, repeated = position[0] < answered, times[text] >= REPEATED_TIMES
        found += _pieces(position, text, typed[position], most_chars, opens=opens, repeated=repeated)
    stated = [p for p in found if p.rank == TELLING]
    corrected = corrections([texts[p.position][p.start : p.end] for p in stated])
    corrections_of = {stated[n]._replace(rank=SAID): stated[later] for n, later in corrected.items()}
    uncorrected = (p for n, p in enumerate(stated) if n not in corrected)
    found = [*(p for p in found if p.rank != TELLING), *uncorrected, *corrections_of]
    opening = [p for p in found if p.position == task or (p.position[0] < answered and p.rank < REST)]
    opening.sort(key=lambda p: (-p.position[0], p.rank, p.start))
    ranked = sorted(found, key=lambda p: (p.rank, -p.position[0], p.start))
    spare_tokens = room_tokens * (1 - OPENING_FRACTION)
    kept: dict[Position, set[tuple[int, int]]] = {}
    spent = 0.0
    for piece, left_tokens in chain(((p, spare_tokens) for p in opening), ((p, 0) for p in ranked)):
        spans = kept.setdefault(piece.position, set())
        correction = corrections_of.get(piece)
        if correction is not None and (correction.start, correction.end) not in kept.get(correction.position, ()):
            continue
        cost = (piece.end - piece.start) * tokens_per_char[piece.position] + ENTRY_TOKENS * (not spans)
        if (piece.start, piece.end) not in spans and spent + cost <= most_tokens.get(piece.rank, room_tokens) - left_tokens:
            spent += cost
            spans.add((piece.start, piece.end))
    return {position: _joined(spans) for position, spans in kept.items() if spans}


def free_tokens(conversation: Conversation, budget: Budget) -> float:
    """Return what protected text leaves of the goal."""
    older = (conversation.messages[i] for i in older_messages(conversation))
    older_tokens = budget.counter.messages(older, conversation.format)
    return budget.goal_tokens - (budget.counter.conversation(conversation) - older_tokens)


def _said(conversation: Conversation) -> Iterator[tuple[Position, str]]:
    """Yield the texts of the users' older messages, in order."""
    newest = newest_words(conversation)
    for i in sorted(older_messages(conversation)):
        message = conversation.messages[i]
        for k, part in enumerate(message.parts if i == newest or is_request(message) else ()):
            if isinstance(part, Text) and part.text.strip() and not part.is_cut:
                yield (i, k), part.text


def asks(conversation: Conversation) -> bool:
    """Whether the newest request asks something, which some older turns may answer best."""
    request = conversation.newest_request
    return request is not None and is_question(conversation.messages[request])


def _typed_spans(texts: Mapping[Position, str]) -> dict[Position, Spans]:
    """Return what of each text no client has wrapped around it."""
    blocks = {position: enclosed(text) for position, text in texts.items()}
    times = Occurrences(tag for found in blocks.values() for tag in {tag for *_, tag in found if tag not in NO_ELEMENTS})
    typed = {}
    for position, text in texts.items():
        spans = _without(((0, len(text)),), [found for found in blocks[position] if times[found[2]] >= REPEATED_TAG])
        typed[position] = tuple((a, b) for a, b in spans if text[a:b].strip())
    return typed


def _pieces(
    position: Position, text: str, typed: Spans, most_chars: float, *, opens: bool, repeated: bool
) -> Iterator[_Piece]:
    """Yield what of a text may stay, by rank.

    0 what directs or tells something in short texts, 1 what else is said there, 2 the ends of a long one and what directs in
    it, 3 asides, 4 what else was typed, 5 long elements that are no files, 6 what was said many times and directs nobody.
    In what opens the conversation clients enclose what they are told: there such elements count as typed.
    """
    if chars_of(typed) <= min(LONGEST_TYPED_CHARS, most_chars):
        yield from _short_pieces(position, text, typed, repeated=repeated)
        return
    long = [found for found in enclosed(text) if found[1] - found[0] > LONGEST_TYPED_CHARS or found[2] in FILE_TAGS]
    pasted = [found for found in long if found[2] in NO_ELEMENTS or not opens]
    for a, b, tag in pasted:
        if tag not in NO_ELEMENTS and b - a <= most_chars:
            yield _Piece(5, position, a, b)
    found = [sentence for a, b in _without(typed, pasted) for sentence in _sentences(text, a, b)]
    for number, (start, end) in enumerate(found):
        rank = REST
        if end - start < LONGEST_SENTENCE_CHARS:  # else it is a part of a longer one
            if min(number, len(found) - 1 - number) < EDGE_SENTENCES or directs(text, start, end):
                rank = 2
            elif end - start <= LONGEST_ASIDE_CHARS and text[start - 2 : start] == text[end - 2 : end] == "\n\n":
                rank = 3
        yield _Piece(rank, position, start, end)


def _short_pieces(position: Position, text: str, typed: Spans, *, repeated: bool) -> Iterator[_Piece]:
    """Yield what of a short text may stay: the whole, of a less short one its sentences."""
    for a, b in typed:
        for start, end in ((a, b),) if b - a <= LONGEST_SENTENCE_CHARS else _sentences(text, a, b):
            if directs(text, start, end):
                rank = SAID if repeated else TELLING
            else:
                rank = REPEATED if repeated else TELLING if tells(text, start, end) else SAID
            yield _Piece(rank, position, start, end)


def _sentences(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield the sentences and lines between two offsets, side by side; a very long one in pieces."""
    for a, b in pieces.spans(text[start:end]):
        begin = start + a
        for stop in (*(found.end() for found in _END.finditer(text, start + a, start + b)), start + b):
            for piece in range(begin, stop, LONGEST_SENTENCE_CHARS):
                yield piece, min(piece + LONGEST_SENTENCE_CHARS, stop)
            begin = stop


def _without(spans: Spans, gone: Sequence[tuple[int, int, str]]) -> Iterator[tuple[int, int]]:
    """Yield what of some spans is left without others, of which each stands in one of them; both are in order."""
    for start, end in spans:
        inside = [(a, b) for a, b, _ in gone if start <= a and b <= end]
        yield from zip((start, *(b for _, b in inside)), (*(a for a, _ in inside), end), strict=True)


def chars_of(spans: Spans) -> int:
    """Return how long some spans are together."""
    return sum(b - a for a, b in spans)


def _joined(spans: Iterable[tuple[int, int]]) -> Spans:
    """Return spans in order, those side by side as one."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if joined and joined[-1][1] >= start:
            joined[-1] = (joined[-1][0], end)
        else:
            joined.append((start, end))
    return tuple(joined)
