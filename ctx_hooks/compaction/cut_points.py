"""Where in a conversation compactions are due: from the sizes of its messages alone, no text is read.

A gateway sees single requests. So the points at which the client must have sent one are gone through from the start: where
the compacted form so far and what came since exceed the trigger tokens, a compaction of everything up to there is due.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from dataclasses import astuple, dataclass
from functools import partial
from itertools import accumulate
from typing import TYPE_CHECKING

from ctx_hooks.compaction.cost import CACHE_PRICES, Prices, target_fraction_of
from ctx_hooks.compaction.message_index import TokenSums, digest_of, request_points
from ctx_hooks.compaction.retrieval_share import Share, Shares, asks
from ctx_hooks.compaction.steps.installed import extra_steps
from ctx_hooks.compaction.summary.extractive import summary_tokens
from ctx_hooks.tokens.units import LocalTokens

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ctx_hooks.compaction.history import History
    from ctx_hooks.tokens.budget import Budget

COMPACTION_FIELDS = frozenset(
    {
        "compaction",
        "keep_recent_fraction",
        "keep_recent_tokens",
        "language",
        "reader_tools",
        "reasoning",
        "retrieval_fraction",
        "retrieval_max_tokens",
        "text_max_chars",
        "tool_result_direction",
        "tool_result_max_bytes",
        "tool_result_max_chars",
        "tool_result_max_fraction",
        "tool_result_max_lines",
        "truncation_skip",
    }
)
"""The fields of a policy that a compaction depends on beside its budget: no other may cost a conversation its summary, nor
rewrite what a provider's prompt cache holds."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """When a compaction is due, and what it leaves.

    Attributes:
        trigger: the budget above whose goal a compaction is due.
        target_tokens: what a compaction compacts down to; None where that follows from growth and prices (`cost.py`).
        prices: of input tokens.
    """

    trigger: Budget
    target_tokens: LocalTokens | None = None
    prices: Prices = CACHE_PRICES

    def target_tokens_at(self, growth_tokens: float, fixed_tokens: LocalTokens) -> LocalTokens:
        """Return what a compaction compacts down to.

        Args:
            growth_tokens: by how much a request of the history is longer than the one before.
            fixed_tokens: what no compaction makes smaller.
        """
        if self.target_tokens is not None:
            return self.target_tokens
        fixed_tokens = min(fixed_tokens, self.trigger.goal_tokens)
        room_tokens = self.trigger.goal_tokens - fixed_tokens
        return LocalTokens(fixed_tokens + int(room_tokens * target_fraction_of(growth_tokens, room_tokens, self.prices)))

    def digest(self) -> bytes:
        """Return 16 bytes that stand for what a compaction depends on beside the history."""
        budget = self.trigger
        # Nobody knows what an installed step reads. A field that is not set says nothing: a new one changes no digest.
        fields = None if extra_steps() else set(COMPACTION_FIELDS)
        policy = budget.policy.model_dump(mode="json", include=fields, exclude_defaults=True)
        figures = (budget.goal_tokens, self.target_tokens, budget.window_tokens, *astuple(self.prices))
        references = budget.cut_texts.digested if budget.cut_texts is not None else ()
        return digest_of((*figures, budget.counter.vocabulary, policy, budget.cut_newest, *references))


@dataclass(frozen=True, slots=True)
class Cut:
    """A compaction of the first `length` messages that is due: `tokens` are expected of its messages.

    `number` counts the compactions from 1; the cut of no message is none.
    """

    length: int = 0
    tokens: int = 0
    number: int = 0


class CutPoints:
    """The points of one history at which compactions are due.

    Args:
        history: its stats are looked at, its messages are not read.
        arrived_tokens: the tokens of each message as it is sent while it is not compacted, oversized results cut.
        thresholds: when a compaction is due, and what it leaves.
    """

    def __init__(self, history: History, arrived_tokens: Sequence[int], thresholds: Thresholds) -> None:
        index = history.index
        self._index = index
        self._preamble_tokens = history.preamble_tokens
        self._fixed_tokens = history.fixed_tokens
        self._thresholds = thresholds
        self._points = request_points(index)
        self._arrived_tokens = list(accumulate(arrived_tokens, initial=0))
        self._requests = [i for i, m in enumerate(index) if m.is_request]
        self._asking = [i for i in self._requests if asks(index[i], thresholds.trigger)]
        self._questions = [i for i in self._asking if index[i].is_question]
        self._staying_tokens = TokenSums(index, [i for i, m in enumerate(index) if m.stays])
        self._shares = Shares(history, thresholds.trigger)

    def newest_after(self, cut: Cut) -> Cut:
        """Return the newest compaction due after `cut`, itself when none is."""
        goal_tokens = self._thresholds.trigger.goal_tokens - self._preamble_tokens
        while True:
            # What came since a compaction only grows, so the first point that has more than its room is found by bisection.
            since_tokens = partial(self._since_tokens, cut, self.share(cut))
            next_point = bisect_right(self._points, cut.length)
            due = bisect_right(self._points, goal_tokens - cut.tokens, next_point, key=since_tokens)
            if due == len(self._points):
                return cut
            cut = Cut(self._points[due], self._expected_tokens(self._points[due]), cut.number + 1)

    def share(self, cut: Cut) -> Share:
        """Return what user turns behind a compaction may be given of the compacted text; behind none nothing."""
        if not cut.length:
            return Share()
        free_tokens = self._thresholds.trigger.goal_tokens - self._preamble_tokens - cut.tokens
        return self._shares.behind(cut.length, free_tokens)

    def target_tokens(self, length: int) -> LocalTokens:
        """Return what a compaction of the first `length` messages compacts down to: nothing behind them is looked at."""
        if self._thresholds.target_tokens is not None:
            return self._thresholds.target_tokens
        first = self._points[0]
        requests = bisect_right(self._points, length) - 1
        growth_tokens = (self._arrived_tokens[length] - self._arrived_tokens[first]) / requests if requests else 0.0
        target_tokens = self._thresholds.target_tokens_at(growth_tokens, self._fixed_tokens)
        return min(target_tokens, self._shares.most_target_tokens(length))

    def tokens_since(self, length: int) -> int:
        """Return the tokens of all messages but the first `length`, as they are sent while they are not compacted."""
        return self._arrived_tokens[-1] - self._arrived_tokens[length]

    def _since_tokens(self, cut: Cut, share: Share, length: int) -> int:
        """Return the tokens between a compaction and `length`, with the most compacted text that its turns may be given."""
        turns, questions = (
            bisect_left(found, length) - bisect_left(found, cut.length) for found in (self._asking, self._questions)
        )
        since_tokens = self._arrived_tokens[length] - self._arrived_tokens[cut.length]
        return since_tokens + share.reserved_tokens(turns, questions)

    def _expected_tokens(self, length: int) -> int:
        """Return what a compaction of the first `length` messages leaves: the target tokens, or what is protected."""
        requests = bisect_left(self._requests, length)
        newest_turn_tokens = self._index[self._requests[requests - 1]].tokens if requests else 0
        protected = self._staying_tokens.before(length) + newest_turn_tokens + self._loop_tokens(length)
        expected = self.target_tokens(length) - self._preamble_tokens
        return max(expected, int(protected + summary_tokens(self._thresholds.trigger)))

    def _loop_tokens(self, length: int) -> int:
        """Return the tokens of the tool loop that the first `length` messages end with: calls and their results."""
        start = length
        while start and self._index[start - 1].role != "assistant" and not self._index[start - 1].is_request:
            start -= 1
        if start == length:
            return 0
        while start and self._index[start - 1].role == "assistant":
            start -= 1
        return self._arrived_tokens[length] - self._arrived_tokens[start]
