"""A lazy-greedy knapsack: of the older exchanges, what has the most value for its tokens is taken while there is room.

Items are lines of older exchanges (`ValuedLine`). The cost of a line is its tokens; the first line of an exchange also
pays the exchange's frame, which is what stays of it without any line. The value of a line is the sum of the values of the
identifiers in it that nothing kept shows yet, and of its relevance to the newest request; with the frame come the
identifiers of the calls.

The greedy choice takes the highest value per token next. It is evaluated lazily (Minoux 1978): a value only falls while
others are taken, since what is shown once is worth nothing twice, so the place of a line in the heap is an upper bound.
Only the line on top is valued anew: it is taken if it still stands there, else pushed again. The one value that rises is
that of the lines of an exchange whose frame has just been paid; these are pushed once more.

With n lines the heap is built in O(n), and each look takes O(log n) and the identifiers of one line. In real sessions
there are half as many looks as lines: most lines never come to the top.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ctx_hooks.compaction.selection.scoring import Item, Position, Source, identifiers_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from ctx_hooks.conversation.model import Message
    from ctx_hooks.tokens.counter import Counter

SEEN_VALUE = 1.0
"""The value of an identifier that nothing kept shows yet: the unit of all values."""
USED_VALUE = 9.0
"""Its value when the assistant has used it, until a kept call or answer of the assistant names it. From the middle of real
sessions, the assistant's next answers name 13.8 % of the identifiers that it has used before, and 1.6 % of those that it
was only shown: 8.8 times as many."""
REQUEST_VALUE = 2.0
"""The value of the line that fits the newest request best: more than an identifier that was only shown, far less than
one that was used, since words of a question also stand in much that does not answer it."""
RECENCY_VALUE = 0.5
"""How much more value a line of just now has than the same line of long ago: it decides between equals. The newest
exchanges are kept whole anyway, before any line is weighed."""
REFUSALS = 50
"""After so many lines that the room no longer holds it counts as spent: a shorter line may still fit, but each look
counts tokens."""
GAP_TOKENS = 1.5
"""What the mark between two kept lines costs: a token, and at times one for its line break."""
FALLEN = 1 - 1e-9
"""A line whose value per token has fallen below this share of its place in the heap is pushed again."""


@dataclass(frozen=True, slots=True)
class Selection:
    """What is kept of the older exchanges; the rest goes.

    Attributes:
        whole: exchanges that stay as they are, each as the range of its messages.
        shortened: exchanges that stay with their frame and some of their lines.
        lines: the numbers of the lines that stay of a shortened exchange, by position of their part.
    """

    whole: frozenset[range]
    shortened: frozenset[range]
    lines: Mapping[Position, frozenset[int]]


class ValuedLine(NamedTuple):
    """A line of an exchange with what it adds and costs; without a source it is the exchange's frame alone.

    Attributes:
        item: the number of the exchange.
        source: the part that the line stands in.
        line: its number in that part.
        names: the identifiers that the text shows first in this line; their values change.
        bonus: its value by relevance to the newest request, which does not change.
        tokens: about what it costs, with the mark beside it.
    """

    item: int
    source: Source | None
    line: int
    names: tuple[str, ...]
    bonus: float
    tokens: float


@dataclass(frozen=True, slots=True)
class ValuedItems:
    """Everything that could be kept, by exchange, and the value of each identifier in it while nothing is kept."""

    items: tuple[Item, ...]
    lines_by_item: tuple[tuple[ValuedLine, ...], ...]
    values: Mapping[str, float]


def valued_items_of(items: tuple[Item, ...], used: AbstractSet[str]) -> ValuedItems:
    """Return the items with their lines and values; `used` are the identifiers that the assistant has used."""
    values: dict[str, float] = {}
    for item in items:
        values.update(dict.fromkeys(item.identifiers, SEEN_VALUE))
        for source in item.sources:
            values.update(dict.fromkeys(source.segments.identifiers, SEEN_VALUE))
    values.update(dict.fromkeys(used & values.keys(), USED_VALUE))
    return ValuedItems(items, tuple(tuple(_valued_lines(n, item)) for n, item in enumerate(items)), values)


def _valued_lines(n: int, item: Item) -> Iterable[ValuedLine]:
    yield ValuedLine(n, None, 0, (), 0.0, 0.0)
    for source in item.sources:
        spans, per_char, relevance = source.segments.spans, source.tokens_per_char, source.relevance
        for line, names in source.scored_segments:
            start, end = spans[line]
            tokens = (end - start) * per_char + GAP_TOKENS
            yield ValuedLine(n, source, line, names, REQUEST_VALUE * relevance.get(line, 0.0), tokens)


class Knapsack:
    """What has been taken so far; `room_tokens` are left, below zero where more was opened than the room held.

    Args:
        valued_items: what can be taken.
        room_tokens: the tokens that all of it together may have.
        counter: counts a line when it is taken; up to then its tokens are an estimate by length.
    """

    def __init__(self, valued_items: ValuedItems, room_tokens: float, counter: Counter) -> None:
        self.room_tokens = room_tokens
        self.whole: set[range] = set()
        self._valued_items = valued_items
        self._values = dict(valued_items.values)
        self._count = counter.text
        self._opened: set[range] = set()
        self._lines: dict[Position, set[int]] = {}
        self._spent: dict[range, float] = {}

    def open(self, item: Item) -> None:
        """Pay for the frame of an exchange."""
        if item.messages not in self._opened:
            self._opened.add(item.messages)
            self._pay(item, item.frame_tokens)
            self._mention(item.identifiers)

    def price_of_whole(self, item: Item) -> float:
        """Return what is still to pay for the whole exchange."""
        if item.messages in self.whole:
            return 0.0
        return item.whole_tokens - self._spent.get(item.messages, 0.0)

    def take_whole(self, item: Item, messages: Sequence[Message]) -> None:
        """Keep an exchange, whose messages are given, as it is."""
        self._pay(item, self.price_of_whole(item))
        self.whole.add(item.messages)
        self.cover(messages)

    def cover(self, messages: Sequence[Message]) -> None:
        """Count the identifiers of messages that stay whole."""
        self._mention(identifiers_of(m for m in messages if m.role == "assistant"))
        self._show(identifiers_of(m for m in messages if m.role != "assistant"))

    def take_lines(self) -> None:
        """Take lines by value per token until the room is spent or nothing new is left, as the module says."""
        items, lines_by_item = self._valued_items.items, self._valued_items.lines_by_item
        heap: list[tuple[float, int, int]] = []
        for n, item in enumerate(items):
            if item.messages not in self.whole:
                heap += self._weighed(n)
        heapq.heapify(heap)
        refused = 0
        while heap and refused < REFUSALS:
            queued, n, k = heapq.heappop(heap)
            item, line = items[n], lines_by_item[n][k]
            unopened = item.messages not in self._opened
            density = self._value_per_token(line, item, self._sum(item.identifiers) if unopened else 0.0, unopened=unopened)
            if density <= 0 or self._has(line):
                continue
            if density < -queued * FALLEN:
                heapq.heappush(heap, (-density, n, k))
            elif not self._take(item, line.source, line.line, line.names):
                refused += 1
            elif unopened:
                for again in self._weighed(n):
                    heapq.heappush(heap, again)

    def fill(self, item: Item, *, may_open: bool) -> None:
        """Take what still fits of an exchange's lines, first to last, whatever their value."""
        unopened = item.messages not in self._opened
        if item.messages in self.whole or (unopened and (not may_open or not item.sources)):
            return
        for source in item.sources if self.room_tokens > 0 else ():
            for line in range(len(source.segments.spans)):
                if line not in self._lines.get(source.position, ()) and not self._take(item, source, line, ()):
                    return

    def selection(self) -> Selection:
        """Return what has been taken."""
        return Selection(
            frozenset(self.whole),
            frozenset(self._opened - self.whole),
            {position: frozenset(lines) for position, lines in self._lines.items()},
        )

    def _weighed(self, n: int) -> list[tuple[float, int, int]]:
        """Return the lines of an exchange as entries of the heap: value per token (negative), exchange and line."""
        item = self._valued_items.items[n]
        unopened = item.messages not in self._opened
        carried = self._sum(item.identifiers) if unopened else 0.0
        weighed = (
            (self._value_per_token(line, item, carried, unopened=unopened), k)
            for k, line in enumerate(self._valued_items.lines_by_item[n])
        )
        return [(-density, n, k) for density, k in weighed if density > 0]

    def _value_per_token(self, line: ValuedLine, item: Item, carried: float, *, unopened: bool) -> float:
        """Return the value per token of a line now, with what opening its exchange carries; 0 if it adds nothing."""
        factor = 1.0 + RECENCY_VALUE * item.recency
        if line.source is None:
            return factor * carried / item.frame_tokens
        value = self._sum(line.names) + line.bonus
        if value <= 0:
            return 0.0
        return factor * (value + carried) / (line.tokens + (item.frame_tokens if unopened else 0.0))

    def _sum(self, names: Iterable[str]) -> float:
        return sum(map(self._values.__getitem__, names))

    def _has(self, line: ValuedLine) -> bool:
        return line.source is not None and line.line in self._lines.get(line.source.position, ())

    def _take(self, item: Item, source: Source | None, line: int, names: Iterable[str]) -> bool:
        """Pay for a line, and for the frame if that is still to pay; False when the room does not hold it."""
        price = item.frame_tokens if item.messages not in self._opened else 0.0
        tokens = 0.0
        if source is not None:
            start, end = source.segments.spans[line]
            tokens = self._count(source.text[start:end]) + GAP_TOKENS
        if price + tokens > self.room_tokens:
            return False
        self.open(item)
        if source is not None:
            self._pay(item, tokens)
            self._lines.setdefault(source.position, set()).add(line)
            self._show(names)
        return True

    def _mention(self, names: Iterable[str]) -> None:
        """Lower the value of what the assistant is seen to name: its name is there, but not where it comes from."""
        values = self._values
        for name in names:
            if values.get(name, 0.0) > SEEN_VALUE:
                values[name] = SEEN_VALUE

    def _show(self, names: Iterable[str]) -> None:
        self._values.update(dict.fromkeys(names, 0.0))

    def _pay(self, item: Item, tokens: float) -> None:
        self.room_tokens -= tokens
        self._spent[item.messages] = self._spent.get(item.messages, 0.0) + tokens
