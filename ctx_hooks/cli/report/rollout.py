"""The two groups of a roll-out by share, each figure with an interval of 95 %.

Requests of one session are alike, and a session is in one group: so the intervals count sessions, not requests. Each figure
is a ratio of two sums over the sessions of a group, whose error follows from how far the sessions are from it (the ratio
estimator of cluster sampling: Cochran, Sampling Techniques, 6.3). A share has Wilson's interval by as many independent
requests as have that error: the normal one has no width if nothing happened.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from ctx_hooks.telemetry.events import AnswerEvent, FailureEvent, OverflowEvent

Z = 1.96
"""Of the normal distribution, for 95 %."""
LEAST_SESSIONS = 2


class Interval(NamedTuple):
    """A figure with its bounds; these are None if too few sessions have it."""

    value: float
    low: float | None
    high: float | None


RATIOS: Mapping[str, tuple[str, str]] = {
    "Overflows: attempts refused as too long": ("refused", "attempts"),
    "Errors: refused in the end": ("failed", "requests"),
    "Input from prompt caches": ("cached_tokens", "input_tokens"),
    "Re-reads a request": ("rereads", "answers"),
    "Dollars a request": ("dollars", "priced"),
    "Seconds to the end of the answer": ("seconds", "timed"),
}
"""The dividend and the divisor, by the words on the page."""
SHARES = ("refused", "failed", "cached_tokens")
"""The dividends that are parts of their divisors; the other ratios are means."""


@dataclass(slots=True)
class Group:
    """The sums of each session of one group, by the session's digits: there are 65,536 at most."""

    sessions: dict[str, dict[str, float]] = field(default_factory=dict)

    def count(self, event: AnswerEvent | FailureEvent | OverflowEvent) -> None:
        """Add one event."""
        sums = self.sessions.setdefault(event.call.session, {})
        for name, value in _figures(event).items():
            sums[name] = sums.get(name, 0.0) + value

    def total(self, name: str) -> float:
        """Return the sum over all sessions."""
        return sum(sums.get(name, 0.0) for sums in self.sessions.values())

    def rows(self) -> dict[str, Interval | None]:
        """Return each figure by its words, None if no session has it."""
        return {words: self._ratio(*names) for words, names in RATIOS.items()}

    def _ratio(self, upper: str, lower: str) -> Interval | None:
        of = self.total(lower)
        if not of:
            return None
        ratio = self.total(upper) / of
        sessions = [sums for sums in self.sessions.values() if sums.get(lower)]
        if len(sessions) < LEAST_SESSIONS:
            return Interval(ratio, None, None)
        squares = sum((s.get(upper, 0.0) - ratio * s[lower]) ** 2 for s in sessions)
        variance = squares * len(sessions) / (len(sessions) - 1) / of**2
        if upper not in SHARES:
            width = Z * math.sqrt(variance)
            return Interval(ratio, ratio - width, ratio + width)
        independent = ratio * (1 - ratio) / variance if variance else 0.0
        return Interval(ratio, *wilson(ratio, independent or len(sessions)))


def wilson(share: float, times: float) -> tuple[float, float]:
    """Return the bounds of a share that was observed in this many independent cases.

    >>> [round(bound, 3) for bound in wilson(0.5, 100)], [round(bound, 3) for bound in wilson(0.0, 20)]
    ([0.404, 0.596], [0.0, 0.161])
    """
    scale = 1 + Z**2 / times
    middle = (share + Z**2 / (2 * times)) / scale
    width = Z / scale * math.sqrt(max(0.0, share * (1 - share)) / times + Z**2 / (4 * times**2))
    return max(0.0, middle - width), min(1.0, middle + width)


def _figures(event: AnswerEvent | FailureEvent | OverflowEvent) -> dict[str, float]:
    if isinstance(event, OverflowEvent):
        return {"refused": 1}
    found: dict[str, float] = {"requests": 1, "attempts": event.attempts}
    if isinstance(event, FailureEvent):
        return found | {"failed": 1}
    found |= {"answers": 1, "rereads": sum(event.rereads.values())}
    if event.billed is not None:
        found |= {"input_tokens": event.billed.input_tokens, "cached_tokens": event.billed.cached_tokens}
    if event.dollars is not None:
        found |= {"priced": 1, "dollars": event.dollars}
    if event.duration_seconds is not None:
        found |= {"timed": 1, "seconds": event.duration_seconds}
    return found
