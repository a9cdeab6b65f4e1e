"""Which older exchanges, and which of their lines, are worth their tokens.

Two sources say what a later step will need. Identifiers: a line is worth those that stand nowhere else in what is kept,
and the ones the assistant has used before count more. Relevance to the newest request: lines by the rare words they
share with it, plain dialogue by rank. The choice is greedy by worth per token; an exchange pays for its frame once.
"""

from __future__ import annotations

import heapq
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ctx_hooks import relevance
from ctx_hooks.candidates import Candidate, Line, Position, candidates, identifiers_of
from ctx_hooks.protection import protected

if TYPE_CHECKING:
    from ctx_hooks.budget import Budget
    from ctx_hooks.conversation import Conversation

USED_WORTH = 3.0
"""What an identifier that the assistant has used is worth over one that only appeared."""
REQUEST_WORTH = 2.0
"""What the line that fits the newest request best is worth in identifiers."""
RECENCY_WORTH = 1.0
"""How much more a line of just now is worth than the same line of long ago."""
LEAST_DIALOGUE_FRACTION = 0.1
MOST_DIALOGUE_FRACTION = 0.9


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
        self._stay = identifiers_of(conversation.messages[i] for i in protected(conversation))
        self._used = identifiers_of(conversation.messages, spoken_by_assistant=True)

    def select(self, room_tokens: float, *, may_remove: bool) -> Selection:
        """Return the choice for about `room_tokens`; without `may_remove` every exchange keeps at least its frame."""
        choice = _Choice(room_tokens, set(self._stay), self._used)
        if not may_remove:
            for candidate in self.candidates:
                choice.open(candidate)
        recent_tokens = room_tokens * self._budget.policy.keep_recent_fraction
        self._keep_newest(choice, down_to=room_tokens - recent_tokens)
        if may_remove:
            self._keep_relevant_dialogue(choice)
        choice.take_lines(self.candidates)
        self._keep_newest(choice, down_to=0)
        for candidate in reversed(self.candidates):
            choice.fill(candidate, may_open=may_remove)
        return choice.selection()

    def _keep_newest(self, choice: _Choice, down_to: float) -> None:
        """Keep the newest exchanges whole, one after another, while the room stays above `down_to`."""
        for candidate in reversed(self.candidates):
            if choice.room - choice.price_of_whole(candidate) < down_to:
                return
            choice.take_whole(candidate, identifiers_of(self._conversation.messages[i] for i in candidate.messages))

    def _keep_relevant_dialogue(self, choice: _Choice) -> None:
        """Keep the turns of plain dialogue that fit the newest request best, in a share of the room that fits their share."""
        spoken = [c for c in self.candidates if c.spoken and c.messages not in choice.whole]
        request = self._conversation.newest_request
        if request is None or not spoken:
            return
        everything = sum(c.whole_tokens for c in self.candidates if c.messages not in choice.whole)
        share = sum(c.whole_tokens for c in spoken) / everything
        share = min(MOST_DIALOGUE_FRACTION, max(LEAST_DIALOGUE_FRACTION, share))
        down_to = choice.room * (1 - share)
        texts = [" ".join(self._conversation.messages[i].text for i in c.messages) for c in spoken]
        scores = relevance.rank(
            relevance.terms(self._conversation.messages[request].text), [relevance.terms(t) for t in texts]
        )
        for score, _, candidate in sorted(
            zip(scores, range(len(spoken)), spoken, strict=True), key=lambda s: (-s[0], -s[1])
        ):
            if score <= 0:
                return
            if not candidate.lines and choice.room - choice.price_of_whole(candidate) >= down_to:
                choice.take_whole(candidate, candidate.identifiers)


