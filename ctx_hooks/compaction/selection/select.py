"""Selection of the older exchanges, and of segments of their results, with the most value for their tokens.

The newest exchanges stay whole, up to a share of the room. Exchanges before them keep their frame, up to another share, and
the segments of their results that name the most. Older exchanges go, except answers. Plain dialogue is ranked by relevance.
A selection estimates costs; `fit` builds and counts the conversation, corrects the room and tries again.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from ctx_hooks.compaction.selection import bm25
from ctx_hooks.compaction.selection.scoring import Row, items_of, rows_of
from ctx_hooks.compaction.selection.segments import Position
from ctx_hooks.compaction.selection.user_words import answers, asks, free_tokens, user_words
from ctx_hooks.compaction.summary.extractive import summary_tokens
from ctx_hooks.conversation.conversation import Conversation
from ctx_hooks.conversation.model import Text, ToolCall
from ctx_hooks.texts.identifiers import identifiers
from ctx_hooks.tokens.budget import Budget, keep_recent_tokens_of

FRAMES_FRACTION = 0.5
"""Share of the room for the frames of exchanges."""
ATTEMPTS = 4
"""Each counts the whole conversation: of 465 fits 61 % are close at the first, 83 % at the second, 87 % at the third."""
USUAL_SUMMARY_FRACTION = 0.4
"""How much of its allowance the summary usually takes."""
MOST_USED_NAMES = 300
"""An agent's next answers hardly name what it has not named since so many other names."""
LEAST_SPOKEN_FRACTION = 0.05
"""With a smaller share of plain dialogue no turn of it is ranked: in most agents' sessions it is less."""
MARGIN_FRACTION = 0.02
"""Cut texts have slightly more tokens per character than whole ones: with this margin the first attempt mostly fits."""
CLOSE_FRACTION = 0.045
"""A fit that leaves less than this of the goal unused is good enough."""
TOO_SMALL_FACTOR, WIDER_FRACTION = 0.8, 0.01
"""Factor on what is missing; the share of the goal that each too large attempt gives up more, since only whole lines go."""


@dataclass(frozen=True, slots=True)
class Selection:
    """The exchanges that stay unchanged and those that keep their frame, each as the range of its messages."""

    whole: frozenset[range]
    shortened: frozenset[range]
    lines: Mapping[Position, frozenset[int]]
    """The numbers of the kept segments of shortened exchanges, by position of their part."""


