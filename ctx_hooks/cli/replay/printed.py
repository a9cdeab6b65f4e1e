"""`ctx-hooks replay HISTORY...`: recorded requests as the plugin would have sent them, by several policies side by side."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from rich.console import Console
from rich.table import Table

from ctx_hooks.cli.rendering import dollars, percent, short, whole
from ctx_hooks.cli.replay.reading import Reading
from ctx_hooks.cli.replay.replaying import Replay, replayed
from ctx_hooks.cli.replay.sessions import Bill
from ctx_hooks.cli.terminal import FAILED, as_json, console, counted, print_json, table

WITHOUT = "without ctx_hooks"
RECORDED = "as recorded"
HEADINGS = ("Policy", "Answered", "Refused", "Compacted", "Re-reads", "Prompts", "Cached", "Cost")


def run(**asked: Any) -> int:
    """Print the result of a replay; the arguments are the form of the output, and those of `replayed`."""
    reading, replay = replayed(**asked)
    if as_json():
        print_json(document(reading, replay))
    else:
        print_tables(console(), reading, replay)
    return 0 if replay.sessions else FAILED


def print_tables(out: Console, reading: Reading, replay: Replay) -> None:
    """Print the files read, the figures of each way, and the rows that could not be replayed."""
    kinds = ", ".join(f"{name} ({counted(n, 'file')})" for name, n in reading.kinds.items())
    requests = replay.bills[0].requests + replay.bills[0].refused
    out.print(f"Read: {kinds or 'nothing'}")
    out.print(f"{counted(requests, 'request')} of {counted(replay.sessions, 'session')}. Nothing is sent anywhere.")
    if replay.sessions:
        out.print()
        out.print(_bills(replay))
    for note in _notes(reading, replay):
        out.print(f"\n{note}")


def _notes(reading: Reading, replay: Replay) -> Iterator[str]:
    """Yield what the figures do not include, and why."""
    if unpriced := max(bill.unpriced for bill in replay.bills):
        yield f"LiteLLM knows no price of the model of {counted(unpriced, 'request')}; name another one with --model."
    if replay.out_of_order:
        yield f"{counted(replay.out_of_order, 'request')} follow a later one of their session: sort the export by time."
    for reason, count in replay.left_out.items():
        yield f"Left out: {count:,} {reason}."
    if reading.broken:
        yield "\n  ".join((f"{counted(reading.broken, 'place')} cannot be read:", *reading.named))
    if reading.not_read:
        yield "\n  ".join(("Files that cannot be read:", *reading.not_read))


def _bills(replay: Replay) -> Table:
    made = table(*HEADINGS, right=tuple(range(1, len(HEADINGS))))
    if replay.recorded.requests:
        made.add_row(*_cells(RECORDED, replay.recorded, compactions=False))
    made.add_row(*_cells(WITHOUT, replay.bills[0], compactions=False))
    for way, bill in zip(replay.ways, replay.bills[1:], strict=True):
        made.add_row(*_cells(way.name, bill))
    return made


def _cells(name: str, bill: Bill, *, compactions: bool = True) -> tuple[str, ...]:
    cost = dollars(bill.dollars) if bill.requests > bill.unpriced else "–"
    made = (whole(bill.compactions), whole(bill.rereads)) if compactions else ("", "")
    figures = (short(bill.input_tokens), percent(bill.cached_fraction), cost)
    return name, whole(bill.requests), whole(bill.refused), *made, *figures


def document(reading: Reading, replay: Replay) -> dict[str, Any]:
    """Return the same as a JSON document."""
    without, *tried = map(_bill, replay.bills)
    return {
        "kinds": dict(reading.kinds),
        "sessions": replay.sessions,
        "total": {
            "recorded": _bill(replay.recorded),
            "without": without,
            "policies": {way.name: bill for way, bill in zip(replay.ways, tried, strict=True)},
        },
        "left_out": dict(replay.left_out),
        "out_of_order": replay.out_of_order,
        "broken": reading.broken,
        "broken_places": reading.named,
        "not_read": reading.not_read,
    }


def _bill(bill: Bill) -> dict[str, Any]:
    return asdict(bill) | {"cached_fraction": bill.cached_fraction}
