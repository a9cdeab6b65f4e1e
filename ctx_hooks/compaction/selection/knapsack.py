"""A greedy choice of older exchanges and their lines within a room, by worth per token."""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from ctx_hooks.compaction.selection.scoring import Candidate, Position, Source, identifiers_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from ctx_hooks.conversation.model import Message
    from ctx_hooks.tokens.counter import Counter

SEEN_WORTH = 1.0
"""What an identifier is worth that nothing kept shows yet."""
USED_WORTH = 9.0
"""What it is worth when the assistant has used it, until a kept call or answer of the assistant names it."""
REQUEST_WORTH = 2.0
"""What the line that fits the newest request best is worth in identifiers."""
RECENCY_WORTH = 0.5
"""How much more a line of just now is worth than the same line of long ago."""
REFUSALS = 50
"""After so many offers that the room no longer holds it counts as spent."""
GAP_TOKENS = 1.5
"""What the mark between two kept lines costs."""
FALLEN = 1 - 1e-9
"""An offer that comes up with less than this of what it was offered for is weighed again."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The older exchanges that stay whole, those that stay with some lines, and these lines; the rest goes."""

    whole: frozenset[range]
    thinned: frozenset[range]
    lines: Mapping[Position, frozenset[int]]


class Offer(NamedTuple):
    """A line of an exchange, or without a source the exchange's frame alone: what it brings and about what it costs."""

    candidate: int
    source: Source | None
    line: int
    names: tuple[str, ...]
    bonus: float
    tokens: float


@dataclass(frozen=True, slots=True)
class Offers:
    """Everything that could be kept, by exchange, and what each identifier in it is worth at first."""

    candidates: tuple[Candidate, ...]
    by_candidate: tuple[tuple[Offer, ...], ...]
    worth: Mapping[str, float]


def offers_of(candidates: tuple[Candidate, ...], used: AbstractSet[str]) -> Offers:
    """Return the offers of the candidates; `used` are the identifiers that the assistant has used."""
    worth: dict[str, float] = {}
    for candidate in candidates:
        worth.update(dict.fromkeys(candidate.identifiers, SEEN_WORTH))
        for source in candidate.sources:
            worth.update(dict.fromkeys(source.units.identifiers, SEEN_WORTH))
    worth.update(dict.fromkeys(used & worth.keys(), USED_WORTH))
    return Offers(candidates, tuple(tuple(_offers(n, c)) for n, c in enumerate(candidates)), worth)


def _offers(n: int, candidate: Candidate) -> Iterable[Offer]:
    yield Offer(n, None, 0, (), 0.0, 0.0)
    for source in candidate.sources:
        spans, per_char, relevance = source.units.spans, source.tokens_per_char, source.relevance
        for line, names in source.entries:
            start, end = spans[line]
            tokens = (end - start) * per_char + GAP_TOKENS
            yield Offer(n, source, line, names, REQUEST_WORTH * relevance.get(line, 0.0), tokens)


