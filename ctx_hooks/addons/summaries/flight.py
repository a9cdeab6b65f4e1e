"""The flight of a conversation's next summary. Pure: the time is handed in.

One flight a conversation: a longer prefix waits until the flight of a shorter one is over, so a summariser that is slow is
not asked at every turn, and one that fails is paused for the conversation, not for a prefix that the next turn outgrows.
Whatever happens to a flight, what it leaves behind is a state that another one can begin from.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

FAILURES_TO_PAUSE = 2
"""One failure may be chance: a rate limit, a restart. The next answer tries again."""
FIRST_PAUSE_SECONDS = 600.0
MOST_PAUSE_SECONDS = 4 * 3600.0
"""A pause doubles with each further failure: 10, 20, 40, ... minutes, at most half a working day."""
MOST_FAILURES = 100
"""Counted no further: the pause has long been the longest."""


@dataclass(frozen=True, slots=True)
class Flight:
    """The state of a conversation's next summary.

    Attributes:
        owner: the worker that has it in flight; "" where none has.
        until_seconds: the end of its lease, or of the pause after failures, in epoch seconds: none begins before.
        failures: how many in a row have failed.

    >>> flight = begun(Flight(), "worker-1", now=0.0, lease_seconds=20.0)
    >>> begun(flight, "worker-2", now=19.0, lease_seconds=20.0) is None
    True
    >>> begun(flight, "worker-2", now=20.0, lease_seconds=20.0).owner
    'worker-2'
    """

    owner: str = ""
    until_seconds: float = 0.0
    failures: int = 0

    def is_under_way(self, now: float) -> bool:
        """Whether a worker has it in flight; one whose lease is over is taken for dead."""
        return bool(self.owner) and now < self.until_seconds


IDLE = Flight()
"""Before the first flight, and after one whose summary was accepted."""


def begun(flight: Flight, owner: str, now: float, lease_seconds: float) -> Flight | None:
    """Return the flight of `owner`; None while another one is under way, or paused."""
    return None if now < flight.until_seconds else Flight(owner, now + lease_seconds, flight.failures)


def renewed(flight: Flight, now: float, lease_seconds: float) -> Flight:
    """Return a flight with a new lease: a long history is summarised in parts, each within its own."""
    return replace(flight, until_seconds=now + lease_seconds)


def failed(flight: Flight, now: float) -> Flight:
    """Return the flight that has brought no summary, whatever the reason."""
    failures = min(flight.failures + 1, MOST_FAILURES)
    return Flight("", now + pause_seconds(failures), failures)


def given_up(flight: Flight) -> Flight:
    """Return the flight that was cancelled: as it was before it began, failures included."""
    return Flight(failures=flight.failures)


def pause_seconds(failures: int) -> float:
    """Return how long no flight begins after so many failures in a row.

    >>> [pause_seconds(n) for n in (1, 2, 3, 20)]
    [0.0, 600.0, 1200.0, 14400.0]
    """
    if failures < FAILURES_TO_PAUSE:
        return 0.0
    return min(FIRST_PAUSE_SECONDS * 2.0 ** (failures - FAILURES_TO_PAUSE), MOST_PAUSE_SECONDS)