class _Choice:
    """A choice in the making."""

    def __init__(self, room_tokens: float, covered: set[str], used: set[str]) -> None:
        self.room = room_tokens
        self.whole: set[range] = set()
        self._covered = covered
        self._used = used
        self._opened: set[range] = set()
        self._lines: dict[Position, set[int]] = {}
        self._spent: dict[range, float] = {}

    def open(self, candidate: Candidate) -> None:
        """Pay for the frame of an exchange."""
        if candidate.messages not in self._opened:
            self._opened.add(candidate.messages)
            self._pay(candidate.messages, candidate.frame_tokens)
            self._covered |= candidate.identifiers

    def price_of_whole(self, candidate: Candidate) -> float:
        """Return what is still to pay for the whole exchange."""
        return (
            candidate.whole_tokens - self._spent.get(candidate.messages, 0.0)
            if candidate.messages not in self.whole
            else 0.0
        )

    def take_whole(self, candidate: Candidate, named: frozenset[str] | set[str]) -> None:
        """Keep an exchange as it is."""
        self._pay(candidate.messages, self.price_of_whole(candidate))
        self.whole.add(candidate.messages)
        self._covered |= named

    def take_lines(self, candidates: tuple[Candidate, ...]) -> None:
        """Take lines by worth per token until the room is spent or nothing new is left.

        Worth only falls while others are taken, so a line is priced again when it comes to the top of the heap.
        """
        rest = [c for c in candidates if c.messages not in self.whole]
        heap = [entry for n, c in enumerate(rest) for entry in self._offers(n, c)]
        heapq.heapify(heap)
        while heap and self.room > 0:
            offered, n, k = heapq.heappop(heap)
            candidate = rest[n]
            line = candidate.lines[k] if k >= 0 else None
            worth, cost = self._value(candidate, line)
            if worth <= 0:
                continue
            if -worth / cost > offered + 1e-9:
                heapq.heappush(heap, (-worth / cost, n, k))
                continue
            if cost > self.room:
                continue
            unopened = candidate.messages not in self._opened
            self.open(candidate)
            if line is not None:
                self._pay(candidate.messages, line.cost_tokens)
                self._covered |= line.identifiers
                self._lines.setdefault(line.position, set()).add(line.index)
            if unopened:
                # Its other lines got cheaper: they no longer carry the frame.
                for entry in self._offers(n, candidate):
                    heapq.heappush(heap, entry)

    def fill(self, candidate: Candidate, *, may_open: bool) -> None:
        """Take what still fits of an exchange's lines, first to last, whatever they are worth."""
        opened = candidate.messages in self._opened
        if candidate.messages in self.whole or not (opened or may_open):
            return
        if not opened:
            if candidate.frame_tokens > self.room or not candidate.lines:
                return
            self.open(candidate)
        for line in candidate.lines:
            if line.cost_tokens > self.room:
                return
            taken = self._lines.setdefault(line.position, set())
            if line.index not in taken:
                taken.add(line.index)
                self._pay(candidate.messages, line.cost_tokens)

    def selection(self) -> Selection:
        """Return the finished choice."""
        return Selection(
            frozenset(self.whole),
            frozenset(self._opened - self.whole),
            {position: frozenset(lines) for position, lines in self._lines.items()},
        )

    def _offers(self, n: int, candidate: Candidate) -> list[tuple[float, int, int]]:
        offers = []
        for k in range(-1, len(candidate.lines)):
            worth, cost = self._value(candidate, candidate.lines[k] if k >= 0 else None)
            if worth > 0:
                offers.append((-worth / cost, n, k))
        return offers

    def _value(self, candidate: Candidate, line: Line | None) -> tuple[float, float]:
        """Return worth and cost of a line, with its frame if that is not paid yet; of the frame alone without a line."""
        opened = candidate.messages in self._opened
        recency = 1.0 + RECENCY_WORTH * candidate.recency
        if line is None:
            return (0.0, 1.0) if opened else (recency * self._worth(candidate.identifiers), candidate.frame_tokens)
        if line.index in self._lines.get(line.position, ()):
            return 0.0, 1.0
        if opened:
            worth, cost = self._worth(line.identifiers), line.cost_tokens
        else:
            worth = self._worth(line.identifiers | candidate.identifiers)
            cost = line.cost_tokens + candidate.frame_tokens
        return recency * (worth + REQUEST_WORTH * line.relevance), cost

    def _worth(self, named: frozenset[str]) -> float:
        new = named - self._covered
        return len(new) + USED_WORTH * len(new & self._used) if new else 0.0

    def _pay(self, messages: range, tokens: float) -> None:
        self.room -= tokens
        self._spent[messages] = self._spent.get(messages, 0.0) + tokens
