"""The words that stay: spans of users' older messages that no step may remove, and ends of the assistant's answers.

All words stay up to a share of the goal. Beyond it, form separates typed text from pasted text and from the client's
wrapping: a long element or fence, or one that opens in several messages, is not typed. In a long text, typed parts are the
sentences at either end, directives, and prose among lines that are none. A list stays or goes whole. Directives and
statements with a figure, a name or a place stay first, the newest before the older.
"""

import re
from collections import Counter as Occurrences
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import NamedTuple

from ctx_hooks.compaction.selection.blocks import FENCES, FILE_TAGS, blocks, enclosed
from ctx_hooks.compaction.selection.segments import Position, Spans, chars_of
from ctx_hooks.conversation.conversation import Conversation
from ctx_hooks.conversation.model import Text, is_question, is_request
from ctx_hooks.texts.pieces import head_end, tail_start
from ctx_hooks.texts.statements import LONGEST_SENTENCE_CHARS, corrections, directs, sentences, tells
from ctx_hooks.tokens.budget import Budget

WORDS_FRACTION, DIALOGUE_WORDS_FRACTION = 0.75, 0.4
"""The share of the goal that users' words may always have beside calls and results, and in plain dialogue. In recorded
sessions of agents they are .001 to .01 of the context; Codex keeps up to 20,000 tokens of them."""
MOST_FREE_FRACTION = 0.65
"""If a request has to fit the window at once, they get at most this share of the room beside protected text."""
TELLING_FRACTION = 0.9
"""The share of that room for directives and statements if no tool was used and nobody asks: nobody can find them again."""
ENTRY_TOKENS = 3
"""The cost of a text's speaker and line break in a record."""
LONGEST_TYPED_CHARS = 2_000
"""A longer text, or element in it, is seldom typed."""
LARGEST_WHOLE_FRACTION = 0.5
"""The largest share of the room for users' words that a single long text may use whole."""
OPENING_FRACTION = 0.5
"""Share of the room for users' words that goes first to the conversation's opening, and in it to the task, the last text
before the first answer. Agents without the provider's tools get every result as a user's turn."""
EDGE_SENTENCES = 3
"""So many sentences at either end of a long text are the user's: pasted text is between or beside them."""
MOST_PROSE_FRACTION = 0.2
"""In a text with less prose the prose is the user's."""
REPEATED_TIMES = 3
"""An element in so many messages is the client's."""
TELLING, SAID, OWN, REST = range(4)
"""Ranks: short directives and statements; other short texts; the user's part of a long text; the rest of it."""
NO_ELEMENTS = (*FENCES, *FILE_TAGS)
"""Elements and fences for text that users paste."""
ANSWERS_FRACTION = 0.15
"""The answers' share of the goal's free room in a conversation of calls and results; with dialogue proportionally less."""
END_CHARS = 400
"""The kept length at either end of a long answer: its subject, and its question or conclusion."""
_CODE = re.compile(r"^(?://|/\*|\*/|<!--|--\s)|[;{}(\[,]$")
"""Lines of code: a comment, or with an end that no sentence has. Directives in them are not the user's."""
_ITEM = re.compile(r"\s*(?:[-*+•]|\d{1,3}[.)])\s")


class _Piece(NamedTuple):
    """A span of a user's text, and its rank: spans of rank 0 go last."""

    rank: int
    position: Position
    start: int
    end: int


