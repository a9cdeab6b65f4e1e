"""Selection of the older exchanges, and of segments of their results, with the most value for their tokens.

The newest exchanges stay whole, up to a share of the room. Exchanges before them keep their frame, up to another share, and
the segments of their results that name the most. Older exchanges go, except answers. Plain dialogue is ranked by relevance.
"""

from bisect import bisect_right
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate, takewhile

from ctx_hooks.compaction.selection import bm25
from ctx_hooks.compaction.selection.answers import answers
from ctx_hooks.compaction.selection.order import Row, rows_of
from ctx_hooks.compaction.selection.scoring import items_of
from ctx_hooks.compaction.selection.user_words import Position, asks, free_tokens, user_words
from ctx_hooks.conversation.conversation import Conversation
from ctx_hooks.conversation.model import Message, Text, ToolCall
from ctx_hooks.texts.identifiers import identifiers
from ctx_hooks.tokens.budget import Budget, keep_recent_tokens_of

DIALOGUE_RECENT_FRACTION = 0.05
"""Share of the room for the newest turns of plain dialogue: any turn may contain the answer to a question."""
FRAMES_FRACTION = 0.5
"""Share of the room for the frames of exchanges."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The kept parts of the older exchanges; the rest goes.

    Attributes:
        whole: exchanges that stay unchanged, each as the range of its messages.
        shortened: exchanges that keep their frame and some of their lines.
        lines: the numbers of the kept lines of shortened exchanges, by position of their part.
    """

    whole: frozenset[range]
    shortened: frozenset[range]
    lines: Mapping[Position, frozenset[int]]


