"""The requests of a report, and their sessions. All figures are provider tokens.

Events identify a session by four digits of its conversation, its team, key, client and model.
"""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple, TypeAlias

from ctx_hooks.cli.rendering import nice
from ctx_hooks.cli.terminal import counted
from ctx_hooks.telemetry.events import (
    AnswerEvent,
    CallNames,
    DecisionEvent,
    FailureEvent,
    OverflowEvent,
    RequestEvent,
    RetrievalEvent,
    SummaryEvent,
)
from ctx_hooks.telemetry.listeners import Event
from ctx_hooks.tokens.usage import Billed

MOST_SESSIONS = 8
"""Each is a chart and a table: nobody reads a page with more."""
MOST_TURNS = 300
"""Requests that are drawn of a session: on a phone each has a pixel."""
MOST_WINDOWS = 3
"""A chart's height in windows: a history of twenty windows would press the sent requests to the axis."""
Key: TypeAlias = tuple[str, ...]
MARKS = {
    "compaction": "newly compacted",
    "rescue": "refused and retried",
    "failure": "failed",
    "reread": "read again",
    "retrieval": "retrieved",
    "summary": "summary written",
}
"""What happens to a request, in the words of the legend."""


class Happened(NamedTuple):
    """One thing that happened to a request: a key of MARKS or "", and its description."""

    mark: str
    words: str


@dataclass(slots=True)
class Turn:
    """One request; `compacts` is whether it begins with a new compaction."""

    events: list[RequestEvent] = field(default_factory=list)
    compacts: bool = False

    @property
    def call(self) -> CallNames:
        """The names of its owner and target."""
        return self.events[0].call

    @property
    def names(self) -> dict[str, str]:
        """The names by which a reader chooses requests."""
        call = self.call
        team = call.team_alias or call.team_id
        return {"group": call.model_group or call.model, "team": team, "session": call.session, "mode": self.mode}

    @property
    def at_seconds(self) -> float:
        """When its first event was, in epoch seconds."""
        return min(event.time_seconds for event in self.events)

    @property
    def decided(self) -> DecisionEvent | None:
        """The decision for its last attempt."""
        found = [event for event in self.events if isinstance(event, DecisionEvent)]
        return max(found, key=lambda event: event.attempt, default=None)

    @property
    def end(self) -> AnswerEvent | FailureEvent | None:
        """Its answer or failure, None while it runs."""
        return next((event for event in self.events[::-1] if isinstance(event, (AnswerEvent, FailureEvent))), None)

    @property
    def outcome(self) -> str:
        """What it ended in."""
        return self.end.decision if self.end else "running"

    @property
    def mode(self) -> str:
        """The mode of its policy: with `observe` it was sent unchanged, whatever was decided."""
        return next((event.mode for event in (self.decided, self.end) if event), "")

    @property
    def billed(self) -> Billed | None:
        """The usage of its answer."""
        bills = [event.billed for event in self.events if isinstance(event, AnswerEvent) and event.billed]
        return bills[-1] if bills else None

    @property
    def received_tokens(self) -> int | None:
        """What the client sent; as billed if that is known, else estimated."""
        if self.billed is not None and (self.mode == "observe" or not self.is_shorter):
            return self.billed.input_tokens
        return self.decided.provider_tokens_before if self.decided else None

    @property
    def sent_tokens(self) -> int | None:
        """What was sent, or would have been."""
        if self.billed is not None and not (self.mode == "observe" and self.is_shorter):
            return self.billed.input_tokens
        return self.decided.provider_tokens_after if self.decided else None

    @property
    def cached_tokens(self) -> int | None:
        """What the prompt cache served."""
        return self.billed.cached_tokens if self.billed else None

    @property
    def window_tokens(self) -> int | None:
        """The window that the request was fitted to."""
        return self.decided.window_tokens if self.decided else None

    @property
    def is_shorter(self) -> bool:
        """Whether the sent request is, or would have been, smaller than the received one."""
        return self.decided is not None and removed_tokens(self.decided) > 0

    def happened(self) -> Iterator[Happened]:
        """Yield what happened, in order."""
        decided, refused = self.decided, sum(isinstance(event, OverflowEvent) for event in self.events)
        failed = isinstance(self.end, FailureEvent)
        if decided is not None and (self.compacts or (refused and self.is_shorter)):
            for step in decided.steps:
                size = f"{step.tokens_saved:,.0f} tokens of {counted(step.messages_touched, 'message')}"
                yield Happened("compaction" * self.compacts, f"{step.name.replace('_', ' ')}: {size}")
        if decided is not None and decided.decision == "output_lowered":
            yield Happened("", f"requested output lowered to {decided.sent_output_tokens or 0:,} tokens")
        if refused:
            answered = "" if failed or self.end is None else ", then answered"
            is_retried = not failed and self.mode != "observe"
            yield Happened("rescue" * is_retried, f"{counted(refused, 'attempt')} refused{answered}")
        if failed:
            why = f": {decided.reason}" if decided and decided.reason else ""
            yield Happened("failure", f"refused in the end{why}")
        rereads = sum((Counter(event.rereads) for event in self.events if isinstance(event, AnswerEvent)), Counter[str]())
        for tool, times in rereads.items():
            yield Happened("reread", f"read again: {tool}{f', {times} times' * (times > 1)}")
        yield from sorted(filter(None, map(_of_addon, self.events)))