def user_words(conversation: Conversation, budget: Budget) -> Mapping[Position, Spans]:
    """Return the kept spans of users' older texts: repeated ones at their last place, corrected ones with the correction."""
    texts = {position: text for text, position in {text: position for position, text in _said(conversation)}.items()}
    typed = _typed_spans(texts)
    free = free_tokens(conversation, budget)
    uses_tools = any(m.calls or m.results for m in conversation.messages)
    room_tokens = budget.goal_tokens * (WORDS_FRACTION if uses_tools else DIALOGUE_WORDS_FRACTION)
    # Where nothing else can make room, records that do not fit would lose all words; behind settled text a compaction that
    # does not fit begins anew, and the prompt cache loses that text.
    if (budget.cut_newest or conversation.settled) and free > 0:
        room_tokens = min(room_tokens, free * MOST_FREE_FRACTION)
    most_tokens = {}
    if not (uses_tools or asks(conversation)):
        most_tokens[TELLING] = free * TELLING_FRACTION
    tokens_per_char = {position: budget.counter.text(text) / len(text) for position, text in texts.items()}
    if sum(chars_of(spans) * tokens_per_char[position] for position, spans in typed.items()) <= room_tokens:
        return {position: spans for position, spans in typed.items() if spans}
    answered = next((i for i, message in enumerate(conversation.messages) if message.role == "assistant"), 0)
    task = max((position for position in texts if position[0] < answered), default=None)
    found: list[_Piece] = []
    for position, text in texts.items():
        most_chars = LARGEST_WHOLE_FRACTION * room_tokens / tokens_per_char[position]
        found += _pieces(position, text, typed[position], most_chars, opens=position[0] < answered)
    stated = [p for p in found if p.rank == TELLING]
    corrected = corrections([texts[p.position][p.start : p.end] for p in stated])
    corrections_of = {stated[n]._replace(rank=SAID): stated[later] for n, later in corrected.items()}
    uncorrected = (p for n, p in enumerate(stated) if n not in corrected)
    found = [*(p for p in found if p.rank != TELLING), *uncorrected, *corrections_of]
    opening = [p for p in found if p.position == task or (p.position[0] < answered and p.rank <= OWN)]
    opening.sort(key=lambda p: (-p.position[0], p.rank, p.start))
    ranked = sorted(found, key=lambda p: (p.rank, -p.position[0], p.start))
    spare_tokens = room_tokens * (1 - OPENING_FRACTION)
    kept: dict[Position, set[tuple[int, int]]] = {}
    ended: set[Position] = set()
    spent = 0.0
    for piece, left_tokens in chain(((p, spare_tokens) for p in opening), ((p, 0) for p in ranked)):
        spans = kept.setdefault(piece.position, set())
        correction = corrections_of.get(piece)
        if correction is not None and (correction.start, correction.end) not in kept.get(correction.position, ()):
            continue
        if piece.rank == REST and piece.position in ended:
            continue
        cost = (piece.end - piece.start) * tokens_per_char[piece.position] + ENTRY_TOKENS * (not spans)
        if (piece.start, piece.end) not in spans and spent + cost <= most_tokens.get(piece.rank, room_tokens) - left_tokens:
            spent += cost
            spans.add((piece.start, piece.end))
        elif piece.rank == REST and (piece.start, piece.end) not in spans and not left_tokens:
            ended.add(piece.position)  # a text ends between sections, and its last one has its heading
    return {position: _joined(spans) for position, spans in kept.items() if spans}


def free_tokens(conversation: Conversation, budget: Budget) -> float:
    """Return the goal's tokens beside protected text."""
    older = (conversation.messages[i] for i in conversation.older_messages)
    older_tokens = budget.counter.messages(older, conversation.format)
    return budget.goal_tokens - (budget.counter.conversation(conversation) - older_tokens)


def _said(conversation: Conversation) -> Iterator[tuple[Position, str]]:
    """Yield the texts of the users' older messages, in order."""
    newest = conversation.newest_words
    for i in sorted(conversation.older_messages):
        message = conversation.messages[i]
        for k, part in enumerate(message.parts if i == newest or is_request(message) else ()):
            if isinstance(part, Text) and part.text.strip() and not part.is_cut:
                yield (i, k), part.text


def asks(conversation: Conversation) -> bool:
    """Whether the newest request asks a question, which some older turns may answer best."""
    request = conversation.newest_request
    return request is not None and is_question(conversation.messages[request])


def _typed_spans(texts: Mapping[Position, str]) -> dict[Position, Spans]:
    """Return the spans of each text without the client's wrapping."""
    elements = {position: enclosed(text) for position, text in texts.items()}
    times = Occurrences(tag for found in elements.values() for tag in {tag for *_, tag in found if tag not in NO_ELEMENTS})
    typed = {}
    for position, text in texts.items():
        spans = _without(((0, len(text)),), [found for found in elements[position] if times[found[2]] >= REPEATED_TIMES])
        typed[position] = tuple((a, b) for a, b in spans if text[a:b].strip())
    return typed


