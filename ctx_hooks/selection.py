"""Which older exchanges, and which of their lines, are worth their tokens.

Two sources say what a later step will need. Identifiers: a line is worth those that stand nowhere else in what is kept,
and the ones the assistant has used before count more. Relevance to the newest request: lines by the rare words they
share with it, plain dialogue by rank. The choice is greedy by worth per token; an exchange pays for its frame once.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

from ctx_hooks import relevance
from ctx_hooks.candidates import Candidate, Position, Source, candidates, identifiers_of
from ctx_hooks.protection import protected
from ctx_hooks.tokens.window import keep_recent_tokens_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from collections.abc import Set as AbstractSet

    from ctx_hooks.budget import Budget
    from ctx_hooks.conversation import Conversation, Message
    from ctx_hooks.tokens.counter import Counter

USED_WORTH = 8.0
"""What an identifier that the assistant has used is worth over one that only appeared."""
REQUEST_WORTH = 2.0
"""What the line that fits the newest request best is worth in identifiers."""
RECENCY_WORTH = 0.5
"""How much more a line of just now is worth than the same line of long ago."""
DIALOGUE_RECENT_FRACTION = 0.05
"""Share of the room in which plain dialogue keeps its newest turns: what a question is about may stand anywhere."""
REFUSALS = 50
"""After so many offers that the room no longer holds it counts as spent."""
GAP_TOKENS = 1.5
"""What the mark between two kept lines costs."""

_Offer: TypeAlias = tuple[float, int, int, int, frozenset[str]]
"""Worth per token (negative, for the heap), the indices of candidate, source (-1: the frame alone) and line, and the
identifiers that it brings."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The older exchanges that stay whole, those that stay with some lines, and these lines; the rest goes."""

    whole: frozenset[range]
    thinned: frozenset[range]
    lines: Mapping[Position, frozenset[int]]


class Selector:
    """Selects from one conversation, as often as asked with another room."""

    def __init__(self, conversation: Conversation, budget: Budget) -> None:
        self.candidates = candidates(conversation, budget)
        self._budget = budget
        self._conversation = conversation
        self._protected = [conversation.messages[i] for i in protected(conversation)]
        self._used = identifiers_of(m for m in conversation.messages if m.role == "assistant")

    def select(self, room_tokens: float, *, may_remove: bool) -> Selection:
        """Return the choice for about `room_tokens`; without `may_remove` every exchange keeps at least its frame."""
        choice = _Choice(self.candidates, room_tokens, self._used, self._budget.counter)
        choice.cover(self._protected)
        if not may_remove:
            for candidate in self.candidates:
                choice.open(candidate)
        share = self._dialogue_share() if may_remove else 0.0
        recent = self._recent_fraction() * (1 - share) + DIALOGUE_RECENT_FRACTION * share
        self._keep_newest(choice, down_to=room_tokens * (1 - recent))
        self._keep_relevant_dialogue(choice, share)
        choice.take_lines()
        self._keep_newest(choice, down_to=0)
        for candidate in reversed(self.candidates):
            choice.fill(candidate, may_open=may_remove)
        return choice.selection()

    def _keep_newest(self, choice: _Choice, down_to: float) -> None:
        """Keep the newest exchanges whole, one after another, while the room stays above `down_to`."""
        for candidate in reversed(self.candidates):
            if choice.room - choice.price_of_whole(candidate) < down_to:
                return
            choice.take_whole(candidate, [self._conversation.messages[i] for i in candidate.messages])

    def _recent_fraction(self) -> float:
        goal = self._budget.goal_tokens
        return keep_recent_tokens_of(goal, self._budget.policy) / max(1, goal)

    def _dialogue_share(self) -> float:
        """Return how much of the older exchanges is plain dialogue."""
        spoken = sum(c.whole_tokens for c in self.candidates if c.spoken)
        return spoken / max(1.0, sum(c.whole_tokens for c in self.candidates))

    def _keep_relevant_dialogue(self, choice: _Choice, share: float) -> None:
        """Keep the turns of plain dialogue that fit the newest request best, in a `share` of the room."""
        spoken = [c for c in self.candidates if c.spoken]
        request = self._conversation.newest_request
        if request is None or not spoken or not share:
            return
        down_to = choice.room * (1 - share)
        texts = [" ".join(self._conversation.messages[i].text for i in c.messages) for c in spoken]
        query = relevance.terms(self._conversation.messages[request].text)
        scores = relevance.rank(query, [relevance.terms(t) for t in texts])
        for n in sorted(range(len(spoken)), key=lambda n: (-scores[n], -n)):
            if scores[n] <= 0:
                return
            if spoken[n].messages in choice.whole or spoken[n].sources:
                continue
            if choice.room - choice.price_of_whole(spoken[n]) >= down_to:
                choice.take_whole(spoken[n], [self._conversation.messages[i] for i in spoken[n].messages])


