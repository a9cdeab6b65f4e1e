"""The fields of a conversation's record: its summaries, which compaction holds which, and the flight of the next one.

Pure: what a field says, and which are forgotten. Whoever has the Redis can write anything there.
"""

from __future__ import annotations

import json
import math
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING, Any

from ctx_hooks.addons.summaries.flight import IDLE, MOST_FAILURES, MOST_PAUSE_SECONDS, Flight
from ctx_hooks.compaction.summary.model_written import NO_SUMMARIES, Summaries, WrittenSummary

if TYPE_CHECKING:
    from collections.abc import Mapping

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
"""Whoever has the Redis can write anything there: what ends later than that is no lease."""


@dataclass(frozen=True, slots=True)
class Stored:
    """What is stored of a conversation: its summaries, and the flight of the next one."""

    summaries: Summaries = NO_SUMMARIES
    flight: Flight = IDLE


def stored_of(conversation: str, fields: Mapping[str, str], now: float) -> Stored:
    """Return what the fields of a conversation's record say, without what is none of it."""
    written = {n: _written(n, v) for n, v in ((n[len(WRITTEN) :], v) for n, v in fields.items() if n.startswith(WRITTEN))}
    chosen = {n[len(CHOSEN) :]: chosen_of(v) for n, v in fields.items() if n.startswith(CHOSEN)}
    return Stored(
        Summaries(
            conversation,
            {name: summary for name, summary in written.items() if summary is not None and _is_digest(name)},
            {name: prefix for name, prefix in chosen.items() if prefix is not None and _is_digest(name)},
        ),
        _flight(fields.get(FLIGHT, ""), now),
    )


def _written(prefix: str, value: str) -> WrittenSummary | None:
    match _list(value):
        case [int() | float(), int(length), str(text)] if 0 < length <= MOST_MESSAGES and text:
            return WrittenSummary(
                prefix, length, text.encode("utf-8", "replace").decode()
            )  # a lone surrogate cannot be sent
    return None


def chosen_of(value: str) -> str | None:
    """Return the prefix of the summary that a compaction holds, by the value of its field; None where that says nothing."""
    match _list(value):
        case [int() | float(), str(prefix)] if not prefix or _is_digest(prefix):
            return prefix
    return None


def _flight(value: str, now: float) -> Flight:
    latest = now + max(LONGEST_LEASE_SECONDS, MOST_PAUSE_SECONDS)
    match _list(value):
        case [str(owner), int() | float() as until, int(failures)] if (
            0 <= until <= latest and 0 <= failures <= MOST_FAILURES
        ):
            return Flight(owner, float(until), failures)
    return IDLE


def fields_of(record: str, now: float) -> dict[str, str]:
    """Return the fields of a record that one of these functions reads: anybody may have written others there."""
    try:
        found = json.loads(record)
    except (ValueError, RecursionError):
        return {}
    listed = found.items() if isinstance(found, dict) else ()
    return {name: value for name, value in listed if isinstance(value, str) and _says_something(name, value, now)}


def _says_something(name: str, value: str, now: float) -> bool:
    if name == FLIGHT:
        return _flight(value, now) != IDLE
    kind, digest = name[: len(WRITTEN)], name[len(WRITTEN) :]
    read = _written(digest, value) if kind == WRITTEN else chosen_of(value) if kind == CHOSEN else None
    is_sound = read is not None and _is_digest(digest) and len(value) <= LARGEST_VALUE_BYTES
    return is_sound and 0 <= _at(value) <= now + CLOCK_SKEW_SECONDS


def trim(fields: dict[str, str]) -> None:
    """Forget the oldest compactions that are too many, and the oldest summaries that none of the others holds."""
    newest_first = sorted(fields, key=lambda name: 0.0 if name == FLIGHT else _at(fields[name]), reverse=True)
    chosen = [name for name in newest_first if name.startswith(CHOSEN)]
    held = {WRITTEN + (chosen_of(fields[name]) or "") for name in chosen[:MOST_CHOSEN]}
    free = [name for name in newest_first if name.startswith(WRITTEN) and name not in held]
    for name in (*chosen[MOST_CHOSEN:], *free[MOST_WRITTEN:]):
        del fields[name]


def _at(value: str) -> float:
    """Return when a summary or choice was written, in epoch seconds; infinity for a time that no float holds."""
    try:
        return float(_list(value)[0])
    except OverflowError:
        return math.inf


def flight_value(flight: Flight) -> str:
    """Return a flight's value in its field: "" for the one that is read where there is none."""
    return "" if flight == IDLE else value_of(*astuple(flight))


def value_of(*values: Any) -> str:
    """Return the value of a field: that of a summary or a compaction begins with the time of writing."""
    return json.dumps(values, ensure_ascii=False)


def _list(value: str) -> list[Any]:
    try:
        found = json.loads(value)
    except (ValueError, RecursionError):
        return []
    return found if isinstance(found, list) else []


def _is_digest(name: str) -> bool:
    return 0 < len(name) <= LONGEST_DIGEST_CHARS and all(c in "0123456789abcdef" for c in name)
