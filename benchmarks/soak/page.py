"""The tables of a soak's results, as Markdown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from capacity import DEVELOPERS, WORKERS_A_POD, Assumptions, needed, of_results

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

PLANES = ("with", "without")


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [f"| {' | '.join(head)} |", "|" + "---|" * len(head)]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def _number(value: float | None, form: str = ",.0f") -> str:
    return "–" if value is None else format(value, form)


def _time_row(name: str, row: Mapping[str, Any] | None) -> list[str]:
    if not row:
        return [name, *["–"] * 7]
    cells = [_number(row[p][m]) for m in ("median_ms", "p99_ms") for p in PLANES]
    return [name, str(row["answers"]), *cells, _number(row["added"], "+.1%"), _number(row["p99_ratio"], ".2f")]


def _ends(found: Mapping[str, int]) -> list[str]:
    known = ("right", "wrong", "mixed", "error", "refused", "left", "sent again")
    return [_number(found.get(name, 0)) for name in known]


def load(results: Mapping[str, Any]) -> str:
    """Return the section of what the load showed."""
    quiet, names = results["quiet"], results["times"]
    answered = quiet["with"]["requests"] / results["seconds"]
    steps = [_time_row(size, names[size]) for size in names]
    steps += [_time_row("recorded sessions", results["recorded"]), _time_row("compressed, 64 KB", results["compressed"])]
    used = [
        (label, *(_number(quiet[p][name], form) for p in PLANES))
        for label, name, form in (
            ("requests", "requests", ",.0f"),
            ("processor time a request, ms", "processor_ms", ",.1f"),
            ("scripts in Redis a request", "redis_scripts", ",.2f"),
            ("Redis commands a request, those in scripts included", "redis_commands", ",.1f"),
            ("processor time of Redis a request, ms", "redis_ms", ",.3f"),
            ("memory of a worker at the end, MB", "resident_mb", ",.0f"),
            ("the largest, MB", "largest_resident_mb", ",.0f"),
            ("its growth in the second half, MB an hour", "resident_mb_an_hour", "+,.0f"),
            ("open descriptors", "descriptors", ",.0f"),
            ("their growth in the second half, an hour", "descriptors_an_hour", "+,.0f"),
        )
    ]
    used.append(("event loop held up, 99th of a hundred, ms", *(_number(results["loops"][p]["p99_ms"]) for p in PLANES)))
    used.append(("the longest, ms", *(_number(results["loops"][p]["longest_ms"]) for p in PLANES)))
    counted = [(p, *_ends(results["ends"][p])) for p in PLANES]
    said = (
        f"{results['minutes']:g} minutes, {results['sessions']} sessions of {results['tenants']} tenants, "
        f"{results['rate']:g} steps a second asked for and {answered:.1f} done, {results['workers']} workers a plane. "
        "Every answer, faults included:"
    )
    explained = "Before the faults. Added is the median of the differences between the two answers to a step."
    timed = ("request", "answers", "median with, ms", "without", "p99 with, ms", "without", "added", "p99 ratio")
    tables = (
        table(("plane", "right", "wrong", "mixed", "error", "refused", "left", "sent again"), counted),
        table(timed, steps),
        table(("before the faults", *PLANES), used),
    )
    return "\n\n".join((said, tables[0], explained, *tables[1:], ended_alone(results["ended_alone"])))


def ended_alone(found: Sequence[Mapping[str, Any]]) -> str:
    """Return the sentence on the processes that ended outside a fault."""
    named = ", ".join(f"{end['name']} (status {end['status']})" for end in found)
    return f"Processes that ended outside a fault: {named or 'none'}."


def during(results: Mapping[str, Any]) -> str:
    """Return the table of the faults."""
    rows = []
    for fault in results["faults"]:
        cells = []
        for plane in PLANES:
            found = fault["ends"][plane]
            bad = sum(found.get(name, 0) for name in ("wrong", "mixed", "error"))
            times = (fault["times"] or {}).get(plane) or {"median_ms": None, "p99_ms": None}
            cells.append((found.get("right", 0), bad, found.get("sent again", 0), times))
        shown = [" / ".join(_number(c[n]) for c in cells) for n in range(3)]
        shown += [" / ".join(_number(c[3][name]) for c in cells) for name in ("median_ms", "p99_ms")]
        rows.append([fault["name"], f"{fault['seconds']:.0f} s", *shown])
    head = ["with / without", "lasted", "right", "wrong, mixed or error", "sent again", "median, ms", "p99, ms"]
    return table(head, rows)


def capacity(results: Mapping[str, Any]) -> str:
    """Return the section on capacity."""
    assumed = Assumptions()
    measured = {plane: of_results(results, plane) for plane in PLANES}
    cores = []
    for size, row in results["by_size"].items():
        rates = [_number(1e3 / row[p][name], ",.1f") for name in ("processor_ms", "first_processor_ms") for p in PLANES]
        kept = [_number(results["session_bytes"][name] / 1e3) for name in (size, f"{size} compressed")]
        cores.append([size, *rates, *kept])
    rows = []
    for developers in DEVELOPERS:
        chosen = [needed(developers, measured["with"], assumed, by_session=b) for b in (True, False)]
        without = needed(developers, measured["without"], assumed, by_session=True)
        sizes = (f"{n.pods:,} pods, {n.worker_bytes / 1e6:,.0f} MB a worker" for n in chosen)
        stored = f"{chosen[0].redis_servers}, {chosen[0].redis_bytes / 1e6:.1f} MB"
        rows.append((f"{developers:,}", f"{chosen[0].requests_a_second:,.0f}", f"{without.pods:,} pods", *sizes, stored))
    shares = ", ".join(f"{share:.0%} of {size}" for size, share in assumed.share_of_size)
    said = (
        f"Assumed: {assumed.active_fraction:.0%} of the developers have an agent at work in the busiest minute, with "
        f"{assumed.sessions_each:g} live sessions and {assumed.requests_a_minute:g} requests a minute ({shares}); cores are "
        f"used to {assumed.used_fraction:.0%}; a pod is {WORKERS_A_POD} workers on as many cores; 20 deployments."
    )
    stored = (
        f"Redis holds {results['redis']['bytes_a_deployment'] / 1e3:,.1f} KB for each deployment, and nothing for a session."
    )
    measured_head = ("request", "a second and core, session known, with", "without", "session new, with", "without")
    planned_head = ("developers", "requests a second", "without the plugin", "with it, by session", "with it, by turns")
    return "\n\n".join(
        (
            table((*measured_head, "KB of caches a live session", "compressed"), cores),
            stored,
            said.replace("%", " %"),
            table((*planned_head, "Redis servers, plugin's keys"), rows),
        )
    )


def affinity(results: Mapping[str, Any]) -> str:
    """Return the table of what affinity saves."""
    rows = []
    for row in results["affinity"]:
        times = row["times"] or {}
        cells = [_number((times.get(p) or {}).get("median_ms")) for p in PLANES]
        name = "by session" if row["by_session"] else "by turns"
        rows.append([name, *(_number(row[p], ".3f") for p in PLANES), *cells, _number(times.get("added"), "+.1%")])
    return table(["worker chosen", "cached share, with", "without", "median with, ms", "without", "added"], rows)


SECTIONS = {"load": load, "faults": during, "capacity": capacity, "affinity": affinity}


def page(results: Mapping[str, Any]) -> str:
    """Return all sections under their titles."""
    return "\n\n".join(f"## {name}\n\n{section(results)}" for name, section in SECTIONS.items())
