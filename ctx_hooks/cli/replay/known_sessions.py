"""Which session a request belongs to: by the history's own name of it, or since it goes on where another ended."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from ctx_hooks.cli.replay.bills import SessionBills
from ctx_hooks.tokens.units import LocalTokens

MOST_OPEN = 1_000
"""Sessions that may go on. Of one with 500 messages the prefixes take about 100 KB in each way."""


@dataclass(slots=True)
class Session:
    """A session that may go on.

    Attributes:
        bills: its figures.
        prefixes: for without and for each way, the digests of all prefixes that were sent: what the provider's cache holds.
        newest_compaction: for each way, the prefix at the end of the newest compaction.
        not_held: local tokens that the client sent besides what the history holds; None before the first usage.
        last: the digest of its newest request.
        started: when that was sent.
        names: what the history calls it.
    """

    bills: SessionBills
    prefixes: list[set[bytes]]
    newest_compaction: list[bytes]
    not_held: LocalTokens | None = None
    last: bytes = b""
    started: str = ""
    names: set[str] = field(default_factory=set)


class KnownSessions:
    """The sessions that may go on; the one that was asked for least recently ends when there are too many.

    Args:
        end: is told of each that has ended.
    """

    def __init__(self, end: Callable[[Session], None]) -> None:
        self._end = end
        self._open: OrderedDict[int, Session] = OrderedDict()
        self._by_name: dict[str, int] = {}
        self._by_last: dict[bytes, int] = {}
        self._begun = 0

    def of(self, name: str, chain: Sequence[bytes], begin: Callable[[int], Session]) -> Session:
        """Return the session of a request.

        LiteLLM gives a request without a session an id of its own: so what goes on is found by its beginning as well.

        Args:
            name: what the history calls the session; "" for nothing.
            chain: the digests of the request's prefixes, the shortest first.
            begin: makes a session, by its number from 1, where it is a new one.
        """
        number = self._by_name.get(name) if name else None
        if number is None:
            number = next((self._by_last[d] for d in reversed(chain[:-1]) if d in self._by_last), None)
        if number is None:
            self._begun += 1
            number = self._begun
            self._open[number] = begin(number)
        session = self._open[number]
        self._open.move_to_end(number)
        self._forget_last(number, session)
        session.last = chain[-1]
        self._by_last[session.last] = number
        if name:
            session.names.add(name)
            self._by_name[name] = number
        if len(self._open) > MOST_OPEN:
            self._close(next(iter(self._open)))
        return session

    def close_all(self) -> None:
        """End all sessions."""
        for number in list(self._open):
            self._close(number)

    def _close(self, number: int) -> None:
        session = self._open.pop(number)
        self._forget_last(number, session)
        for name in session.names:
            del self._by_name[name]
        self._end(session)

    def _forget_last(self, number: int, session: Session) -> None:
        if self._by_last.get(session.last) == number:
            del self._by_last[session.last]