class Selector:
    """Selects from one conversation; with `newest_first`, beside a model's summary, only the newest exchanges, whole."""

    def __init__(self, conversation: Conversation, budget: Budget, *, newest_first: bool = False) -> None:
        self._conversation, self._budget, self._newest_first = conversation, budget, newest_first
        self.words = {**user_words(conversation, budget), **({} if newest_first else answers(conversation, budget))}
        self.items = items_of(conversation, budget, self.words)
        beside_tokens = budget.goal_tokens * MARGIN_FRACTION + summary_tokens(budget.goal_tokens) * USUAL_SUMMARY_FRACTION
        self.room_tokens = free_tokens(conversation, budget) - beside_tokens
        """The room that the first attempt may fill."""

    def within(self, room_tokens: float) -> Selection:
        """Return the selection that fits a room by estimate; the frames of exchanges that must stay may exceed it."""
        if sum(item.whole_tokens for item in self.items) <= room_tokens:
            return self._selection(set(range(len(self.items))), {}, {})
        kept_first, frames, rows = self._order
        paid_tokens = {n: item.frame_tokens for n, item in enumerate(self.items) if item.is_answer}
        room_tokens -= sum(paid_tokens.values())
        whole: set[int] = set()
        for n in kept_first:
            price = self.items[n].whole_tokens - paid_tokens.get(n, 0.0)
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
            if row.item in paid_tokens and row.tokens <= room_tokens:
                room_tokens -= row.tokens
                paid_tokens[row.item] += row.tokens
                taken.setdefault(row.position, set()).add(row.segment)
        return self._selection(whole, paid_tokens, taken)

    def _selection(self, whole: set[int], paid_tokens: Mapping[int, float], taken: Mapping[Position, set[int]]) -> Selection:
        return Selection(
            frozenset(self.items[n].messages for n in whole),
            frozenset(self.items[n].messages for n in paid_tokens.keys() - whole),
            {position: frozenset(lines) for position, lines in taken.items()},
        )

    @cached_property
    def _order(self) -> tuple[Sequence[int], Sequence[int], Sequence[Row]]:
        """The exchanges to keep whole first, those that keep their frame, and the lines of these in order."""
        room_tokens = max(0.0, self.room_tokens)
        prices = {n: item.whole_tokens for n, item in enumerate(self.items)}
        if self._newest_first:
            return sorted(prices, reverse=True), (), ()
        spoken_tokens = sum(item.whole_tokens for item in self.items if item.spoken)
        share = spoken_tokens / max(1.0, sum(prices.values()))
        goal_tokens = self._budget.goal_tokens
        recent = keep_recent_tokens_of(goal_tokens, self._budget.policy) / max(1, goal_tokens)
        newest = _newest(prices, room_tokens * recent)
        dialogue = (
            self._relevant_dialogue(room_tokens * (1 - recent) * share, newest) if share >= LEAST_SPOKEN_FRACTION else ()
        )
        whole = (*newest, *dialogue)
        there = {n for n, item in enumerate(self.items) if item.is_answer}.union(whole)
        frame_prices = {n: item.frame_tokens for n, item in enumerate(self.items) if n not in there}
        frames = _newest(frame_prices, room_tokens * FRAMES_FRACTION, may_exceed=True)
        framed = sorted(there.union(frames).difference(whole))
        return whole, frames, rows_of([(n, self.items[n]) for n in framed], self._used_names())

    def _relevant_dialogue(self, room_tokens: float, besides: Sequence[int]) -> Iterator[int]:
        """Yield the turns of plain dialogue that fit the newest request best, up to the room, best first.

        A long turn is mostly a report, code or a pasted file: it keeps some lines. If a user asks a question and no tool was
        used, long turns stay whole: 0.52 of the evidence instead of 0.35 (QMSum, at a quarter of the tokens).
        """
        may_be_long = asks(self._conversation) and all(item.spoken for item in self.items)
        for n in self._ranked_dialogue() if room_tokens > 0 else ():
            item = self.items[n]
            is_fitting = item.whole_tokens <= room_tokens and (may_be_long or not item.sources)
            if is_fitting and n not in besides:
                room_tokens -= item.whole_tokens
                yield n

    def _ranked_dialogue(self) -> Iterator[int]:
        """Yield the turns of plain dialogue that fit the newest request, best first; a repeated one at its last place."""
        request = self._conversation.newest_request
        spoken = [n for n, item in enumerate(self.items) if item.spoken]
        if request is None or not spoken:
            return
        asked = self._conversation.messages[request].text
        texts = [" ".join(self._conversation.messages[i].text for i in self.items[n].messages) for n in spoken]
        scores = bm25.rank(asked, texts).tolist()
        newest = {text: n for text, n in zip(texts, spoken, strict=True) if text != asked}
        ranked = sorted(zip(scores, spoken, texts, strict=True), reverse=True)
        yield from (n for score, n, text in ranked if score > 0 and newest.get(text) == n)

    def _used_names(self) -> list[str]:
        """Return the names that the assistant has used last, newest first."""
        said = (p for m in reversed(self._conversation.messages) if m.role == "assistant" for p in reversed(m.parts))
        texts = (p.arguments if isinstance(p, ToolCall) else p.text for p in said if isinstance(p, (Text, ToolCall)))
        names: dict[str, None] = {}
        for text in texts:
            names.update(dict.fromkeys(sorted(identifiers(text))))
            if len(names) > MOST_USED_NAMES:
                break
        return list(names)


def _newest(prices: Mapping[int, float], room_tokens: float, *, may_exceed: bool = False) -> tuple[int, ...]:
    """Return the newest exchanges that together fit a room at their prices, newest first; the last one may exceed it."""
    found = []
    for n in sorted(prices, reverse=True):
        if prices[n] > room_tokens and not (may_exceed and room_tokens > 0):
            break
        room_tokens -= prices[n]
        found.append(n)
    return tuple(found)


def fit(budget: Budget, selector: Selector, build: Callable[[Selection], Conversation]) -> Conversation:
    """Return the fullest built conversation within the goal; the smallest if none fits."""
    room_tokens = selector.room_tokens
    fullest: Conversation | None = None
    least_unused_tokens = float("inf")
    attempt = 0
    while True:
        attempt += 1
        built = build(selector.within(max(room_tokens, 0)))
        excess_tokens = budget.excess(built)
        if 0 <= -excess_tokens < least_unused_tokens:
            fullest, least_unused_tokens = built, -excess_tokens
        if fullest is not None and (least_unused_tokens <= CLOSE_FRACTION * budget.goal_tokens or attempt >= ATTEMPTS):
            return fullest
        if excess_tokens <= 0:
            room_tokens -= excess_tokens * TOO_SMALL_FACTOR
        elif room_tokens > 0:
            room_tokens -= excess_tokens + attempt * WIDER_FRACTION * budget.goal_tokens
        elif budget.cut_newest:  # answers go, too: another pass would keep fewer of these
            return build(Selection(frozenset(), frozenset(), {}))
        else:
            return built
