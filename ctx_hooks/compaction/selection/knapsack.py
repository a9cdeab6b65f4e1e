"""A greedy knapsack: the segments of older exchanges with the most value for their tokens come first.

The value of a segment is the value of its identifiers that no earlier segment shows, plus its relevance to the newest
request. Taking one never raises the value of another, so only the apparent best is valued again (Minoux 1978).
"""

from collections.abc import Collection, Iterator, Mapping
from collections.abc import Set as AbstractSet
from heapq import heapify, heappop, heappush
from itertools import islice
from typing import NamedTuple

from ctx_hooks.compaction.selection.scoring import Item
from ctx_hooks.compaction.selection.user_words import Position
from ctx_hooks.texts.identifiers import is_opaque

SEEN_VALUE = 1.0
"""The value of an identifier that no kept text shows yet: the unit of all values."""
USED_VALUE = 9.0
"""Its value if the assistant has used it, until a kept call or answer names it. From the middle of real sessions on,
the next answers name 13.8 % of the identifiers that the assistant has used before. Of those only seen they name 1.6 %."""
REQUEST_VALUE = 2.0
"""The value of the segment that fits the newest request best: more than a seen identifier, far less than a used one, since
many texts have words of a question without answering it."""
REFUSALS = 50
"""After so many segments that do not fit, the room counts as full: before that a shorter one may still fit."""
MOST_VALUATIONS = 8
"""The most valuations of a row in the mean; real sessions take 3, and 8 at most. If every row shares identifiers with every
other one, the time would grow with the square of their number: then the last values decide on the rest."""


class Row(NamedTuple):
    """A segment: the number of its exchange, its part, its number in the part, its cost, and what it brings."""

    item: int
    position: Position
    segment: int
    tokens: float
    relevance: float
    identifiers: frozenset[str]


class Knapsack:
    """The segments of exchanges in the order of their selection, which is computed only as far as needed.

    Args:
        items: the exchanges that have a frame, by number.
        used: the identifiers that the assistant has used.
        shown: the identifiers in text that always stays; `named` are those that the assistant names there.
    """

    def __init__(
        self, items: Mapping[int, Item], used: AbstractSet[str], shown: AbstractSet[str], named: AbstractSet[str]
    ) -> None:
        self._shown = set(shown)
        self._unnamed = used - shown - named
        self._found: list[Row] = []
        rows = [row for n, item in items.items() for row in _segments(n, item)]
        self._shown.update(name for row in rows for name in row.identifiers - used if is_opaque(name))
        self._rest = self._taken(rows)

    def within(self, room_tokens: float, opened: Collection[int]) -> tuple[list[Row], float]:
        """Return the rows of the `opened` exchanges that fit the room, and the rest of the room."""
        taken: list[Row] = []
        refusals = 0
        for row in (row for row in self._rows() if row.item in opened):
            if row.tokens <= room_tokens:
                room_tokens -= row.tokens
                taken.append(row)
            elif (refusals := refusals + 1) == REFUSALS:
                return taken, 0.0
        return taken, room_tokens

    def _rows(self) -> Iterator[Row]:
        yield from self._found
        for row in self._rest:
            self._found.append(row)
            yield row

    def _taken(self, rows: list[Row]) -> Iterator[Row]:
        """Yield the rows that have a value, most value per token first."""
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
            self._unnamed -= row.identifiers
            self._shown |= row.identifiers
            yield row

    def _density(self, row: Row) -> float:
        """Return the value per token."""
        new, unnamed = row.identifiers - self._shown, row.identifiers & self._unnamed
        value = SEEN_VALUE * len(new) + (USED_VALUE - SEEN_VALUE) * len(unnamed) + REQUEST_VALUE * row.relevance
        return value / row.tokens


def _segments(n: int, item: Item) -> Iterator[Row]:
    """Yield the segments that bring new identifiers of their text, and other relevant ones."""
    for source in item.sources:
        segments, names = source.segments, iter(source.segments.identifiers)
        spans = segments.spans
        added = zip(segments.cover.tolist(), segments.added.tolist(), strict=True)
        brought_by = {k: frozenset(islice(names, count)) for k, count in added}
        relevant = {k: frozenset[str]() for k in sorted(source.relevance) if k not in brought_by}
        for k, identifiers in (brought_by | relevant).items():
            yield Row(n, source.position, k, source.tokens(spans[k]), source.relevance.get(k, 0.0), identifiers)