class Selector:
    """Selects from one conversation; it computes once everything that does not depend on the room.

    With `newest_first` the newest exchanges stay, whatever the value of older ones: for use beside a model's summary.
    """

    def __init__(self, conversation: Conversation, budget: Budget, *, newest_first: bool = False) -> None:
        self._newest_first = newest_first
        self.words = {**user_words(conversation, budget), **({} if newest_first else answers(conversation, budget))}
        self.items = items_of(conversation, budget, self.words)
        self.free_tokens = free_tokens(conversation, budget)
        self._budget = budget
        self._conversation = conversation
        self._stay = frozenset(n for n, item in enumerate(self.items) if item.is_answer)
        self._orders: dict[float, tuple[tuple[int, ...], tuple[int, ...], list[Row]]] = {}

    def within(self, room_tokens: float, planned_tokens: float) -> Selection:
        """Return the selection that fits a room by estimate; the frames of exchanges that must stay may exceed it.

        The order of selection is computed once for each `planned_tokens`, about the size of the room.
        """
        if self._newest_first:
            return self._newest_within(room_tokens)
        if planned_tokens not in self._orders:
            self._orders[planned_tokens] = self._order(planned_tokens)
        kept_first, frames, rows = self._orders[planned_tokens]
        paid_tokens = [item.frame_tokens if n in self._stay else 0.0 for n, item in enumerate(self.items)]
        room_tokens -= sum(paid_tokens)
        whole: set[int] = set()
        for n in kept_first:
            price = self.items[n].whole_tokens - paid_tokens[n]
            if price > room_tokens:
                return self._selection(whole, paid_tokens, {})
            whole.add(n)
            room_tokens -= price
        for n in frames:
            if self.items[n].frame_tokens > room_tokens:
                break
            paid_tokens[n] = self.items[n].frame_tokens
            room_tokens -= paid_tokens[n]
        taken: dict[Position, set[int]] = {}
        for row in rows:
            if paid_tokens[row.item] and row.tokens <= room_tokens:
                room_tokens -= row.tokens
                paid_tokens[row.item] += row.tokens
                taken.setdefault(row.position, set()).add(row.segment)
        self._fill(room_tokens, whole, paid_tokens, taken)
        return self._selection(whole, paid_tokens, taken)

    def _fill(self, room_tokens: float, whole: set[int], paid_tokens: list[float], taken: dict[Position, set[int]]) -> None:
        """Fill the rest of the room, newest first, at any value: with whole exchanges, else the first lines of their texts.

        An exchange without a frame stays whole or goes, and so do those before it.
        """
        for n in reversed(range(len(self.items))) if room_tokens > 0 else ():
            item = self.items[n]
            if n in whole:
                continue
            if item.whole_tokens - paid_tokens[n] <= room_tokens:
                whole.add(n)
                room_tokens -= item.whole_tokens - paid_tokens[n]
                continue
            if not paid_tokens[n]:
                return
            for source, line, span in ((s, line, span) for s in item.sources for line, span in enumerate(s.segments.spans)):
                if line in taken.get(source.position, ()):
                    continue
                price = source.tokens(span)
                if price > room_tokens:
                    break
                taken.setdefault(source.position, set()).add(line)
                room_tokens -= price

    def _selection(self, whole: set[int], paid_tokens: list[float], taken: Mapping[Position, set[int]]) -> Selection:
        opened = {n for n, tokens in enumerate(paid_tokens) if tokens > 0}
        return Selection(
            frozenset(self.items[n].messages for n in whole),
            frozenset(self.items[n].messages for n in opened - whole),
            {position: frozenset(lines) for position, lines in taken.items()},
        )

    def _newest_within(self, room_tokens: float) -> Selection:
        """Return the newest exchanges that fit `room_tokens` whole, and the fitting part of one more; the first goes."""
        n = len(self.items)
        while n and self.items[n - 1].whole_tokens <= room_tokens:
            n -= 1
            room_tokens -= self.items[n].whole_tokens
        whole = frozenset(item.messages for item in self.items[n:])
        parted = self.items[n - 1] if n > 1 else None
        if parted is None or parted.frame_tokens > room_tokens:
            return Selection(whole, frozenset(), {})
        room_tokens -= parted.frame_tokens
        lines: dict[Position, frozenset[int]] = {}
        for source in parted.sources:
            ends = list(accumulate(map(source.tokens, source.segments.spans), initial=0.0))
            held = bisect_right(ends, room_tokens) - 1
            room_tokens -= ends[held]
            lines[source.position] = frozenset(range(held))
        return Selection(whole, frozenset({parted.messages}), lines)

    def _order(self, room_tokens: float) -> tuple[tuple[int, ...], tuple[int, ...], list[Row]]:
        """Return the exchanges to keep whole first, those that keep their frame, and the lines of these in order."""
        spoken_tokens = sum(item.whole_tokens for item in self.items if item.spoken)
        share = spoken_tokens / max(1.0, sum(item.whole_tokens for item in self.items))
        goal_tokens = self._budget.goal_tokens
        usual = keep_recent_tokens_of(goal_tokens, self._budget.policy) / max(1, goal_tokens)
        recent = usual * (1 - share) + DIALOGUE_RECENT_FRACTION * share if asks(self._conversation) else usual
        prices = {n: item.whole_tokens for n, item in enumerate(self.items)}
        newest = _newest(prices, room_tokens)
        if len(newest) < len(self.items):
            newest = _newest(prices, room_tokens * recent)
        whole = (*newest, *self._relevant_dialogue(room_tokens * (1 - recent) * share, besides=newest))
        there = self._stay.union(whole)
        frames = _newest(
            {n: i.frame_tokens for n, i in enumerate(self.items) if n not in there}, room_tokens * FRAMES_FRACTION
        )
        return whole, frames, self._rows(whole, there.union(frames))

    def _relevant_dialogue(self, room_tokens: float, besides: Sequence[int]) -> Iterator[int]:
        """Yield the turns of plain dialogue that fit the newest request best, up to the room, best first.

        A long turn is mostly a report, code or a pasted file: it keeps some lines. If a user asks a question and no tool was
        used, long turns stay whole: 0.52 of the evidence instead of 0.35 (QMSum, at a quarter of the tokens).
        """
        may_be_long = asks(self._conversation) and all(item.spoken for item in self.items)
        for n in self._ranked_dialogue if room_tokens > 0 else ():
            item = self.items[n]
            if (
                n not in besides
                and not self._is_recorded(n)
                and (may_be_long or not item.sources)
                and item.whole_tokens <= room_tokens
            ):
                room_tokens -= item.whole_tokens
                yield n

    def _is_recorded(self, n: int) -> bool:
        """Whether all words of an exchange always stay, in their place or in the record."""
        texts = ((i, k, part) for i in self.items[n].messages for k, part in enumerate(self._conversation.messages[i].parts))
        return all(isinstance(part, Text) and self.words.get((i, k)) == ((0, len(part.text)),) for i, k, part in texts)

    @cached_property
    def _ranked_dialogue(self) -> tuple[int, ...]:
        """The turns of plain dialogue that fit the newest request at all, best first."""
        request = self._conversation.newest_request
        spoken = [n for n, item in enumerate(self.items) if item.spoken]
        if request is None or not spoken:
            return ()
        asked = self._conversation.messages[request].text
        texts = [" ".join(m.text for m in self._messages(n)) for n in spoken]
        scores = bm25.rank(asked, texts, bm25.remembered_hashes_of).tolist()
        newest = {text: n for text, n in zip(texts, spoken, strict=True) if text != asked}
        ranked = sorted(zip(scores, spoken, texts, strict=True), reverse=True)
        return tuple(n for score, n, text in ranked if score > 0 and newest.get(text) == n)

    def _messages(self, n: int) -> list[Message]:
        return [self._conversation.messages[i] for i in self.items[n].messages]

    def _rows(self, whole: Collection[int], framed: Collection[int]) -> list[Row]:
        """Return the segments of the `framed` exchanges in their order."""
        said = (m for m in reversed(self._conversation.messages) if m.role == "assistant")
        texts = (
            p.arguments if isinstance(p, ToolCall) else p.text
            for m in said
            for p in m.parts
            if isinstance(p, (Text, ToolCall))
        )
        used = dict.fromkeys(name for text in texts for name in sorted(identifiers(text)))
        opened = [(n, self.items[n]) for n in sorted(framed) if n not in whole and not self._is_recorded(n)]
        return rows_of(opened, list(used))


def _newest(prices: Mapping[int, float], room_tokens: float) -> tuple[int, ...]:
    """Return the newest exchanges that together fit a room at their prices, newest first."""
    newest = sorted(prices, reverse=True)
    held = accumulate(prices[n] for n in newest)
    return tuple(newest[: sum(1 for _ in takewhile(lambda tokens: tokens <= room_tokens, held))])
