"""What of the older exchanges could be kept, what each piece costs and what it is worth."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from ctx_hooks import arguments
from ctx_hooks.conversation import Conversation, Message, Opaque, Part, Reasoning, Text, ToolCall, ToolResult
from ctx_hooks.protection import older_exchanges, reasoning_may_go
from ctx_hooks.salience import Units, identifiers, units
from ctx_hooks.steps.results import may_be_cut

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from ctx_hooks.budget import Budget

NOTICE_TOKENS = 24
"""What the notice above the kept lines of a part costs."""
GAP_TOKENS = 1.5
"""What the mark between two kept lines costs."""
ARGUMENT_CHARS = 400
"""Longest string that the arguments of an older call keep whole."""
WHOLE_TEXT_CHARS = 1_200
"""An older text up to this length is kept or cut whole; a longer one by its lines."""
DENSE_LINE_FACTOR = 1.15
"""Lines full of identifiers have more tokens a character than their text on average."""
REQUEST_WORDS = 24
"""The request's rarest words are looked for; the common ones say nothing about a line."""
_WORD = re.compile(r"[A-Za-z0-9_]{4,}|[^\W\d_A-Za-z]{2,}")

Position: TypeAlias = tuple[int, int]
"""Index of a message, and of a part in it."""


@dataclass(frozen=True, slots=True)
class Line:
    """One unit of a part. `cost_tokens` is an estimate; `relevance` is between 0 and 1."""

    position: Position
    index: int
    cost_tokens: float
    identifiers: frozenset[str]
    relevance: float


@dataclass(frozen=True, slots=True)
class Candidate:
    """An older exchange: its frame (what stays of it without any line) and its lines."""

    messages: range
    frame_tokens: float
    whole_tokens: float
    identifiers: frozenset[str]
    lines: tuple[Line, ...]
    recency: float
    """1 for what was said just now, halving with every goal's worth of tokens said since."""
    spoken: bool
    """Whether it is plain dialogue, without calls or results."""


def thinnable(part: Part) -> bool:
    """Whether an older part may be reduced to some of its lines."""
    if isinstance(part, ToolResult):
        return bool(part.text) and may_be_cut(part)
    return isinstance(part, Text) and len(part.text) > WHOLE_TEXT_CHARS


def candidates(conversation: Conversation, budget: Budget) -> tuple[Candidate, ...]:
    """Return the older exchanges as candidates, oldest first."""
    older = older_exchanges(conversation)
    hits = _request_hits(conversation, older)
    found: list[Candidate] = []
    since = 0.0
    for exchange in reversed(older):
        recency = 0.5 ** (since / budget.goal_tokens)
        found.append(_candidate(conversation, exchange, budget, hits, recency))
        since += found[-1].whole_tokens
    return tuple(reversed(found))


def identifiers_of(messages: Iterable[Message], *, spoken_by_assistant: bool = False) -> set[str]:
    """Return the identifiers in the messages; with `spoken_by_assistant` those of the assistant's texts and calls only."""
    found: set[str] = set()
    for message in messages:
        if spoken_by_assistant and message.role != "assistant":
            continue
        for part in message.parts:
            if isinstance(part, ToolCall):
                found |= identifiers(part.arguments)
            elif isinstance(part, (Text, ToolResult)):
                found |= identifiers(part.text)
    return found


def _candidate(
    conversation: Conversation, exchange: range, budget: Budget, hits: Mapping[Position, Mapping[int, float]], recency: float
) -> Candidate:
    fmt, counter = conversation.format, budget.counter
    frame = 0.0
    named: set[str] = set()
    lines: list[Line] = []
    spoken = True
    for i in exchange:
        message = conversation.messages[i]
        frame += counter.message(message, fmt)
        for k, part in enumerate(message.parts):
            spoken = spoken and not isinstance(part, (ToolCall, ToolResult))
            if thinnable(part) and isinstance(part, (Text, ToolResult)):
                tokens = (
                    counter.text(part.text)
                    if isinstance(part, Text)
                    else sum(counter.text(p.text) for p in part.parts if isinstance(p, Text))
                )
                frame += NOTICE_TOKENS - tokens
                lines += _lines((i, k), part.text, tokens, hits.get((i, k), {}))
            elif isinstance(part, ToolCall):
                short = arguments.shortened(part.arguments, ARGUMENT_CHARS, budget.policy.language)
                if short is not part.arguments:
                    frame -= (1 - len(short) / len(part.arguments)) * counter.text(part.arguments)
                named |= identifiers(short)
            elif isinstance(part, Reasoning):
                frame -= counter.text(part.text) * reasoning_may_go(conversation, i)
            elif not isinstance(part, Opaque) and isinstance(part, (Text, ToolResult)):
                named |= identifiers(part.text)
    whole = counter.messages((conversation.messages[i] for i in exchange), fmt)
    return Candidate(exchange, max(1.0, frame), whole, frozenset(named), tuple(lines), recency, spoken)


def _lines(position: Position, text: str, tokens: int, hits: Mapping[int, float]) -> list[Line]:
    found: Units = units(text)
    a_char = tokens / len(text) * DENSE_LINE_FACTOR
    return [
        Line(position, n, (end - start) * a_char + GAP_TOKENS, names, hits.get(n, 0.0))
        for n, ((start, end), names) in enumerate(zip(found.spans, found.identifiers, strict=True))
    ]


def _request_hits(conversation: Conversation, older: tuple[range, ...]) -> dict[Position, dict[int, float]]:
    """Return for each part the lines that hold words of the newest request, weighed by how rare each word is.

    The weight of a word is its inverse document frequency over lines, as in BM25; lengths are short enough to go without
    the rest of that formula.
    """
    if conversation.newest_request is None:
        return {}
    words = set(_WORD.findall(conversation.messages[conversation.newest_request].text.lower()))
    where: dict[str, list[tuple[Position, int]]] = {w: [] for w in words}
    total = 1
    for exchange in older:
        for i in exchange:
            for k, part in enumerate(conversation.messages[i].parts):
                if not thinnable(part) or not isinstance(part, (Text, ToolResult)):
                    continue
                lowered = part.text.lower()
                starts = [start for start, _ in units(part.text).spans]
                total += len(starts)
                for word in words:
                    at = lowered.find(word)
                    while at >= 0:
                        n = bisect_right(starts, at) - 1
                        where[word].append(((i, k), n))
                        at = lowered.find(word, starts[n + 1]) if n + 1 < len(starts) else -1
    rarest = sorted((len(v), w) for w, v in where.items() if v)[:REQUEST_WORDS]
    scores: dict[tuple[Position, int], float] = {}
    for frequency, word in rarest:
        weight = math.log(1 + (total - frequency + 0.5) / (frequency + 0.5))
        for place in where[word]:
            scores[place] = scores.get(place, 0.0) + weight
    best = max(scores.values(), default=1.0)
    hits: dict[Position, dict[int, float]] = {}
    for (position, n), score in scores.items():
        hits.setdefault(position, {})[n] = score / best
    return hits
