"""Cross-validation over the sources of recorded sessions: a fold leaves one source out.

    uv run --group bench python benchmarks/folds.py FOLDER_OR_FILE... [--steps 4]

For each constant of the selection that was chosen by measurement, and each source: the value that is best on all other
sources, and what it gives on the one left out, against the value that the package has. A constant whose neighbours give
the same on every fold is no tuned figure; one whose chosen values differ from fold to fold fits its sources alone.
`fidelity.py` prints the other table of this module: what the package's values give on each source.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from contestants import MODEL
from results import MEASURES, Result, Session, cell, grouped, mean, measure, sessions

import ctx_hooks
from ctx_hooks.compaction.selection import apply, order, scoring
from ctx_hooks.compaction.summary import extractive
from ctx_hooks.policy.settings import DEFAULT_POLICY
from ctx_hooks.tokens.budget import LARGEST_KEPT_FRACTION, Policy

OURS = ("ctx_hooks, a session", "ctx_hooks, one fit")


@dataclass(frozen=True)
class Constant:
    """A constant, where it stands, and the values to try beside its own."""

    module: ModuleType
    name: str
    values: tuple[float, ...]

    @property
    def default(self) -> float:
        """The value that the package has."""
        return getattr(self.module, self.name)

    @contextmanager
    def set_to(self, value: float) -> Iterator[None]:
        """Give it another value for a while."""
        default = self.default
        setattr(self.module, self.name, value)
        try:
            yield
        finally:
            setattr(self.module, self.name, default)


CONSTANTS = (
    Constant(order, "USED_VALUE", (3.0, 5.0, 9.0, 15.0, 25.0)),
    Constant(order, "NEWEST_VALUE", (0.0, 20.0, 60.0, 100.0)),
    Constant(scoring, "WHOLE_TEXT_CHARS", (300, 600, 1_200, 2_400)),
    Constant(scoring, "MOST_ARGUMENT_CHARS", (500, 1_000, 2_000, 4_000)),
    Constant(apply, "BEGINNING_CHARS", (60, 120, 240)),
    Constant(extractive, "SUMMARY_FRACTION", (0.0, 0.025, 0.05, 0.1)),
)


def folds_table(results: Iterable[Result]) -> str:
    """Return recall, in-line and distant recall of this package by source, at budgets that are shares of the session.

    The sources count alike in the mean; the worst fold of each column is bold.
    """
    ours = [r for r in results if r.contestant in OURS and not r.budget[:1].isdigit()]
    columns = [(budget, name) for budget in dict.fromkeys(r.budget for r in ours) for name in OURS]
    sources = grouped(ours, lambda r: r.source)
    values = {
        source: [
            mean((r for r in found if (r.budget, r.contestant) == column), measured)
            for column in columns
            for measured in MEASURES
        ]
        for source, found in sources.items()
    }
    worst = [min((v for v in column if v is not None), default=None) for column in zip(*values.values(), strict=True)]
    heads = [f"{name.removeprefix('ctx_hooks, ')}, {budget}" for budget, name in columns]
    lines = ["| source | " + " | ".join(heads) + " |", "|" + "---|" * (1 + len(heads))]
    for source, row in values.items():
        cells = [f"**{cell(v)}**" if v is not None and v == least else cell(v) for v, least in zip(row, worst, strict=True)]
        lines.append(f"| {source} | {_in_columns(cells)} |")
    means = [statistics.fmean([v for v in c if v is not None] or [0.0]) for c in zip(*values.values(), strict=True)]
    return "\n".join([*lines, f"| mean | {_in_columns([cell(v) for v in means])} |"])


def _in_columns(cells: Sequence[str]) -> str:
    """Return the figures with those of one column in one cell."""
    return " | ".join(", ".join(cells[i : i + len(MEASURES)]) for i in range(0, len(cells), len(MEASURES)))


def score(results: Sequence[Result]) -> float:
    """Return what a value is chosen by: the mean of recall, in-line recall and, where there is any, distant recall."""
    return statistics.fmean([v for measured in MEASURES if (v := mean(results, measured)) is not None] or [0.0])


def scores_by_source(found: Sequence[Session], steps: int, fixed: Sequence[int], policy: Policy) -> dict[str, float]:
    """Return the score of one fit on each source."""

    def fitted(messages: list[Any], tools: Any, fmt: str, budget: int) -> list[Any]:
        return ctx_hooks.compress(
            messages,
            format=fmt,
            budget_tokens=budget,
            window_tokens=budget * 5 // 4,
            tools=tools,
            model=MODEL,
            policy=policy,
        ).messages

    results = [
        result
        for session in found
        for budget, tokens in session.budgets(fixed).items()
        for result in measure({"one fit": fitted}, session, budget, tokens, steps)
    ]
    return {source: score(of_source) for source, of_source in grouped(results, lambda r: r.source).items()}


def chosen_values(by_value: dict[float, dict[str, float]], default: float) -> Iterator[tuple[str, float, float, float]]:
    """Yield for each source the value that is best on the others, what it gives on the source, and what the default gives.

    Of values that are equally good on the others the one nearest to the default is chosen.
    """
    for left_out in by_value[default]:

        def on_the_others(value: float, left_out: str = left_out) -> tuple[float, float]:
            others = statistics.fmean(v for source, v in by_value[value].items() if source != left_out)
            return round(others, 4), -abs(value - default)

        best = max(by_value, key=on_the_others)
        yield left_out, best, by_value[best][left_out], by_value[default][left_out]


def choices_table(name: str, by_value: dict[float, dict[str, float]], default: float) -> str:
    """Return the folds of one constant as a Markdown table, and the mean of each value over the sources."""
    means = ", ".join(f"{value:g}: {statistics.fmean(scores.values()):.4f}" for value, scores in by_value.items())
    lines = [f"`{name}`, {default:g} in the package. Means over the sources: {means}.", ""]
    lines += ["| left out | best on the others | gives | default gives |", "|---|---|---|---|"]
    rows = list(chosen_values(by_value, default))
    lines += [f"| {source} | {value:g} | {given:.4f} | {own:.4f} |" for source, value, given, own in rows]
    lines.append(f"| mean | | {statistics.fmean(r[2] for r in rows):.4f} | {statistics.fmean(r[3] for r in rows):.4f} |")
    return "\n".join(lines)


def main() -> None:
    """Print one table a constant."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--steps", type=int, default=4, help="steps of each session")
    parser.add_argument("--budgets", nargs="*", type=int, default=[16_000], help="beside the shares of each session")
    parser.add_argument("--only", nargs="+", help="constants by name")
    arguments = parser.parse_args()
    found = list(sessions(arguments.paths))

    def measured(policy: Policy = DEFAULT_POLICY) -> dict[str, float]:
        return scores_by_source(found, arguments.steps, arguments.budgets, policy)

    def wanted(name: str) -> bool:
        return not arguments.only or name in arguments.only

    defaults = measured()
    for constant in CONSTANTS:
        if wanted(constant.name):
            by_value = {constant.default: defaults}
            for value in set(constant.values) - {constant.default}:
                with constant.set_to(value):
                    by_value[value] = measured()
            by_value = dict(sorted(by_value.items()))
            print(choices_table(constant.name, by_value, constant.default), end="\n\n", flush=True)
    if wanted("keep_recent"):
        shares = (0.0, 0.1, 0.2, 0.3, 0.5)
        by_value = {s: measured(DEFAULT_POLICY.model_copy(update={"keep_recent": f"{s:.0%}"})) for s in shares}
        print(choices_table("keep_recent", by_value, LARGEST_KEPT_FRACTION), flush=True)


if __name__ == "__main__":
    main()
