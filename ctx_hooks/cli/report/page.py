"""`ctx-hooks report`: figures of events in bounded memory, and a page of HTML that runs and fetches nothing."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, get_args

import click

from ctx_hooks.cli.configuration import STDIN
from ctx_hooks.cli.rendering import all_steps, render
from ctx_hooks.cli.report.event_files import event_files, read_events
from ctx_hooks.cli.report.sessions import MARKS, Largest, Session
from ctx_hooks.cli.terminal import CommandError, counted, tell, working
from ctx_hooks.telemetry.events import AnswerEvent, DecisionEvent, FailureEvent, Outcome, RequestEvent
from ctx_hooks.telemetry.listeners import Event

MOST_ROWS = 14
"""Rows of a table, or two weeks of days; further names share one row."""
WORDS = {
    "overflow": "Attempts that a provider refused as too long",
    "rejection": "Changed requests that a provider refused as invalid",
    "limit_learned": "Limits learned from providers",
    "summary": "Summaries requested from a model",
    "retrieval": "Calls of the retrieval tool",
    "compaction_item": "Compaction items that clients asked for or sent",
    "archive": "Batches of texts sent to the archive",
    "fault": "Faults of the plugin",
    "settings_ignored": "Requests with ignored settings",
    "start": "Starts of a worker",
}
"""The rarer events."""
SHORTER = ("compressed", "retried")
TOO_LONG = ("over_budget", "fallback", "failed", *SHORTER)
"""The outcomes of requests that are too long for their model."""


class Counts(dict[str, float]):
    """Sums over requests by name, 0 for a name that was never counted.

    - `requests`, `answers`, `too_long`, `shorter`, and each outcome by its own name; `rereads`;
    - `sent_shorter`: of the failed requests, those that were compressed, or would have been;
    - `tokens_saved`, `input_tokens`, `cached_tokens`: of the bills, in provider tokens;
    - `dollars_saved`: of the requests that saved; `dollars_spent`: of the `dear` requests, which cost more, below zero;
      `unpriced`: shorter requests whose dollars are not known.
    """

    def __missing__(self, name: str) -> float:
        return 0

    def __add__(self, other: "Counts") -> "Counts":
        return Counts({name: self[name] + other[name] for name in {**self, **other}})

    @property
    def dollars(self) -> float:
        """The total saved."""
        return self["dollars_saved"] + self["dollars_spent"]

    @property
    def cache_fraction(self) -> float | None:
        """The share of billed input that the prompt cache served; None if none was billed."""
        return self["cached_tokens"] / self["input_tokens"] if self["input_tokens"] else None

    def count(self, event: AnswerEvent | FailureEvent) -> None:
        """Add a request by its end."""
        is_shorter = event.decision in SHORTER
        self["requests"] += 1
        self[event.decision] += 1
        self["too_long"] += event.decision in TOO_LONG
        self["shorter"] += is_shorter
        if isinstance(event, FailureEvent):
            self["sent_shorter"] += event.decided in SHORTER
            return
        dollars = event.dollars_saved or 0.0
        self["answers"] += 1
        self["rereads"] += sum(event.rereads.values())
        self["tokens_saved"] += event.provider_tokens_saved or 0
        self["unpriced"] += is_shorter and event.dollars_saved is None
        self["dollars_saved"] += max(0.0, dollars)
        self["dollars_spent"] += min(0.0, dollars)
        self["dear"] += dollars < 0
        if event.billed is not None:
            self["input_tokens"] += event.billed.input_tokens
            self["cached_tokens"] += event.billed.cached_tokens


MOST_NAMES = 5_000
"""Names of one table; further ones are counted together: callers choose names of models."""
OTHERS = "all others"


@dataclass(slots=True)
class Sums:
    """The sums over the requests of one mode: all, and by requested model group, team and day in UTC."""

    total: Counts = field(default_factory=Counts)
    by_name: dict[str, dict[str, Counts]] = field(default_factory=lambda: {"Model group": {}, "Team": {}, "Day": {}})

    def count(self, event: AnswerEvent | FailureEvent) -> None:
        """Add a request by its end."""
        self.total.count(event)
        call, day = event.call, datetime.fromtimestamp(event.time_seconds, timezone.utc).date()
        names = (call.model_group or call.model, call.team_alias or call.team_id, day.isoformat())
        for counts, name in zip(self.by_name.values(), names, strict=True):
            shown = name if name in counts or len(counts) < MOST_NAMES else OTHERS
            counts.setdefault(shown, Counts()).count(event)


@dataclass(slots=True)
class Figures:
    """Everything that the page shows.

    `done` has the sums of enforced requests, `would` those of observed ones as they would have been.
    `notable` has other events by name; `step_times` and `step_tokens` each step's requests and removed tokens.
    """

    events: int = 0
    unreadable: int = 0
    first_seconds: float | None = None
    last_seconds: float | None = None
    done: Sums = field(default_factory=Sums)
    would: Sums = field(default_factory=Sums)
    notable: Counter[str] = field(default_factory=Counter)
    step_times: Counter[str] = field(default_factory=Counter)
    step_tokens: Counter[str] = field(default_factory=Counter)
    largest: Largest = field(default_factory=Largest)

    def count(self, event: Event | None) -> None:
        """Add one event, None for a line that is none."""
        if event is None:
            self.unreadable += 1
            return
        self.events += 1
        if isinstance(event, RequestEvent):
            at = event.time_seconds
            self.first_seconds = min(at, self.first_seconds or at)
            self.last_seconds = max(at, self.last_seconds or at)
        if isinstance(event, (AnswerEvent, FailureEvent)):
            (self.done if event.mode == "enforce" else self.would).count(event)
        elif isinstance(event, DecisionEvent):
            saved = (event.provider_tokens_before or 0) - (event.provider_tokens_after or 0)
            for step in all_steps(event.steps, saved):
                self.step_times[step.name] += 1
                self.step_tokens[step.name] += step.tokens_saved
            self.largest.note(event)
        else:
            self.notable[event.name] += 1


def run(*, events: Sequence[str], output: Path) -> None:
    """Write the report of files, folders and patterns; raises CommandError, or OSError, if there is no event to read."""
    paths = event_files(events)
    files, figures = counted(len(paths), "file"), Figures()
    with working(f"Reading {files}"):
        for event in read_events(paths):
            figures.count(event)
        sessions = figures.largest.sessions(read_events(paths))
    if not figures.events:
        read = f"; {counted(figures.unreadable, 'line')} of something else" if figures.unreadable else ""
        raise CommandError(f"{' '.join(events)}: no events{read}. {output} is left as it is.")
    made = page(figures, sessions)
    if output == STDIN:
        click.echo(made)
        return
    output.write_text(made, encoding="utf-8")
    written = {"events": figures.events, "files": len(paths), "unreadable_lines": figures.unreadable}
    missing = f"; left out: {counted(figures.unreadable, 'line')}, no events" if figures.unreadable else ""
    tell({"output": str(output), **written}, f"{output}: {counted(figures.events, 'event')} of {files}{missing}")


def page(figures: Figures, sessions: Sequence[Session] = ()) -> str:
    """Return the page of figures, and of the sessions with the largest cuts."""
    return render("report.html", sessions=sessions, marks=MARKS, **shown(figures))


def shown(figures: Figures) -> dict[str, Any]:
    """Return what the template of figures needs, for the report and for the live page."""
    sums = {"done": figures.done, "would": figures.would}
    return {
        "figures": figures,
        "modes": {style: each.total for style, each in sums.items() if each.total},
        "tables": {s: {title: _rows(title, named) for title, named in each.by_name.items()} for s, each in sums.items()},
        "outcomes": get_args(Outcome),
        "steps": figures.step_tokens.most_common(MOST_ROWS),
        "notable": [(WORDS.get(name, name), times) for name, times in sorted(figures.notable.items())],
    }


def _rows(title: str, named: Mapping[str, Counts]) -> list[tuple[str, Counts]]:
    """Return the rows of a table, those that save most or the latest days first; the last one sums up all further names."""
    by_savings = sorted(named, key=lambda name: (-named[name]["tokens_saved"], -named[name]["requests"], name))
    ordered = [(name, named[name]) for name in (sorted(named, reverse=True) if title == "Day" else by_savings)]
    further = [counts for _, counts in ordered[MOST_ROWS:]]
    return ordered[:MOST_ROWS] + ([(f"{len(further):,} more", sum(further, Counts()))] if further else [])