def _pieces(position: Position, text: str, typed: Spans, most_chars: float, *, opens: bool) -> Iterator[_Piece]:
    """Yield the spans of a text that may stay. In the opening clients enclose the user's words in elements."""
    if chars_of(typed) <= min(LONGEST_TYPED_CHARS, most_chars):
        for a, b in typed:
            for start, end in ((a, b),) if b - a <= LONGEST_SENTENCE_CHARS else sentences(text, a, b):
                says_more = directs(text, start, end) or tells(text, start, end)
                yield _Piece(TELLING if says_more else SAID, position, start, end)
        return
    longest = dict.fromkeys(FENCES, LONGEST_SENTENCE_CHARS) | dict.fromkeys(FILE_TAGS, 0)
    long = [found for found in enclosed(text) if found[1] - found[0] > longest.get(found[2], LONGEST_TYPED_CHARS)]
    pasted = [found for found in long if found[2] in NO_ELEMENTS or not opens]
    yield from (_Piece(REST, position, a, b) for a, b, tag in pasted if tag not in NO_ELEMENTS and b - a <= most_chars)
    found = [sentence for a, b in _without(typed, pasted) for sentence in sentences(text, a, b)]
    is_prose = [_is_prose(text[a:b].strip()) for a, b in found]
    is_rare = sum(is_prose) <= MOST_PROSE_FRACTION * len(found)
    listed = _Piece(REST, position, 0, 0)
    for number, (start, end) in enumerate(found):
        is_own = min(number, len(found) - 1 - number) < EDGE_SENTENCES
        if not is_own and end - start < LONGEST_SENTENCE_CHARS:  # else it is a part of a longer one
            is_code = text[max(0, start - 2) : start].isspace() and text[start - 1] != "\n"
            is_code = is_code or _CODE.search(text[start:end].strip()) is not None
            is_own = not is_code and (directs(text, start, end) or (is_rare and is_prose[number]))
        rank = OWN if is_own else REST
        if listed.end == start and _ITEM.match(text, start) and end - listed.start <= LONGEST_TYPED_CHARS:
            listed = _Piece(min(rank, listed.rank), position, listed.start, end)
            continue
        if listed.rank == OWN:
            yield listed
        listed = _Piece(rank, position, start, end)
    if listed.rank == OWN:
        yield listed
    whole = [(a, b) for a, b in _without(typed, pasted) if text[a:b].strip()]
    for start, end in blocks(text, LONGEST_TYPED_CHARS):
        yield from (_Piece(REST, position, max(a, start), min(b, end)) for a, b in whole if max(a, start) < min(b, end))


def _is_prose(line: str) -> bool:
    """Whether a line looks like a sentence: it begins with a letter that is not small and ends like one."""
    is_ended = line.endswith(("。", "！", "？")) or (line.endswith((".", "!", "?")) and line.count(" ") > 1)
    return is_ended and line[0].isalpha() and not line[0].islower()


def _without(spans: Spans, gone: Sequence[tuple[int, int, str]]) -> Iterator[tuple[int, int]]:
    """Yield the spans without the `gone` ones, each of which is inside one of them; both are in order."""
    for start, end in spans:
        inside = [(a, b) for a, b, _ in gone if start <= a and b <= end]
        yield from zip((start, *(b for _, b in inside)), (*(a for a, _ in inside), end), strict=True)


def _joined(spans: Iterable[tuple[int, int]]) -> Spans:
    """Return spans in order, with neighbours joined."""
    joined: list[tuple[int, int]] = []
    for start, end in sorted(spans):
        if joined and joined[-1][1] >= start:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((start, end))
    return tuple(joined)


def answers(conversation: Conversation, budget: Budget) -> Mapping[Position, Spans]:
    """Return the ends of the assistant's older answers that close a turn: nobody can follow questions without answers.

    They are .005 to .03 of agents' contexts. In plain dialogue they are half of it: there `select.py` chooses.
    """
    older = conversation.older_exchanges
    tokens = [budget.counter.messages((conversation.messages[i] for i in e), conversation.format) for e in older]
    used_tokens = sum(tokens[n] for n, exchange in enumerate(older) if _uses_tools(conversation, exchange))
    room_tokens = ANSWERS_FRACTION * used_tokens / max(1, sum(tokens)) * free_tokens(conversation, budget)
    kept: dict[Position, Spans] = {}
    for position, text in _answers(conversation):
        head, tail = head_end(text, END_CHARS), tail_start(text, END_CHARS)
        spans = ((0, head), (tail, len(text))) if head < tail else ((0, len(text)),)
        price = chars_of(spans) * budget.counter.text(text) / len(text)
        if price <= room_tokens:
            room_tokens -= price
            kept[position] = spans
    return kept


def _answers(conversation: Conversation) -> Iterator[tuple[Position, str]]:
    """Yield the texts that end the assistant's turns, newest first."""
    messages = conversation.messages
    for exchange in reversed(conversation.older_exchanges):
        behind = exchange.stop
        if behind == len(messages) or not is_request(messages[behind]) or _uses_tools(conversation, exchange):
            continue
        for i in exchange:
            for k, part in enumerate(messages[i].parts if messages[i].role == "assistant" else ()):
                if isinstance(part, Text) and part.text.strip() and not (part.is_cut or part.is_signed):
                    yield (i, k), part.text


def _uses_tools(conversation: Conversation, exchange: range) -> bool:
    return any(conversation.messages[i].calls or conversation.messages[i].results for i in exchange)
