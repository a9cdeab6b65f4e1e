"""Where in a conversation compactions are due. Only the sizes of its messages decide; no text is read."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate

from ctx_hooks.compaction.history import History, digest_of, request_points, settled_length
from ctx_hooks.compaction.quoting import Share, Shares, asks
from ctx_hooks.compaction.steps.parts import longest_request_tokens
from ctx_hooks.compaction.summary.extractive import summary_tokens
from ctx_hooks.tokens.budget import Budget
from ctx_hooks.tokens.units import LocalTokens

COMPACTION_FIELDS = frozenset({"keep_recent", "language", "tool_results"})
"""The policy fields that a compaction depends on beside its budget: no other one may change a prefix in a prompt cache."""
MARGIN_FRACTION = 0.02
"""A request's end that the next one may lack, such as a reminder, counts as at least this share of the goal."""
TARGET_FRACTION, SMALL_TARGET_FRACTION = 0.5625, 0.625
SMALL_GOAL_TOKENS = 20_000
"""A compaction leaves this share of the room beside fixed text; more below this goal (docs/appendix/design_notes.md)."""
MOST_GENERATIONS = 8
"""At most so many compactions build on the first: a process that knows none of them must make each once."""
NEWER_FRACTION = 0.3
"""A compaction on another leaves this share of the messages since beside its newest exchange (appendix/design_notes.md)."""
LEAST_FREE_FRACTION = 0.03
"""If a compaction would leave less of the room free, it starts from the first message: answers need room, too."""
LEAST_SETTLING_TOKENS = 8_000
"""With a smaller goal, later ones leave less free than the error of a token ratio: Claude refused first attempts."""
OLDER_FRACTION = 0.5
"""Share of its room for older text beside protected text."""
MOST_WORDS_FRACTION = 0.6
"""Users' words stay unchanged up to this share of the room: then the target grows, and older text has half of the rest."""


@dataclass(frozen=True, slots=True)
class Thresholds:
    """A compaction is due above the goal of `trigger`; it compacts down to `target_tokens`, None for the usual share."""

    trigger: Budget
    target_tokens: LocalTokens | None = None

    @property
    def margin_tokens(self) -> int:
        """The least tokens that count for a request's end that the next one may lack."""
        return int(self.trigger.goal_tokens * MARGIN_FRACTION)

    def target_tokens_behind(self, fixed_tokens: LocalTokens) -> LocalTokens:
        """Return the target tokens of a compaction, if no compaction can reduce `fixed_tokens`."""
        if self.target_tokens is not None:
            return self.target_tokens
        fixed_tokens = min(fixed_tokens, self.trigger.goal_tokens)
        room_tokens = max(0, self.trigger.goal_tokens - self.margin_tokens - fixed_tokens)
        fraction = SMALL_TARGET_FRACTION if self.trigger.goal_tokens < SMALL_GOAL_TOKENS else TARGET_FRACTION
        return LocalTokens(fixed_tokens + int(room_tokens * fraction))

    def digest(self) -> bytes:
        """Return the 16-byte digest of all that a compaction depends on beside the history."""
        budget = self.trigger
        policy = budget.policy.model_dump(mode="json", include=set(COMPACTION_FIELDS), exclude_defaults=True)
        figures = (budget.goal_tokens, self.target_tokens, budget.window_tokens)
        wanted = ("reasoning",) if budget.wants_reasoning else ()
        return digest_of(
            (*figures, budget.counter.vocabulary, policy, budget.cut_newest, *budget.cut_texts.digested, *wanted)
        )


@dataclass(frozen=True, slots=True)
class Cut:
    """A due compaction of the first `length` messages, with their expected tokens; a cut of no message is none.

    Attributes:
        number: counts the compactions from 1.
        is_whole: whether it also contains the end of its request that the next one may lack, such as a reminder.
        base: the compaction with whose settled messages it begins, None if it starts from the first message.
    """

    length: int = 0
    tokens: int = 0
    number: int = 0
    is_whole: bool = False
    base: "Cut | None" = None

    def bases(self) -> "list[Cut]":
        """Return the compactions that it builds on, newest first."""
        return [] if self.base is None else [self.base, *self.base.bases()]