def _of_addon(event: RequestEvent) -> Happened | None:
    if isinstance(event, SummaryEvent):
        words = f"summary of {counted(event.messages, 'message')} by {event.summary_model}: {event.outcome}"
        return Happened("summary" if event.outcome == "accepted" else "", words)
    if isinstance(event, RetrievalEvent):
        where = "not available" if event.source == "none" else f"from the {event.source}"
        return Happened("retrieval", f"{event.returned_chars:,} characters retrieved, {where}")
    return None


def removed_tokens(event: DecisionEvent) -> int:
    """Return by how many tokens the sent request is smaller than the received one; 0 if not counted."""
    if event.provider_tokens_before is None or event.provider_tokens_after is None:
        return 0
    return max(0, event.provider_tokens_before - event.provider_tokens_after)


@dataclass(slots=True)
class Session:
    """One session, its turns by the id of their requests; `is_longer` if it has more than MOST_TURNS."""

    key: Key
    turns: dict[str, Turn] = field(default_factory=dict)
    is_longer: bool = False

    @property
    def most_tokens(self) -> float:
        """The value at the upper edge of its chart; a client's history may exceed it, since the window has to be visible."""
        turns = self.turns.values()
        largest = max(turn.received_tokens or 0 for turn in turns)
        shown = max(max(turn.sent_tokens or 0, turn.window_tokens or 0) for turn in turns)
        return nice(min(largest, MOST_WINDOWS * shown) if largest > shown else 1.1 * shown)

    @property
    def figures(self) -> dict[str, int]:
        """The number of requests with each kind of MARKS, in order, without kinds that did not happen."""
        seen = Counter(mark for turn in self.turns.values() for mark in {happened.mark for happened in turn.happened()})
        return {mark: seen[mark] for mark in MARKS if seen[mark]}

    def line(self, name: str, *, filled: bool = False) -> str:
        """Return the path of a figure of each turn, 1 wide each, in percent of the height; a gap if it is not known."""
        path, is_open, most = "", False, self.most_tokens
        for i, turn in enumerate(self.turns.values()):
            value = getattr(turn, name)
            if value is None:
                path += "V100" if is_open and filled else ""
            else:
                y = f"{100 - 100 * value / most:.1f}"
                path += (f"M{i} 100V{y}" if filled else f"M{i} {y}") * (not is_open) + f"V{y}" * is_open + f"H{i + 1}"
            is_open = value is not None
        return path + "V100" * (is_open and filled)

    def marks(self) -> Iterator[tuple[float, float, Happened]]:
        """Yield each mark with its place in percent: one of each kind a turn, the marks of one turn above each other."""
        most = self.most_tokens
        for i, turn in enumerate(self.turns.values()):
            seen = {happened.mark: happened for happened in turn.happened() if happened.mark}
            for n, happened in enumerate(seen.values()):
                y = 100 - 100 * (turn.sent_tokens or turn.received_tokens or 0) / most
                yield 100 * (i + 0.5) / len(self.turns), max(0, y - 9 * n), happened

    def note(self, event: RequestEvent) -> None:
        """Add one event."""
        name = event.call.request_id or event.call.call_id
        if name not in self.turns and len(self.turns) >= MOST_TURNS:
            self.is_longer = True
        else:
            self.turns.setdefault(name, Turn()).events.append(event)

    def ended(self) -> "Session":
        """Return the session with its turns in the order of time, and the new compactions among them."""
        turns = dict(sorted(self.turns.items(), key=lambda item: (item[1].at_seconds, item[0])))
        for before, turn in pairwise([Turn(), *turns.values()]):
            is_first = not before.is_shorter
            turn.compacts = turn.is_shorter and (is_first or (turn.sent_tokens or 0) < (before.sent_tokens or 0))
        return Session(self.key, turns, self.is_longer)


class Largest:
    """The sessions whose requests lost most, else those with the largest: exact, and in the memory of MOST_SESSIONS."""

    def __init__(self) -> None:
        self.scores: dict[Key, tuple[int, int]] = {}

    def note(self, event: DecisionEvent) -> None:
        """Add one event."""
        key, score = key_of(event), (removed_tokens(event), event.provider_tokens_before or 0)
        self.scores[key] = max(score, self.scores.get(key, score))
        if len(self.scores) > MOST_SESSIONS:
            del self.scores[min(self.scores, key=lambda known: (self.scores[known], known))]

    def sessions(self, events: Iterable[Event | None]) -> list[Session]:
        """Read the same events once more; return the sessions with their turns, the largest loss first."""
        found = {key: Session(key) for key in sorted(self.scores, key=lambda key: (self.scores[key], key), reverse=True)}
        for event in events:
            if isinstance(event, RequestEvent) and key_of(event) in found:
                found[key_of(event)].note(event)
        return [session.ended() for session in found.values() if session.turns]  # a pipe cannot be read twice


def key_of(event: RequestEvent) -> Key:
    """Return the key of an event's session; events of earlier versions name no session, so each request is one."""
    call = event.call
    named = (call.team_id, call.organization_id, call.key_alias, call.client, call.model_group)
    return (call.session or call.request_id, *named)
