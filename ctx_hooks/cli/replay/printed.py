"""`ctx-hooks replay HISTORY...`: recorded requests as the plugin would have sent them, by several policies side by side."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table

from ctx_hooks.cli.rendering import dollars, percent, render, short, whole
from ctx_hooks.cli.replay.reading import Reading
from ctx_hooks.cli.replay.replaying import Replay, replayed
from ctx_hooks.cli.replay.sessions import Bill, Session
from ctx_hooks.cli.terminal import FAILED, as_json, console, counted, print_json, table

WITHOUT = "without ctx_hooks"
RECORDED = "as recorded"
HEADINGS = ("Policy", "Answered", "Refused", "Compacted", "Re-reads", "Prompts", "Cached", "Cost")


def run(**asked: Any) -> int:
    """Print what came of a replay; the arguments are the form of the output, and those of `replayed`."""
    reading, replay = replayed(**asked)
    if as_json():
        print_json(document(reading, replay))
    else:
        print_tables(console(), reading, replay)
    return 0 if replay.sessions else FAILED


def print_tables(out: Console, reading: Reading, replay: Replay) -> None:
    """Print what was read, the totals, and what could not be replayed; the JSON document has each session."""
    kinds = ", ".join(f"{name} ({counted(n, 'file')})" for name, n in reading.kinds.items())
    total = replay.total()
    requests = total.without.requests + total.without.refused
    out.print(f"Read: {kinds or 'nothing'}")
    out.print(f"{counted(requests, 'request')} of {counted(len(replay.sessions), 'session')}. Nothing is sent anywhere.")
    if replay.sessions:
        out.print()
        out.print(_bills(replay, total))
    unpriced = sum(max(bill.unpriced for bill in (s.without, *s.ways)) for s in replay.sessions)
    if notes := render("replay.txt", reading=reading, replay=replay, unpriced=unpriced).rstrip("\n"):
        out.print(notes)


def _bills(replay: Replay, total: Session) -> Table:
    made = table(*HEADINGS, right=tuple(range(1, len(HEADINGS))))
    made.title, made.title_justify, made.title_style = "All sessions", "left", "bold"
    if total.recorded.requests:
        made.add_row(*_cells(RECORDED, total.recorded, compactions=False))
    made.add_row(*_cells(WITHOUT, total.without, compactions=False))
    for way, bill in zip(replay.ways, total.ways, strict=True):
        made.add_row(*_cells(way.name, bill))
    return made


def _cells(name: str, bill: Bill, *, compactions: bool = True) -> tuple[str, ...]:
    cost = dollars(bill.dollars) if bill.requests > bill.unpriced else "–"
    made = (whole(bill.compactions), whole(bill.rereads)) if compactions else ("", "")
    figures = (short(bill.input_tokens), percent(bill.cached_fraction), cost)
    return name, whole(bill.requests), whole(bill.refused), *made, *figures


def document(reading: Reading, replay: Replay) -> dict[str, Any]:
    """Return the same as a JSON document, with all sessions."""
    return {
        "kinds": dict(reading.kinds),
        "policies": [way.name for way in replay.ways],
        "total": _figures(replay.total(), replay),
        "sessions": [_figures(session, replay) for session in replay.sessions],
        "left_out": dict(replay.left_out),
        "out_of_order": replay.out_of_order,
        "broken": reading.broken,
        "broken_places": reading.named,
        "not_read": reading.not_read,
    }


def _figures(session: Session, replay: Replay) -> dict[str, Any]:
    return {
        "name": session.name,
        "model": session.model,
        "window_tokens": session.window_tokens,
        "recorded": _bill(session.recorded),
        "without": _bill(session.without),
        "policies": {way.name: _bill(bill) for way, bill in zip(replay.ways, session.ways, strict=True)},
    }


def _bill(bill: Bill) -> dict[str, Any]:
    return asdict(bill) | {"cached_fraction": bill.cached_fraction}
