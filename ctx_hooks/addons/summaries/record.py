"""The record of a conversation: its summaries, which compaction holds which, and the flight of the next one.

One flight a conversation: a longer prefix waits until the flight of a shorter one is over, so a summariser that is slow is
not asked at every turn, and one that fails is paused for the conversation, not for a prefix that the next turn outgrows.
Whatever happens to a flight, what it leaves behind is a state that another one can begin from.

Pure: the time is handed in. Whoever has the Redis can write anything there: what is no record is taken for an empty one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, TypeAlias

from pydantic import Field, OnErrorOmit, TypeAdapter, ValidationError

from ctx_hooks.compaction.summary.model_written import Choice, Summaries, WrittenSummary

MOST_WRITTEN = 8
"""Of summaries that no compaction holds, the newest: one of them will be chosen next."""
MOST_CHOSEN = 64
"""Of compactions, the newest, each with the summary that it holds. A session has a dozen; each model, window and policy that
it is sent to has its own."""
LARGEST_VALUE_BYTES = 64_000
"""A summary of 4,000 tokens is about 16 KB, 8,000 tokens of Chinese 24 KB."""
MOST_MESSAGES = 1_000_000
LONGEST_LEASE_SECONDS = 24 * 3600.0
"""What ends later than that is no lease, and no pause."""
FAILURES_TO_PAUSE = 2
"""One failure may be chance: a rate limit, a restart. The next answer tries again."""
FIRST_PAUSE_SECONDS = 600.0
MOST_PAUSE_SECONDS = 4 * 3600.0
"""A pause doubles with each further failure: 10, 20, 40, ... minutes, at most half a working day."""
MOST_FAILURES = 100
"""Counted no further: the pause has long been the longest."""
Digest: TypeAlias = Annotated[str, Field(pattern="^[0-9a-f]{1,64}$")]


@dataclass(frozen=True, slots=True)
class Flight:
    """The state of a conversation's next summary.

    Attributes:
        owner: the worker that has it in flight; "" where none has.
        until_seconds: the end of its lease, or of the pause after failures, in epoch seconds: none begins before.
        failures: how many in a row have failed.
    """

    owner: str = ""
    until_seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    failures: Annotated[int, Field(ge=0, le=MOST_FAILURES)] = 0

    def is_held(self, now: float) -> bool:
        """Whether none may begin yet."""
        return now < self.until_seconds <= now + LONGEST_LEASE_SECONDS

    def is_under_way(self, now: float) -> bool:
        """Whether a worker has it in flight; one whose lease is over is taken for dead."""
        return bool(self.owner) and self.is_held(now)


IDLE = Flight()
"""Before the first flight, and after one whose summary was accepted."""


def begun(flight: Flight, owner: str, now: float, lease_seconds: float) -> Flight | None:
    """Return the flight of `owner`; None while another one is under way, or paused."""
    return None if flight.is_held(now) else Flight(owner, now + lease_seconds, flight.failures)


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
class Written:
    """A stored summary.

    Attributes:
        length: how many messages it stands for.
        text: what was written, to the letter.
    """

    length: Annotated[int, Field(gt=0, le=MOST_MESSAGES)]
    text: Annotated[str, Field(pattern=r"\S", max_length=LARGEST_VALUE_BYTES)]


@dataclass(frozen=True, slots=True)
class Record:
    """What is stored of a conversation.

    Attributes:
        written: the summaries by prefix, the oldest first.
        chosen: by compaction the prefix of the summary that it holds, "" for none; the oldest first.
        flight: the state of the next summary.
    """

    written: Mapping[OnErrorOmit[Digest], OnErrorOmit[Written]] = field(default_factory=dict)
    chosen: Mapping[OnErrorOmit[Digest], OnErrorOmit[Digest | Annotated[str, Field(max_length=0)]]] = field(
        default_factory=dict
    )
    flight: Flight = IDLE

    def summaries(self, conversation: str) -> Summaries:
        """Return the summaries as compaction uses them."""
        written = {prefix: WrittenSummary(prefix, w.length, w.text.strip()) for prefix, w in self.written.items()}
        return Summaries(conversation, written, self.chosen)

    def with_summary(self, prefix: str, written: Written) -> "Record":
        """Return it with a summary, unless it has one of this prefix."""
        return self if prefix in self.written else self.merged(Record({prefix: written}, flight=self.flight))

    def with_choice(self, choice: Choice) -> "Record":
        """Return it with the form of a compaction, unless that is settled."""
        if choice.compaction in self.chosen:
            return self
        return self.merged(Record(chosen={choice.compaction: choice.prefix}, flight=self.flight))

    def flown(self, old: Flight, new: Flight) -> "Record":
        """Return it with the next state of its flight, unless another worker was first."""
        return replace(self, flight=new) if self.flight == old else self

    def merged(self, newer: "Record") -> "Record":
        """Return what both say, the newer one where they differ, without the oldest of what is then too much."""
        chosen = dict([*{**self.chosen, **newer.chosen}.items()][-MOST_CHOSEN:])
        written = {**self.written, **newer.written}
        free = [prefix for prefix in written if prefix not in chosen.values()]
        forgotten = frozenset(free[:-MOST_WRITTEN])
        return Record({p: w for p, w in written.items() if p not in forgotten}, chosen, newer.flight)


NOTHING = Record()
_RECORD = TypeAdapter(Record)


def record_of(text: str) -> Record:
    """Return the record that a text says, without an entry that is none; an empty one where it says none."""
    try:
        return _RECORD.validate_json(text)
    except ValidationError:
        return NOTHING


def text_of(record: Record) -> str:
    """Return the text of a record."""
    return _RECORD.dump_json(record).decode()
