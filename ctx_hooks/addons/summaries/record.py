"""The fields of a conversation's record: its summaries, which compaction holds which, and the flight of the next one.

One flight a conversation: a longer prefix waits until the flight of a shorter one is over, so a summariser that is slow is
not asked at every turn, and one that fails is paused for the conversation, not for a prefix that the next turn outgrows.
Whatever happens to a flight, what it leaves behind is a state that another one can begin from.

Pure: the time is handed in. Whoever has the Redis can write anything there: a field that says nothing is left out, and each
is read once.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import astuple, dataclass
from typing import Any, NamedTuple, TypeAlias

from ctx_hooks.compaction.summary.model_written import NO_SUMMARIES, Summaries, WrittenSummary
from ctx_hooks.formats.fields import compact_json

Entry: TypeAlias = tuple[Any, ...]
"""What a field says. A summary: when it was written, in epoch seconds, the number of its messages, its text, and of one that
a provider has signed the deployment that it is for and the signature. A compaction: when its form was chosen, the prefix of
the summary that it holds. The flight: its fields."""

FLIGHT, WRITTEN, CHOSEN = "flight", "w:", "c:"
MOST_WRITTEN = 8
"""Of summaries that no compaction holds, the newest: one of them will be chosen next."""
MOST_CHOSEN = 64
"""Of compactions, the newest, each with the summary that it holds. A session has a dozen; each model, window and policy that
it is sent to has its own."""
LARGEST_VALUE_BYTES = 64_000
"""A summary of 4,000 tokens is about 16 KB, 8,000 tokens of Chinese 24 KB."""
LONGEST_DIGEST_CHARS = 64
MOST_MESSAGES = 1_000_000
CLOCK_SKEW_SECONDS = 60.0
"""Workers' clocks may differ by so much. What was written later than that would be the newest for ever."""
LONGEST_LEASE_SECONDS = 24 * 3600.0
"""What ends later than that is no lease."""
FAILURES_TO_PAUSE = 2
"""One failure may be chance: a rate limit, a restart. The next answer tries again."""
FIRST_PAUSE_SECONDS = 600.0
MOST_PAUSE_SECONDS = 4 * 3600.0
"""A pause doubles with each further failure: 10, 20, 40, ... minutes, at most half a working day."""
MOST_FAILURES = 100
"""Counted no further: the pause has long been the longest."""


class Signed(NamedTuple):
    """A summary that a provider has written and signed: only the deployment that has written it takes it."""

    content: str
    deployment: str
    signature: str


@dataclass(frozen=True, slots=True)
class Flight:
    """The state of a conversation's next summary.

    Attributes:
        owner: the worker that has it in flight; "" where none has.
        until_seconds: the end of its lease, or of the pause after failures, in epoch seconds: none begins before.
        failures: how many in a row have failed.
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


@dataclass(frozen=True, slots=True)
class Stored:
    """What is stored of a conversation: its summaries, and the flight of the next one."""

    summaries: Summaries = NO_SUMMARIES
    flight: Flight = IDLE


def stored_of(conversation: str, fields: Mapping[str, Entry]) -> Stored:
    """Return what the fields of a conversation's record say together."""
    written = {n[len(WRITTEN) :]: e for n, e in fields.items() if n.startswith(WRITTEN)}
    chosen = {n[len(CHOSEN) :]: e for n, e in fields.items() if n.startswith(CHOSEN)}
    summaries = Summaries(
        conversation,
        {prefix: WrittenSummary(prefix, length, text.strip()) for prefix, (_, length, text, *_) in written.items()},
        {compaction: prefix for compaction, (_, prefix) in chosen.items()},
    )
    return Stored(summaries, Flight(*fields[FLIGHT]) if FLIGHT in fields else IDLE)


def fields_of(record: str, now: float) -> dict[str, Entry]:
    """Return the fields of a record that say something."""
    found = _parsed(record)
    entries = ((n, _entry(n, value, now)) for n, value in (found.items() if isinstance(found, dict) else ()))
    return {name: entry for name, entry in entries if entry is not None}


def record_of(fields: Mapping[str, Entry]) -> str:
    """Return the record that has these fields."""
    return compact_json({name: compact_json(entry) for name, entry in fields.items()})


def flight_entry(flight: Flight) -> Entry | None:
    """Return what the field of a flight says, None for the flight that is read where there is none."""
    return None if flight == IDLE else astuple(flight)


def put(fields: dict[str, Entry], name: str, entry: Entry | None) -> None:
    """Have a field say something else, None for nothing, and forget what is then too much.

    That is the oldest compactions, and the oldest summaries that none of the others holds.
    """
    fields.pop(name, None)
    if entry is not None:
        fields[name] = entry
    newest_first = sorted((n for n in fields if n != FLIGHT), key=lambda n: fields[n][0], reverse=True)
    chosen = [n for n in newest_first if n.startswith(CHOSEN)]
    held = {WRITTEN + fields[n][1] for n in chosen[:MOST_CHOSEN]}
    free = [n for n in newest_first if n.startswith(WRITTEN) and n not in held]
    for forgotten in (*chosen[MOST_CHOSEN:], *free[MOST_WRITTEN:]):
        del fields[forgotten]


def _entry(name: str, value: Any, now: float) -> Entry | None:
    """Return what a field says, None for one that says nothing."""
    if not isinstance(value, str) or len(value) > LARGEST_VALUE_BYTES:
        return None
    kind, digest = (FLIGHT, "") if name == FLIGHT else (name[: len(WRITTEN)], name[len(WRITTEN) :])
    if kind != FLIGHT and not _is_digest(digest):
        return None
    latest = now + CLOCK_SKEW_SECONDS
    match kind, _parsed(value):
        case "flight", [str(owner), int() | float() as until, int(failures)] if (
            0 <= until <= now + max(LONGEST_LEASE_SECONDS, MOST_PAUSE_SECONDS) and 0 <= failures <= MOST_FAILURES
        ):
            return flight_entry(Flight(owner, float(until), failures))
        case "w:", [int() | float() as at, int(length), *texts] if (
            0 <= at <= latest
            and 0 < length <= MOST_MESSAGES
            and len(texts) in (1, 3)  # three of one that a provider has signed
            and all(isinstance(text, str) and text.strip() for text in texts)
        ):
            return at, length, *(text.encode("utf-8", "replace").decode() for text in texts)  # no surrogate can be sent
        case "c:", [int() | float() as at, str(prefix)] if 0 <= at <= latest and (not prefix or _is_digest(prefix)):
            return at, prefix
    return None


def _parsed(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _is_digest(name: str) -> bool:
    return 0 < len(name) <= LONGEST_DIGEST_CHARS and all(c in "0123456789abcdef" for c in name)
