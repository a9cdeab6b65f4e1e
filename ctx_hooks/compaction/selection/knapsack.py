"""A greedy knapsack: of the lines of older exchanges, what has the most value for its tokens comes first.

What can be kept are segments of texts. The cost of one is its tokens. Its value is the sum of the values of the identifiers
in it that nothing before it shows, and of its relevance to the newest request.

What is taken lowers the value of others and raises none: so of these only the one that seems best is valued anew (Minoux
1978).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import NamedTuple

from ctx_hooks.compaction.selection.scoring import Item
from ctx_hooks.compaction.selection.user_words import Position
from ctx_hooks.texts.identifiers import is_opaque

REQUEST_VALUE = 2.0
"""The value of the segment that fits the newest request best, where an identifier in a result that nothing kept shows yet
is worth 1: words of a question also stand in much that does not answer it."""
SAID_VALUE = 9.0
"""The value of an identifier in what somebody said, which no tool returns again."""
REFUSALS = 50
"""After so many segments that the room no longer holds it counts as spent: a shorter one may still fit."""
MOST_VALUATIONS = 8
"""So often a row is valued in the mean at most; real sessions take 3, and 8 at most. Where each row shares something with
each other one, the time would grow with the square of their number: the rest is taken by the values that it had last."""


class Row(NamedTuple):
    """A segment.

    Attributes:
        item: the number of its exchange.
        position: of the part that it stands in.
        segment: its number in that part.
        tokens: about what it costs, with the mark beside it.
        relevance: to the newest request, 0 to 1.
        identifiers: those that it brings.
        is_said: whether somebody said it, where a tool returned others.
    """

    item: int
    position: Position
    segment: int
    tokens: float
    relevance: float
    identifiers: frozenset[str]
    is_said: bool


class Knapsack:
    """The segments of exchanges in the order in which they are taken; it is found as far as it is asked for.

    Args:
        items: the exchanges that have a frame, by number.
        shown: the identifiers that users and tools have said in what is kept in any case.
    """

    def __init__(self, items: Mapping[int, Item], shown: Iterable[str]) -> None:
        self._shown = set(shown)
        self._found: list[Row] = []
        rows = [row for n, item in items.items() for row in _segments(n, item)]
        self._shown.update(name for row in rows for name in row.identifiers if is_opaque(name))
        self._rest = self._taken(rows)

    def within(self, room_tokens: float, opened: Collection[int]) -> list[Row]:
        """Return what a room holds of the `opened` exchanges' rows in their order; what does not fit is passed over."""
        taken: list[Row] = []
        refusals = 0
        for row in self._rows():
            if row.item not in opened:
                continue
            if row.tokens <= room_tokens:
                room_tokens -= row.tokens
                taken.append(row)
                continue
            refusals += 1
            if refusals == REFUSALS:
                break
        return taken

    def _rows(self) -> Iterator[Row]:
        yield from self._found
        for row in self._rest:
            self._found.append(row)
            yield row

    def _taken(self, rows: list[Row]) -> Iterator[Row]:
        """Yield the rows of any value, those with the most per token first."""
        waiting = [(-self._density(row), n, row) for n, row in enumerate(rows)]
        heapify(waiting)
        valuations = MOST_VALUATIONS * len(rows)
        while waiting:
            _, n, row = heappop(waiting)
            density = self._density(row)
            valuations -= 1
            if density <= 0:
                continue
            if waiting and -density > waiting[0][0] and valuations > 0:
                heappush(waiting, (-density, n, row))
                continue
            self._shown |= row.identifiers
            yield row

    def _density(self, row: Row) -> float:
        """Return the value per token."""
        value = len(row.identifiers - self._shown) * (SAID_VALUE if row.is_said else 1)
        return (value + REQUEST_VALUE * row.relevance) / row.tokens


def _segments(n: int, item: Item) -> Iterator[Row]:
    """Yield the segments that add identifiers to their text, and others that are relevant."""
    for source in item.sources:
        segments, names = source.segments, iter(source.segments.identifiers)
        spans = segments.spans
        brought = {
            k: islice(names, count) for k, count in zip(segments.cover.tolist(), segments.added.tolist(), strict=True)
        }
        brought_by = {k: frozenset(of_segment) for k, of_segment in brought.items()}
        relevant = {k: frozenset[str]() for k in sorted(source.relevance) if k not in brought_by}
        for k, identifiers in (brought_by | relevant).items():
            relevance = source.relevance.get(k, 0.0)
            yield Row(n, source.position, k, source.tokens(spans[k]), relevance, identifiers, source.is_said)