class _Choice:
    """A choice in the making. `room` is what is left, in tokens."""

    def __init__(self, found: tuple[Candidate, ...], room_tokens: float, used: set[str], counter: Counter) -> None:
        self.room = room_tokens
        self.whole: set[range] = set()
        self._candidates = found
        self._covered: set[str] = set()
        self._mentioned: set[str] = set()
        self._used = used
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
        heap = [
            offer for n, c in enumerate(self._candidates) if c.messages not in self.whole for offer in self._offers(n, c)
        ]
        heapq.heapify(heap)
        refused = 0
        while heap and refused < REFUSALS:
            offered, n, s, line, names = heapq.heappop(heap)
            candidate = self._candidates[n]
            source = candidate.sources[s] if s >= 0 else None
            value = self._value(candidate, source, line, names)
            if value <= 0:
                continue
            if value < -offered * (1 - 1e-9):
                heapq.heappush(heap, (-value, n, s, line, names))
                continue
            opened_before = candidate.messages in self._opened
            if not self._take(candidate, source, line, names):
                refused += 1
            elif not opened_before:
                for offer in self._offers(n, candidate):
                    heapq.heappush(heap, offer)

    def fill(self, candidate: Candidate, *, may_open: bool) -> None:
        """Take what still fits of an exchange's lines, first to last, whatever they are worth."""
        unopened = candidate.messages not in self._opened
        if candidate.messages in self.whole or (unopened and (not may_open or not candidate.sources)):
            return
        for source in candidate.sources if self.room > 0 else ():
            for line in range(len(source.units.spans)):
                if line not in self._lines.get(source.position, ()) and not self._take(candidate, source, line, frozenset()):
                    return

    def selection(self) -> Selection:
        """Return the finished choice."""
        return Selection(
            frozenset(self.whole),
            frozenset(self._opened - self.whole),
            {position: frozenset(lines) for position, lines in self._lines.items()},
        )

    def _offers(self, n: int, candidate: Candidate) -> list[_Offer]:
        """Return what the exchange has to offer now: its frame alone, and each line that brings something."""
        offers: list[_Offer] = []
        factor = 1.0 + RECENCY_WORTH * candidate.recency
        carried_worth = carried_tokens = 0.0
        if candidate.messages not in self._opened:
            carried_worth, carried_tokens = self._worth(candidate.identifiers), candidate.frame_tokens
            if carried_worth > 0:
                offers.append((-factor * carried_worth / carried_tokens, n, -1, 0, candidate.identifiers))
        for s, source in enumerate(candidate.sources):
            spans, per_char, relevant = source.units.spans, source.tokens_per_char, source.relevance
            for line, names in source.entries:
                worth = self._worth(names) + REQUEST_WORTH * relevant.get(line, 0.0)
                if worth > 0:
                    tokens = (spans[line][1] - spans[line][0]) * per_char + GAP_TOKENS
                    offers.append((-factor * (worth + carried_worth) / (tokens + carried_tokens), n, s, line, names))
        return offers

    def _value(self, candidate: Candidate, source: Source | None, line: int, names: frozenset[str]) -> float:
        """Return what an offer is worth per token now, 0 when it is taken already."""
        unopened = candidate.messages not in self._opened
        factor = 1.0 + RECENCY_WORTH * candidate.recency
        carried = self._worth(candidate.identifiers) if unopened else 0.0
        if source is None:
            return factor * carried / candidate.frame_tokens
        if line in self._lines.get(source.position, ()):
            return 0.0
        start, end = source.units.spans[line]
        worth = self._worth(names) + REQUEST_WORTH * source.relevance.get(line, 0.0)
        tokens = (end - start) * source.tokens_per_char + GAP_TOKENS + (candidate.frame_tokens if unopened else 0.0)
        return factor * (worth + carried) / tokens if worth > 0 else 0.0

    def _take(self, candidate: Candidate, source: Source | None, line: int, names: frozenset[str]) -> bool:
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

    def _mention(self, names: AbstractSet[str]) -> None:
        self._mentioned |= names - self._covered
        self._covered |= names

    def _show(self, names: AbstractSet[str]) -> None:
        self._mentioned -= names
        self._covered |= names

    def _worth(self, names: frozenset[str]) -> float:
        """Return what identifiers are worth that nothing shows yet; what the assistant mentioned counts as merely seen."""
        new = names - self._covered
        worth = len(new) + USED_WORTH * len(new & self._used) if new else 0.0
        return worth + len(names & self._mentioned)

    def _pay(self, candidate: Candidate, tokens: float) -> None:
        self.room -= tokens
        self._spent[candidate.messages] = self._spent.get(candidate.messages, 0.0) + tokens
