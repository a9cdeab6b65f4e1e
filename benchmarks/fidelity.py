"""What survives compression, for this package and its peers: a table and a plot.

    uv run --group bench python benchmarks/fidelity.py FOLDER_OR_FILE... [--budgets 8000 16000 32000] [--steps 8]

Reads JSON lines with `messages`, `format` and optionally `tools` and `system`. Writes docs/fidelity.md and
docs/fidelity.png. Times are medians of one run; only their ratios are comparable.
"""

from __future__ import annotations

import argparse
import json
import logging
import statistics
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from contestants import Contestant, installed, size, text_of
from recall import broken_pairs, kept_lines, share, steps

OVER_FRACTION = 1.02
COLUMNS = ("recall", "in-line", "distant", "used", "over budget", "broken", "ms")


@dataclass
class Score:
    """The measurements of one contestant at one budget on one format."""

    found: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def add(self, name: str, value: float | None) -> None:
        """Add a measurement; None is none."""
        if value is not None:
            self.found[name].append(value)

    def row(self) -> list[str]:
        """Return the means as cells."""
        middle = {"ms": statistics.median}
        cells = []
        for name in COLUMNS:
            values = self.found.get(name)
            digits = 0 if name == "ms" else 3
            cells.append(f"{middle.get(name, statistics.mean)(values):.{digits}f}" if values else "–")
        return cells


def sessions(paths: Sequence[Path]) -> Iterator[dict[str, Any]]:
    """Yield the conversations of files and folders."""
    for path in paths:
        for file in sorted(path.glob("*.jsonl")) if path.is_dir() else [path]:
            for line in file.read_text(encoding="utf-8").splitlines():
                session = json.loads(line)
                if isinstance(session.get("messages"), list) and session.get("format") in ("openai-chat", "anthropic"):
                    yield session


def measure(contestant: Contestant, session: dict[str, Any], budget: int, most: int, score: Score) -> None:
    """Add the measurements of one session to `score`."""
    fmt, messages = session["format"], list(session["messages"])
    if session.get("system") and fmt == "openai-chat":
        messages.insert(0, {"role": "system", "content": session["system"]})
    for step in steps(messages, budget, most):
        context = json.loads(json.dumps(step.context))
        started = time.perf_counter()
        sent = contestant(context, session.get("tools"), fmt, budget)
        score.add("ms", (time.perf_counter() - started) * 1e3)
        before, after = text_of(step.context), text_of(sent)
        score.add("recall", share(step.needed, after))
        score.add("in-line", share(step.needed, kept_lines(before, after)))
        score.add("distant", share(step.distant, after))
        used = size(sent) / budget
        score.add("used", used)
        score.add("over budget", used > OVER_FRACTION)
        score.add("broken", broken_pairs(sent, fmt))


def table(scores: dict[tuple[int, str, str], Score]) -> str:
    """Return the scores as a Markdown table."""
    lines = ["| budget | format | " + " | ".join(["", *COLUMNS]) + " |", "|" + "---|" * (len(COLUMNS) + 3)]
    lines += [f"| {b:,} | {fmt} | {name} | " + " | ".join(s.row()) + " |" for (b, fmt, name), s in scores.items() if s.found]
    return "\n".join(lines)


def plot(scores: dict[tuple[int, str, str], Score], path: Path) -> None:
    """Draw recall and in-line recall over the budget, one line a contestant, one panel a format."""
    import matplotlib as mpl  # noqa: PLC0415 - only for the picture

    mpl.use("Agg")
    from matplotlib import pyplot as plt  # noqa: PLC0415

    formats = sorted({fmt for _, fmt, _ in scores})
    figure, panels = plt.subplots(2, len(formats), figsize=(6 * len(formats), 8), squeeze=False, sharex=True)
    for column, fmt in enumerate(formats):
        for row, measure_name in enumerate(("recall", "in-line")):
            panel = panels[row][column]
            for name in dict.fromkeys(name for _, _, name in scores):
                points = [
                    (b, statistics.mean(s.found[measure_name]))
                    for (b, f, n), s in scores.items()
                    if f == fmt and n == name and s.found.get(measure_name)
                ]
                if points:
                    panel.plot(*zip(*points, strict=True), marker="o", label=name)
            panel.set(title=f"{fmt}: {measure_name}", ylim=(0, 1.02), xlabel="budget in tokens")
            panel.grid(alpha=0.3)
    panels[0][0].legend()
    figure.tight_layout()
    figure.savefig(path, dpi=110)


def main() -> None:
    """Measure, print and write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--budgets", nargs="+", type=int, default=[8_000, 16_000, 32_000])
    parser.add_argument("--steps", type=int, default=8, help="steps of each session")
    parser.add_argument("--only", nargs="+", help="contestants by name")
    parser.add_argument("--out", type=Path, default=Path(__file__).resolve().parents[1] / "docs")
    arguments = parser.parse_args()
    logging.disable(logging.ERROR)  # some peers log a traceback a message
    scores: dict[tuple[int, str, str], Score] = {}
    for budget in arguments.budgets:
        for name, contestant in installed().items():
            if arguments.only and name not in arguments.only:
                continue
            for session in sessions(arguments.paths):
                score = scores.setdefault((budget, session["format"], name), Score())
                try:
                    measure(contestant, session, budget, arguments.steps, score)
                except NotImplementedError:
                    continue
                except Exception as error:  # noqa: BLE001 - a peer that fails on a session is a result, told below
                    print(f"{name} failed on a session at {budget}: {type(error).__name__}: {error!s:.120}")
    text = table(scores)
    print(text)
    arguments.out.mkdir(exist_ok=True)
    heading = (
        "# What survives compression\n\nWritten by `benchmarks/fidelity.py`. Recall: names that the next step takes from\n"
        "its context and that are still there; in-line: in whole lines; distant: named only before the newest messages\n"
        "that fit. `broken`: share of results with unpaired calls. Milliseconds are medians of one run.\n\n"
    )
    (arguments.out / "fidelity.md").write_text(heading + text + "\n", encoding="utf-8")
    plot(scores, arguments.out / "fidelity.png")


if __name__ == "__main__":
    main()