class Choice:
    """A choice in the making. `room` is what is left, in tokens."""

    def __init__(self, offers: Offers, room_tokens: float, counter: Counter) -> None:
        self.room = room_tokens
        self.whole: set[range] = set()
        self._offers = offers
        self._worth = dict(offers.worth)
        self._count = counter.text
        self._opened: set[range] = set()
        self._lines: dict[Position, set[int]] = {}
        self._spent: dict[range, float] = {}

    def open(self, candidate: Candidate) -> None:
        """Pay for the frame of an exchange."""
        if candidate.messages not in self._opened:
            self._opened.add(candidate.messages)
            self._pay(candidate, candidate.frame_tokens)
            self._mention(candidate.identifiers)

    def price_of_whole(self, candidate: Candidate) -> float:
        """Return what is still to pay for the whole exchange."""
        if candidate.messages in self.whole:
            return 0.0
        return candidate.whole_tokens - self._spent.get(candidate.messages, 0.0)

    def take_whole(self, candidate: Candidate, messages: Sequence[Message]) -> None:
        """Keep an exchange, whose messages are given, as it is."""
        self._pay(candidate, self.price_of_whole(candidate))
        self.whole.add(candidate.messages)
        self.cover(messages)

    def cover(self, messages: Sequence[Message]) -> None:
        """Count the identifiers of messages that stay whole."""
        self._mention(identifiers_of(m for m in messages if m.role == "assistant"))
        self._show(identifiers_of(m for m in messages if m.role != "assistant"))

    def take_lines(self) -> None:
        """Take lines by worth per token until the room is spent or nothing new is left.

        Worth only falls while others are taken, so an offer is weighed again when it comes to the top of the heap. An
        exchange that was just opened offers its lines anew: they no longer carry its frame.
        """
        candidates, by_candidate = self._offers.candidates, self._offers.by_candidate
        heap: list[tuple[float, int, int]] = []
        for n, candidate in enumerate(candidates):
            if candidate.messages not in self.whole:
                heap += self._weighed(n)
        heapq.heapify(heap)
        refused = 0
        while heap and refused < REFUSALS:
            offered, n, k = heapq.heappop(heap)
            candidate, offer = candidates[n], by_candidate[n][k]
            unopened = candidate.messages not in self._opened
            value = self._value(offer, candidate, self._sum(candidate.identifiers) if unopened else 0.0, unopened=unopened)
            if value <= 0 or self._has(offer):
                continue
            if value < -offered * FALLEN:
                heapq.heappush(heap, (-value, n, k))
            elif not self._take(candidate, offer.source, offer.line, offer.names):
                refused += 1
            elif unopened:
                for again in self._weighed(n):
                    heapq.heappush(heap, again)

    def fill(self, candidate: Candidate, *, may_open: bool) -> None:
        """Take what still fits of an exchange's lines, first to last, whatever they are worth."""
        unopened = candidate.messages not in self._opened
        if candidate.messages in self.whole or (unopened and (not may_open or not candidate.sources)):
            return
        for source in candidate.sources if self.room > 0 else ():
            for line in range(len(source.units.spans)):
                if line not in self._lines.get(source.position, ()) and not self._take(candidate, source, line, ()):
                    return

    def selection(self) -> Selection:
        """Return the finished choice."""
        return Selection(
            frozenset(self.whole),
            frozenset(self._opened - self.whole),
            {position: frozenset(lines) for position, lines in self._lines.items()},
        )

    def _weighed(self, n: int) -> list[tuple[float, int, int]]:
        """Return what the exchange has to offer now, as entries of the heap: value (negative), exchange and offer."""
        candidate = self._offers.candidates[n]
        unopened = candidate.messages not in self._opened
        carried = self._sum(candidate.identifiers) if unopened else 0.0
        weighed = (
            (self._value(o, candidate, carried, unopened=unopened), k) for k, o in enumerate(self._offers.by_candidate[n])
        )
        return [(-value, n, k) for value, k in weighed if value > 0]

    def _value(self, offer: Offer, candidate: Candidate, carried: float, *, unopened: bool) -> float:
        """Return what an offer is worth per token now, with what opening its exchange carries, 0 if it brings nothing."""
        factor = 1.0 + RECENCY_WORTH * candidate.recency
        if offer.source is None:
            return factor * carried / candidate.frame_tokens
        worth = self._sum(offer.names) + offer.bonus
        if worth <= 0:
            return 0.0
        return factor * (worth + carried) / (offer.tokens + (candidate.frame_tokens if unopened else 0.0))

    def _sum(self, names: Iterable[str]) -> float:
        return sum(map(self._worth.__getitem__, names))

    def _has(self, offer: Offer) -> bool:
        return offer.source is not None and offer.line in self._lines.get(offer.source.position, ())

    def _take(self, candidate: Candidate, source: Source | None, line: int, names: Iterable[str]) -> bool:
        """Pay for a line, and for the frame if that is still to pay; False when the room does not hold it."""
        price = candidate.frame_tokens if candidate.messages not in self._opened else 0.0
        tokens = 0.0
        if source is not None:
            start, end = source.units.spans[line]
            tokens = self._count(source.text[start:end]) + GAP_TOKENS
        if price + tokens > self.room:
            return False
        self.open(candidate)
        if source is not None:
            self._pay(candidate, tokens)
            self._lines.setdefault(source.position, set()).add(line)
            self._show(names)
        return True

    def _mention(self, names: Iterable[str]) -> None:
        """Lower the worth of what the assistant is seen to name: its name is there, but not where it comes from."""
        worth = self._worth
        for name in names:
            if worth.get(name, 0.0) > SEEN_WORTH:
                worth[name] = SEEN_WORTH

    def _show(self, names: Iterable[str]) -> None:
        self._worth.update(dict.fromkeys(names, 0.0))

    def _pay(self, candidate: Candidate, tokens: float) -> None:
        self.room -= tokens
        self._spent[candidate.messages] = self._spent.get(candidate.messages, 0.0) + tokens
