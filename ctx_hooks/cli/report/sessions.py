"""The sessions of a report. Events identify one by four digits of its conversation, its team, key, client and model."""

from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeAlias

from ctx_hooks.cli.rendering import nice
from ctx_hooks.cli.report.requests import MARKS, Happened, Turn, removed_tokens
from ctx_hooks.telemetry.events import DecisionEvent, RequestEvent
from ctx_hooks.telemetry.listeners import Event

MOST_SESSIONS = 8
"""Each is a chart and a table: nobody reads a page with more."""
MOST_TURNS = 300
"""Requests that are drawn of a session: on a phone each has a pixel."""
MOST_WINDOWS = 3
"""A chart's height in windows: a history of twenty windows would press the sent requests to the axis."""
LATEST_SECONDS = 32_503_680_000
"""The year 3000: a later time is a mistake, and no calendar has it."""
Key: TypeAlias = tuple[str, ...]


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
            if isinstance(event, RequestEvent) and 0 <= event.time_seconds < LATEST_SECONDS and key_of(event) in found:
                found[key_of(event)].note(event)
        return [session.ended() for session in found.values() if session.turns]  # a pipe cannot be read twice


def key_of(event: RequestEvent) -> Key:
    """Return the key of an event's session; events of earlier versions name no session, so each request is one."""
    call = event.call
    named = (call.team_id, call.organization_id, call.key_alias, call.client, call.model_group)
    return (call.session or call.request_id, *named)
