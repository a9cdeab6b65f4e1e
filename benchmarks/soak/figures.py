"""From what the soak has recorded to its figures: pure."""

from __future__ import annotations

import statistics
from collections import Counter
from itertools import pairwise
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from driver import Outcome

PLANES = ("with", "without")
Span = tuple[float, float]
"""From and until, as `time.time()`."""


def percentile(values: Sequence[float], fraction: float) -> float | None:
    """Return the value below which that fraction of the values is, None of no values."""
    return sorted(values)[min(len(values) - 1, int(fraction * len(values)))] if values else None


def slope_per_hour(points: Sequence[tuple[float, float]]) -> float | None:
    """Return by how much a value grows in an hour, by least squares over (seconds, value); None of fewer than three."""
    if len(points) < 3:
        return None
    return statistics.linear_regression([at for at, _ in points], [value for _, value in points]).slope * 3_600


def by_plane(outcomes: Iterable[Outcome], wanted: Callable[[Outcome], bool]) -> dict[str, list[Outcome]]:
    """Return the outcomes of each plane."""
    found: dict[str, list[Outcome]] = {plane: [] for plane in PLANES}
    for outcome in outcomes:
        if wanted(outcome):
            found[outcome.plane].append(outcome)
    return found


def ends(outcomes: Iterable[Outcome]) -> dict[str, dict[str, int]]:
    """Return how many steps ended in which way, by plane, and how many were sent more than once."""
    found = by_plane(outcomes, lambda _: True)
    again = {plane: sum(o.tries > 1 for o in of) for plane, of in found.items()}
    return {plane: dict(Counter(o.end for o in of)) | {"sent again": again[plane]} for plane, of in found.items()}


def times(outcomes: Iterable[Outcome], wanted: Callable[[Outcome], bool]) -> dict[str, Any] | None:
    """Return the milliseconds of plain answers by plane, and the ratios of the planes; None where a plane has none.

    `added` is the median of the differences of the two answers to the same step, as a share of the median without.
    """
    found = by_plane(outcomes, lambda o: o.is_plain and wanted(o))
    if not all(found.values()):
        return None
    figures: dict[str, Any] = {"answers": min(map(len, found.values()))}
    for plane, of in found.items():
        seconds = [o.seconds for o in of]
        figures[plane] = {"median_ms": statistics.median(seconds) * 1e3, "p99_ms": (percentile(seconds, 0.99) or 0.0) * 1e3}
    other = {o.nonce: o.seconds for o in found["without"]}
    pairs = [o.seconds - other[o.nonce] for o in found["with"] if o.nonce in other]
    figures["added"] = statistics.median(pairs) * 1e3 / figures["without"]["median_ms"] if pairs else None
    figures["p99_ratio"] = figures["with"]["p99_ms"] / figures["without"]["p99_ms"]
    return figures


def resources(samples: Sequence[Mapping[str, Any]], outcomes: Sequence[Outcome], span: Span) -> dict[str, Any]:
    """Return by plane what its workers used in a span: processor, memory, descriptors, and Redis commands a request.

    A sample has `at`, the figures of `workers` by plane and name, and those of `redis` by plane, None where it was down.
    """
    within = [s for s in samples if span[0] <= s["at"] <= span[1]]
    half = [s for s in within if s["at"] >= (span[0] + span[1]) / 2]
    found: dict[str, Any] = {}
    for plane in PLANES:
        requests = sum(o.plane == plane and span[0] <= o.at <= span[1] for o in outcomes) or 1
        names = sorted({name for s in within for name in s["workers"][plane]})
        used, redis = 0.0, dict.fromkeys(("commands", "scripts", "processor_seconds"), 0.0)
        for before, after in pairwise(within):
            for name in names:
                first, second = (s["workers"][plane].get(name) for s in (before, after))
                if first and second and first["pid"] == second["pid"]:
                    used += second["processor_seconds"] - first["processor_seconds"]
            if before["redis"][plane] and after["redis"][plane]:
                redis = {
                    name: so_far + after["redis"][plane][name] - before["redis"][plane][name]
                    for name, so_far in redis.items()
                }
        sizes = [w["resident_bytes"] / 1e6 for s in within for w in s["workers"][plane].values()]
        found[plane] = {
            "requests": requests,
            "processor_ms": used / requests * 1e3,
            "redis_commands": redis["commands"] / requests,
            "redis_scripts": redis["scripts"] / requests,
            "redis_ms": redis["processor_seconds"] / requests * 1e3,
            "resident_mb": mean_of(within[-3:], plane, "resident_bytes", 1e6),
            "largest_resident_mb": max(sizes, default=0.0),
            "resident_mb_an_hour": growth(half, plane, "resident_bytes", 1e6),
            "descriptors": mean_of(within[-3:], plane, "descriptors", 1),
            "descriptors_an_hour": growth(half, plane, "descriptors", 1),
        }
    return found


def mean_of(samples: Sequence[Mapping[str, Any]], plane: str, name: str, unit: float) -> float | None:
    """Return the mean of a figure over a plane's workers and samples."""
    values = [w[name] / unit for s in samples for w in s["workers"][plane].values()]
    return statistics.fmean(values) if values else None


def growth(samples: Sequence[Mapping[str, Any]], plane: str, name: str, unit: float) -> float | None:
    """Return by how much a figure of one worker grows in an hour, in the mean over a plane's workers."""
    names = {worker for s in samples for worker in s["workers"][plane]}
    points = [[(s["at"], s["workers"][plane][n][name] / unit) for s in samples if n in s["workers"][plane]] for n in names]
    slopes = [slope for of in points if (slope := slope_per_hour(of)) is not None]
    return statistics.fmean(slopes) if slopes else None


def loops(lines: Mapping[str, Sequence[Sequence[float]]], span: Span) -> dict[str, Any]:
    """Return by plane how long the loops were held up: of each few seconds [at, 99th of a hundred, longest]."""
    found: dict[str, Any] = {}
    for plane in PLANES:
        rows = [row for name, of in lines.items() if name.startswith(plane) and name[len(plane) :].isdigit() for row in of]
        rows = [row for row in rows if span[0] <= row[0] <= span[1]]
        middle = statistics.median(row[1] for row in rows) if rows else 0.0
        found[plane] = {"p99_ms": middle * 1e3, "longest_ms": max((row[2] for row in rows), default=0.0) * 1e3}
    return found


def affinity(outcomes: Iterable[Outcome]) -> list[dict[str, Any]]:
    """Return for requests that are compressed, by how the balancer chose a worker: cached share and times."""
    rows = []
    tight = [o for o in outcomes if o.kind == "tight"]
    for by_session in (False, True):
        own = [o for o in tight if o.by_session == by_session]
        row: dict[str, Any] = {"by_session": by_session, "times": times(own, lambda _: True)}
        for plane, of in by_plane(own, lambda o: o.end == "right").items():
            row[plane] = sum(o.cached_tokens for o in of) / max(1, sum(o.prompt_tokens for o in of))
        rows.append(row)
    return rows


def faults(outcomes: Sequence[Outcome], windows: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return for each fault what happened while it was there and until the next one."""
    rows = []
    for window in windows:
        own = [o for o in outcomes if window["begin"] <= o.at < window["until"]]
        row = {"name": window["name"], "seconds": window["end"] - window["begin"], "ends": ends(own)}
        rows.append(row | {"times": times(own, lambda o: o.size in ("4 KB", "64 KB")), "error": window.get("error", "")})
    return rows
