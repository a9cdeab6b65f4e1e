"""What survives compression, for this package and its peers: tables and a plot.

    uv run --group bench python benchmarks/fidelity.py FOLDER_OR_FILE... [--budgets 8000 16000 32000] [--steps 8]
    uv run --group bench python benchmarks/fidelity.py FOLDER --only "ctx_hooks, one fit" --results FILE
    uv run --group bench python benchmarks/fidelity.py --results FILE --plot FILE.png

Reads JSON lines with `messages`, `format` and optionally `system`. Every step measured is appended to the
results file, where it replaces the same step of an earlier run: ours change and peers are slow. Prints the tables, one over
the budgets and one over the sources; `--plot` draws the first as a picture.
Times are medians of one run; only their ratios are comparable.
"""

from __future__ import annotations

import argparse
import logging
import statistics
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from contestants import installed
from results import MEASURES, OVER_FRACTION, Result, cell, grouped, load, mean, measure, save, sessions

COLUMNS = {"recall": "recall", "in-line": "in_line", "distant": "distant", "used": "used"}
EXPLAINED = f"""\
Recall: of the names that the next step takes from its context, the share that is still there. In-line: the share that is
still there in a whole line. Distant: recall of the names that stand only before the newest messages that fit. Used: tokens,
as a share of the budget. Over budget: the share of results above {OVER_FRACTION:.2f} of the budget; the plot shows a
contestant hollow where that is more than a tenth. Broken: the share of results with unpaired calls. Milliseconds are
medians; contestants were run at different times, so only large differences mean anything.
"""
BY_SOURCE_EXPLAINED = """\
Every source, whatever the size of its sessions, at budgets of the system text and a half or a quarter of the rest of each
session, at least 2,000 tokens. Cells have recall, in-line and distant. The mean counts the sources alike; the worst source
of each column is bold. A dash: no step of the source named anything distant.
"""
OURS = ("ctx_hooks, a session", "ctx_hooks, one fit")
MOST_OVER_FRACTION = 0.1
"""A contestant that is over the budget more often than this is drawn hollow."""


def table(results: Iterable[Result]) -> str:
    """Return the results at fixed budgets as a Markdown table: means, and the median of the times."""
    lines = ["| budget | format |  | " + " | ".join([*COLUMNS, "over budget", "broken", "ms"]) + " |", "|" + "---|" * 10]
    for (budget, fmt, name), found in grouped(results, lambda r: (r.budget, r.format, r.contestant)).items():
        cells = [cell(mean(found, measured)) for measured in (*COLUMNS.values(), "over_budget", "broken")]
        lines.append(f"| {budget} | {fmt} | {name} | {' | '.join(cells)} | {statistics.median(r.ms for r in found):.0f} |")
    return "\n".join(lines)


def by_source_table(results: Iterable[Result]) -> str:
    """Return recall, in-line and distant recall of this package by source, at budgets that are shares of the session.

    The sources count alike in the mean; the worst source of each column is bold.
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


def plot(results: list[Result], path: Path) -> None:
    """Draw recall, in-line and distant recall over the budget, one line a contestant, one column a format."""
    import matplotlib as mpl  # noqa: PLC0415 - only for the picture

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    by_contestant = grouped(results, lambda r: r.contestant)
    colours = {contestant: f"C{number}" for number, contestant in enumerate(by_contestant)}
    by_format = grouped(results, lambda r: r.format)
    size = (6 * len(by_format), 11)
    figure, panels = plt.subplots(3, len(by_format), figsize=size, squeeze=False, sharex=True, sharey="row")
    for column, (fmt, of_format) in enumerate(by_format.items()):
        for row, name in enumerate(("recall", "in-line", "distant")):
            panel = panels[row][column]
            for contestant, found in grouped(of_format, lambda r: r.contestant).items():
                by_budget = grouped(found, lambda r: int(r.budget.replace(",", "")))
                values = {b: value for b in sorted(by_budget) if (value := mean(by_budget[b], COLUMNS[name])) is not None}
                hollow = [b for b in values if (mean(by_budget[b], "over_budget") or 0.0) > MOST_OVER_FRACTION]
                filled = [b for b in values if b not in hollow]
                colour = colours[contestant]
                panel.plot(list(values), list(values.values()), color=colour, linewidth=1)
                panel.plot(filled, [values[b] for b in filled], "o", color=colour)
                panel.plot(hollow, [values[b] for b in hollow], "o", color=colour, markerfacecolor="white")
            panel.set(title=f"{fmt}: {name}", xlabel="budget in tokens (hollow: over budget)")
            panel.grid(alpha=0.3)
    lines = [plt.Line2D([], [], color=colour) for colour in colours.values()]
    figure.legend(lines, colours, loc="lower center", ncols=4)
    figure.tight_layout(rect=(0, 0.05, 1, 1))
    figure.savefig(path, dpi=100)


def document(results: list[Result]) -> str:
    """Return both tables with what their columns mean."""
    fixed = [r for r in results if r.budget[:1].isdigit()]
    return f"{EXPLAINED}\n{table(fixed)}\n\n## By source\n\n{BY_SOURCE_EXPLAINED}\n{by_source_table(results)}\n"


def main() -> None:
    """Measure, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--budgets", nargs="*", type=int, default=[8_000, 16_000, 32_000])
    parser.add_argument("--steps", type=int, default=8, help="steps of each session")
    parser.add_argument("--only", nargs="+", help="contestants by name")
    parser.add_argument("--results", type=Path, help="file that results are appended to")
    parser.add_argument("--plot", type=Path, help="picture to draw")
    arguments = parser.parse_args()
    logging.disable(logging.ERROR)  # some peers log a traceback a message
    contestants = {n: c for n, c in installed().items() if not arguments.only or n in arguments.only}
    with tempfile.TemporaryDirectory() as folder:
        file = arguments.results or Path(folder) / "results.jsonl"
        for session in sessions(arguments.paths):
            for budget, tokens in session.budgets(arguments.budgets).items():
                save(measure(contestants, session, budget, tokens, arguments.steps), file)
        results = load(file)
    order = list(installed())
    results.sort(key=lambda r: (r.budget[:1].isdigit(), len(r.budget), r.budget, order.index(r.contestant), r.format))
    print(document(results))
    if arguments.plot:
        plot([r for r in results if r.budget[:1].isdigit()], arguments.plot)


if __name__ == "__main__":
    main()