class CutPoints:
    """The compactions of one history that are due at the points at which the client must have sent a request.

    One is due if the compacted form so far and the messages since, each of `arrived_tokens`, exceed the trigger tokens.
    """

    def __init__(self, history: History, arrived_tokens: Sequence[int], thresholds: Thresholds) -> None:
        self._index, self._thresholds = history.index, thresholds
        index, self._preamble_tokens, self._fixed_tokens = history.index, history.preamble_tokens, history.fixed_tokens
        self._points = request_points(index)
        self._settled = [settled_length(index, length) for length in self._points]
        self._arrived_tokens = list(accumulate(arrived_tokens, initial=0))
        self._requests = [i for i, m in enumerate(index) if m.is_request]
        self._asking = [i for i in self._requests if asks(index, i, thresholds.trigger)]
        self._questions = [i for i in self._asking if index[i].is_question]
        self._staying_tokens = list(accumulate([m.tokens if m.stays else 0 for m in index], initial=0))
        self._shares = Shares(history, thresholds.trigger)

    def newest(self) -> Cut:
        """Return the newest due compaction; one of no message if the request fits unchanged."""
        is_whole = self._sent_tokens(Cut(), len(self._index)) <= self._room_tokens(Cut())
        return Cut() if is_whole else self.newest_after(Cut())

    def newest_after(self, cut: Cut) -> Cut:
        """Return the newest compaction due after `cut`, itself if none is."""
        points = range(len(self._points))
        while True:
            # The tokens since a compaction only grow, so bisection finds the first point that exceeds its room.
            since_tokens = partial(self._since_tokens, cut, self.share(cut))
            next_point = bisect_right(self._settled, cut.length)
            due = bisect_right(points, self._room_tokens(cut), next_point, key=since_tokens)
            if due == len(points):
                return cut
            cut = self._after(cut, self._settled[due])

    def last_after(self, cut: Cut) -> Cut:
        """Return the compaction after `cut` of all messages that may be compacted; `cut` itself if it has as many."""
        return cut if cut.length >= self._settled[-1] else self._after(cut, self._settled[-1])

    def is_too_large(self, cut: Cut) -> bool:
        """Whether a compaction leaves no room."""
        return self._room_tokens(cut) < 0

    def fitting(self, cut: Cut, made_tokens: int) -> Cut:
        """Return `cut` if it leaves room for the end of its request (a reminder), else one that contains this end too."""
        length = self._points[bisect_right(self._settled, cut.length) - 1]
        sent_tokens = self._sent_tokens(cut, length)
        if not sent_tokens or sent_tokens <= self._room_tokens(replace(cut, tokens=made_tokens)):
            return cut
        return self._expected(replace(cut, length=length, is_whole=True))

    def begins_anew(self, cut: Cut) -> bool:
        """Whether the compaction after `cut` starts from the first message, by the tokens expected when it is due."""
        most_tokens = max(self._room_tokens(cut), self._sent_tokens(cut, self._settled[-1]))
        return not cut.length or not self._may_follow(cut, self._settled[-1], most_tokens)

    def free_tokens(self, cut: Cut) -> int:
        """Return how many tokens may follow the last request before the compaction after `cut` is due."""
        return self._room_tokens(cut) - self._since_tokens(cut, self.share(cut), len(self._points) - 1)

    def share(self, cut: Cut) -> Share:
        """Return the share of compacted text for user turns after a compaction; without a compaction nothing."""
        return self._shares.behind(cut.length, self._room_tokens(cut)) if cut.length else Share()

    def left_tokens(self, cut: Cut, turn: int) -> int:
        """Return the free tokens of the first request with the user's message at the index `turn`, after a cut."""
        return self._room_tokens(cut) - self._sent_tokens(cut, self._points[bisect_right(self._points, turn)])

    def rewrites(self, cut: Cut) -> bool:
        """Whether the last request is the first one with this compaction."""
        return 0 < self._settled[-1] <= cut.length

    def target_tokens(self, cut: Cut) -> LocalTokens:
        """Return the target tokens of a compaction: they depend only on its own messages, and leave older text a share."""
        if cut.base is not None:
            behind_tokens = self._behind_tokens(cut.base, cut.length, self._sent_tokens(cut.base, cut.length))
            return LocalTokens(self._preamble_tokens + behind_tokens)
        if self._thresholds.target_tokens is not None:
            return self._thresholds.target_tokens
        most_tokens = self._shares.most_target_tokens(cut.length)
        usual_tokens = min(self._thresholds.target_tokens_behind(self._fixed_tokens), most_tokens)
        goal_tokens = self._thresholds.trigger.goal_tokens
        protected_tokens = self._preamble_tokens + max(self._protected_tokens(cut.length), self._words_tokens(cut.length))
        older_tokens = (usual_tokens - self._fixed_tokens) * OLDER_FRACTION
        beside_tokens = int(protected_tokens + min(older_tokens, (goal_tokens - protected_tokens) / 2))
        return max(usual_tokens, min(LocalTokens(beside_tokens), most_tokens))

    def _after(self, before: Cut, length: int) -> Cut:
        """Return the compaction of the first `length` messages, due after `before`; it builds on `before` if it may."""
        may_follow = before.length and self._may_follow(before, length, self._sent_tokens(before, length))
        return self._expected(Cut(length, 0, before.number + 1, base=before if may_follow else None))

    def _may_follow(self, before: Cut, length: int, sent_tokens: int) -> bool:
        """Whether a compaction of the first `length` messages may build on `before`, `sent_tokens` after it."""
        goal_tokens = self._thresholds.trigger.goal_tokens
        settles = self._thresholds.target_tokens is None and goal_tokens >= LEAST_SETTLING_TOKENS
        if not settles or len(before.bases()) >= MOST_GENERATIONS:
            return False
        most_tokens = goal_tokens - LEAST_FREE_FRACTION * (goal_tokens - self._fixed_tokens)
        left_tokens = self._preamble_tokens + self._behind_tokens(before, length, sent_tokens)
        return left_tokens <= min(most_tokens, self._shares.most_target_tokens(length))

    def _behind_tokens(self, before: Cut, length: int, sent_tokens: int) -> int:
        """Return the tokens that a compaction after `before` leaves: settled messages, newest loop, share of the rest."""
        loop_tokens, newest_tokens = self._loop_tokens(before.length), self._loop_tokens(length)
        since_tokens = sent_tokens + loop_tokens - newest_tokens
        return before.tokens - loop_tokens + int(since_tokens * NEWER_FRACTION) + newest_tokens

    def _room_tokens(self, cut: Cut) -> int:
        """Return how many tokens of messages fit beside a compaction."""
        return self._thresholds.trigger.goal_tokens - self._preamble_tokens - cut.tokens

    def _sent_tokens(self, cut: Cut, length: int) -> int:
        """Return the tokens of those of the first `length` messages that are outside a compaction."""
        held_tokens = self._arrived_tokens[cut.length] if cut.is_whole else self._settled_tokens(cut.length)
        return self._arrived_tokens[length] - held_tokens

    def _settled_tokens(self, length: int) -> int:
        """Return the tokens of the first `length` messages, without the last one's parts behind tool results."""
        return self._arrived_tokens[length] - (self._index[length - 1].beside_tokens if length else 0)

    def _since_tokens(self, cut: Cut, share: Share, point: int) -> int:
        """Return the tokens between a compaction and a request, with the most that its turns may quote, and the margin."""
        length, sent_tokens = self._settled[point], self._sent_tokens(cut, self._points[point])
        turns, questions = (
            bisect_left(found, length) - bisect_left(found, cut.length) for found in (self._asking, self._questions)
        )
        moving_tokens = self._arrived_tokens[self._points[point]] - self._settled_tokens(length)
        return sent_tokens + max(0, self._thresholds.margin_tokens - moving_tokens) + share.reserved_tokens(turns, questions)

    def _expected(self, cut: Cut) -> Cut:
        """Return a compaction with its expected tokens: the target tokens, or the protected ones if these are more."""
        protected = self._protected_tokens(cut.length)
        if not cut.is_whole:
            protected -= self._arrived_tokens[cut.length] - self._settled_tokens(cut.length)
        expected = self.target_tokens(cut) - self._preamble_tokens
        return replace(cut, tokens=max(expected, int(protected + summary_tokens(self._thresholds.trigger.goal_tokens))))

    def _protected_tokens(self, length: int) -> int:
        """Return the tokens of the protected messages among the first `length`."""
        requests = bisect_left(self._requests, length)
        newest = self._requests[requests - 1] if requests else length
        newest_turn_tokens = self._index[newest].tokens if requests else 0
        if newest + 1 < length:
            goal_tokens = self._thresholds.trigger.goal_tokens
            newest_turn_tokens = min(newest_turn_tokens, longest_request_tokens(goal_tokens, self._fixed_tokens))
        return self._staying_tokens[length] + newest_turn_tokens + self._loop_tokens(length)

    def _words_tokens(self, length: int) -> int:
        """Return the tokens of users' words in an agent's session that no step cuts, with the protected text beside them."""
        if not any(m.calls for m in self._index[:length]):
            return 0
        words_tokens = sum(self._index[i].tokens for i in self._requests[: bisect_left(self._requests, length)])
        most_tokens = (self._thresholds.trigger.goal_tokens - self._fixed_tokens) * MOST_WORDS_FRACTION
        return self._staying_tokens[length] + self._loop_tokens(length) + int(min(words_tokens, max(0, most_tokens)))

    def _loop_tokens(self, length: int) -> int:
        """Return the tokens of the tool loop (calls and results) at the end of the first `length` messages."""
        start = length
        while start and self._index[start - 1].role != "assistant" and not self._index[start - 1].is_request:
            start -= 1
        if start == length:
            return 0
        while start and self._index[start - 1].role == "assistant":
            start -= 1
        return self._arrived_tokens[length] - self._arrived_tokens[start]
