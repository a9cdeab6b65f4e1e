"""A greedy knapsack: of the older exchanges, what has the most value for its tokens comes first.

What can be kept are segments of texts. The cost of one is its tokens; before the first of an exchange its frame has to be
paid, which is what stays of it without any. The value of a segment is the sum of the values of the identifiers in it that
nothing before it shows, and of its relevance to the newest request; the frame has the identifiers of the calls.

What is taken lowers the value of others and raises none: so of these only the one that seems best is valued anew (Minoux
1978). A frame is taken for the sake of its segments: it has the best value per token that it reaches together with the best
of them, as many as raise it.
"""

from __future__ import annotations

from heapq import heapify, heappop, heappush
from itertools import accumulate, chain, islice
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence
    from collections.abc import Set as AbstractSet

    from ctx_hooks.compaction.selection.scoring import Item
    from ctx_hooks.compaction.selection.user_words import Position

SEEN_VALUE = 1.0
"""The value of an identifier that nothing kept shows yet: the unit of all values."""
USED_VALUE = 9.0
"""Its value when the assistant has used it, until a kept call or answer of the assistant names it. From the middle of real
sessions, the assistant's next answers name 13.8 % of the identifiers that it has used before, and 1.6 % of those that it
was only shown: 8.8 times as many."""
REQUEST_VALUE = 2.0
"""The value of the segment that fits the newest request best: more than an identifier that was only shown, far less than
one that was used, since words of a question also stand in much that does not answer it."""
REFUSALS = 50
"""After so many segments that the room no longer holds it counts as spent: a shorter one may still fit."""
MOST_VALUATIONS = 8
"""So often a row is valued in the mean at most; real sessions take 3, and 8 at most. Where each row shares something with
each other one, the time would grow with the square of their number: the rest is taken by the values that it had last."""


class Row(NamedTuple):
    """A frame or a segment.

    Attributes:
        item: the number of its exchange.
        position: of the part that the segment stands in; None for a frame.
        segment: its number in that part; of a frame it means nothing.
        tokens: about what it costs, of a segment with the mark beside it.
        relevance: to the newest request, 0 to 1.
        identifiers: those that it brings.
    """

    item: int
    position: Position | None
    segment: int
    tokens: float
    relevance: float
    identifiers: frozenset[str]


class Knapsack:
    """The frames and segments of exchanges in the order in which they are taken; it is found as far as it is asked for.

    Args:
        items: the exchanges.
        used: the identifiers that the assistant has used.
        shown: those that stand in what is kept in any case.
        named: those that the assistant names there.
        without: the numbers of exchanges of which nothing is taken.
        stay: the numbers of exchanges that stay in any case: their frames are not among what is taken.
    """

    def __init__(
        self,
        items: Sequence[Item],
        used: AbstractSet[str],
        shown: AbstractSet[str],
        named: AbstractSet[str],
        *,
        without: Collection[int] = (),
        stay: Collection[int],
    ) -> None:
        self._shown = set(shown)
        self._unnamed = used - shown - named
        self._segments = {n: list(_segments(n, item)) for n, item in enumerate(items) if n not in without}
        first = chain.from_iterable(
            segments if n in stay else [Row(n, None, 0, items[n].frame_tokens, 0.0, frozenset(items[n].identifiers))]
            for n, segments in self._segments.items()
        )
        self._found: list[Row] = []
        self._rest = self._taken(first)

    def within(self, room_tokens: float) -> tuple[list[Row], float]:
        """Return what a room holds of the rows in their order, and the tokens that are left of it.

        What does not fit is passed over, a frame with all its segments; so is the frame of which the best does not fit.
        """
        taken: list[Row] = []
        closed: set[int] = set()
        refusals = 0
        for row in self._rows():
            if row.item in closed:
                continue
            if row.tokens <= room_tokens:
                room_tokens -= row.tokens
                taken.append(row)
                continue
            if taken and taken[-1].position is None and taken[-1].item == row.item:
                room_tokens += taken.pop().tokens
                closed.add(row.item)
            elif row.position is None:
                closed.add(row.item)
            refusals += 1
            if refusals == REFUSALS:
                return taken, 0.0
        return taken, room_tokens

    def _rows(self) -> Iterator[Row]:
        yield from self._found
        for row in self._rest:
            self._found.append(row)
            yield row

    def _taken(self, rows: Iterable[Row]) -> Iterator[Row]:
        """Yield the rows of any value, those with the most per token first, behind each frame its segments as well."""
        waiting = [(-self._density(row), n, row) for n, row in enumerate(rows)]
        heapify(waiting)
        number = len(waiting)
        valuations = MOST_VALUATIONS * sum(1 + len(segments) for segments in self._segments.values())
        while waiting:
            _, n, row = heappop(waiting)
            density = self._density(row)
            valuations -= 1 if row.position is not None else 1 + len(self._segments[row.item])
            if density <= 0:
                continue
            if waiting and -density > waiting[0][0] and valuations > 0:
                heappush(waiting, (-density, n, row))
                continue
            self._unnamed -= row.identifiers
            if row.position is not None:
                self._shown |= row.identifiers
            yield row
            for segment in self._segments[row.item] if row.position is None else ():
                heappush(waiting, (-self._density(segment), number, segment))
                number += 1

    def _density(self, row: Row) -> float:
        """Return the value per token of a segment, or the best of a frame with segments behind it."""
        value = self._value(row)
        if row.position is not None:
            return value / row.tokens
        behind = [(self._value(s), s.tokens) for s in self._segments[row.item]]
        behind.sort(key=lambda worth: -worth[0] / worth[1])
        sums = accumulate(behind, lambda a, b: (a[0] + b[0], a[1] + b[1]), initial=(value, row.tokens))
        return max(value / tokens for value, tokens in sums)

    def _value(self, row: Row) -> float:
        new, unnamed = row.identifiers - self._shown, row.identifiers & self._unnamed
        return SEEN_VALUE * len(new) + (USED_VALUE - SEEN_VALUE) * len(unnamed) + REQUEST_VALUE * row.relevance


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
            yield Row(n, source.position, k, source.tokens(spans[k]), source.relevance.get(k, 0.0), identifiers)
