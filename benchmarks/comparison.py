"""The measured tables beside other tools, as Markdown: this package and others on the same requests and budgets.

    uv run --group bench python benchmarks/comparison.py FOLDER_OR_FILE... [--budget 32000] [--results FILE]
    uv run --group bench python benchmarks/comparison.py --parts recovery

Reads sessions as benchmarks/fidelity.py does; a results file of it spares what it holds. The parts:

- fidelity: what survives, by the metrics of benchmarks/fidelity.py, at the budget.
- requests: a session's requests one by one from the first that exceeds the budget: cache share and price.
- time: processor time of 150,000 tokens to 32,000, over that of litellm.compress on the same messages: generated sessions
  and those of the files that are as large.
- recovery: whether an overflow is answered, through real proxies.
"""

from __future__ import annotations

import argparse
import logging
import platform
import statistics
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import recovery
import request_costs
import speed
from contestants import Contestant, installed, litellm_compress, tokens
from request_costs import Requests
from results import Result, Session, cell, files, grouped, load, mean, measure, save, sessions

from ctx_hooks.runtime import content_cache

ALONE = "LiteLLM alone"
REFERENCE = "litellm.compress"
FORMATS = ("openai-chat", "anthropic")
"""In the order of a cell's two figures."""
PACKAGES = ("ctx-hooks", "litellm", "headroom-ai", "langchain", "langchain-core")
COLUMNS = {
    "recall": "recall",
    "whole lines": "in_line",
    "distant": "distant",
    "over budget": "over_budget",
    "unpaired": "broken",
}


def contestants(only: Sequence[str]) -> dict[str, Contestant]:
    """Return LiteLLM alone, which forwards what it is given, and the contestants of these names, or all."""
    found = {name: contestant for name, contestant in installed().items() if not only or name in only}
    return {ALONE: lambda messages, *_: messages} | found


def versions() -> str:
    """Return the versions that are compared."""
    found = [f"Python {platform.python_version()}"]
    for package in PACKAGES:
        try:
            found.append(f"{package} {version(package)}")
        except PackageNotFoundError:
            found.append(f"{package} not installed")
    return ", ".join(found)


def row(name: str, *columns: Sequence[str]) -> str:
    """Return a row of a table whose cells hold a figure of each format."""
    return f"| {name} | {' | '.join(' / '.join(figures) for figures in columns)} |"


def head(*names: str) -> list[str]:
    """Return a table's first lines."""
    return [f"| | {' | '.join(names)} |", "|" + "---|" * (len(names) + 1)]


def fidelity(compared: dict[str, Contestant], found: Iterable[Session], budget_tokens: int, most: int, file: Path) -> str:
    """Return what survives at the budget; contestants that the file knows at this budget are not measured again."""
    budget = f"{budget_tokens:,}"
    known = {r.contestant for r in load(file) if r.budget == budget} if file.exists() else set()
    missing = {name: contestant for name, contestant in compared.items() if name not in known}
    for session in found:
        save(measure(missing, session, budget, budget_tokens, most), file)
    results = grouped([r for r in load(file) if r.budget == budget], lambda r: (r.contestant, r.format))
    lines = head(*COLUMNS, "steps")
    for name in compared:
        of_formats: list[list[Result]] = [results.get((name, fmt), []) for fmt in FORMATS]
        shares = [[cell(mean(found, attribute)) for found in of_formats] for attribute in COLUMNS.values()]
        lines.append(row(name, *shares, [str(len(found) or "–") for found in of_formats]))
    return "\n".join(lines)


def requests(compared: dict[str, Contestant], found: Iterable[Session], budget_tokens: int, most: int) -> str:
    """Return cache share and price of sessions' requests behind each contestant; one that fails has fewer of them."""
    sums: dict[tuple[str, str], Requests] = defaultdict(Requests)
    unchanged: dict[tuple[str, str], Requests] = defaultdict(Requests)  # of LiteLLM alone, for the same requests
    for session in found:
        contexts = request_costs.contexts(session, budget_tokens, most)
        forwarded = Requests()
        for name, contestant in compared.items() if contexts else ():
            try:
                sent = request_costs.measured(name, contestant, session, contexts, budget_tokens)
            except NotImplementedError:
                continue
            except Exception as error:  # noqa: BLE001 - a peer that fails on a session is a result of its own
                print(f"{name} failed on {session.source} {session.number}: {type(error).__name__}: {error!s:.120}")
                continue
            forwarded = sent if name == ALONE else forwarded
            sums[name, session.format] += sent
            unchanged[name, session.format] += forwarded
    lines = head("over budget", "cache share", "price", "requests")
    for name in compared:
        keys = [(name, fmt) for fmt in FORMATS]
        columns = (
            [ratio(sums[key].over_budget, sums[key].number) for key in keys],
            [ratio(sums[key].cached_tokens, sums[key].tokens) for key in keys],
            [ratio(sums[key].usd, unchanged[key].usd) for key in keys],
            [str(sums[key].number or "–") for key in keys],
        )
        lines.append(row(name, *columns))
    return "\n".join(lines)


def ratio(part: float, whole: float) -> str:
    """Return a ratio as a table shows it."""
    return f"{part / whole:.2f}" if whole else "–"


def forget() -> None:
    """Empty the caches: the package's, and the token counts that some contestants are given."""
    content_cache.clear_all()
    tokens.cache_clear()


def times(compared: dict[str, Contestant], paths: list[Path]) -> str:
    """Return the processor time of each contestant over that of litellm.compress: the median of the sessions it takes."""
    sources = {"generated": speed.sessions([]), "recorded": speed.sessions(files(paths)) if paths else ()}
    ratios: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for source, found in sources.items():
        for session, fmt, messages in found:
            try:
                taken = {n: milliseconds(c, fmt, messages) for n, c in ({REFERENCE: litellm_compress} | compared).items()}
            except Exception as error:  # noqa: BLE001 - litellm.compress fails on messages whose content is null
                print(f"{session} is left out: {type(error).__name__}: {error!s:.120}")
                continue
            for name, spent in taken.items():
                if spent is not None:
                    ratios[source, name, fmt].append(spent / taken[REFERENCE])
    lines = head(*sources)
    for name in compared:
        columns = ([ratios[source, name, fmt] for fmt in FORMATS] for source in sources)
        lines.append(row(name, *([f"{statistics.median(r):.2f}" if r else "–" for r in found] for found in columns)))
    return "\n".join(lines)


def milliseconds(contestant: Contestant, fmt: str, messages: list[Any]) -> float | None:
    """Return the least processor milliseconds from empty caches; None for a format that the contestant does not know."""
    try:
        return speed.least(lambda: contestant(messages, None, fmt, speed.BUDGET_TOKENS), forget)
    except NotImplementedError:
        return None


PARTS = ("fidelity", "requests", "time", "recovery")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--budget", type=int, default=32_000)
    parser.add_argument("--steps", type=int, default=8, help="steps of each session")
    parser.add_argument("--requests", type=int, default=40, help="requests of each session")
    parser.add_argument(
        "--results", type=Path, help="file of benchmarks/fidelity.py that results are read from and appended to"
    )
    parser.add_argument("--only", nargs="+", default=[], help="contestants by name, beside LiteLLM alone")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    arguments = parser.parse_args()
    logging.disable(logging.ERROR)  # some peers log a traceback a message
    print(versions())
    compared = contestants(arguments.only)
    with tempfile.TemporaryDirectory() as folder:
        file = arguments.results or Path(folder) / "results.jsonl"
        tables = {
            "fidelity": lambda: fidelity(compared, sessions(arguments.paths), arguments.budget, arguments.steps, file),
            "requests": lambda: requests(compared, sessions(arguments.paths), arguments.budget, arguments.requests),
            "time": lambda: times(compared, arguments.paths),
            "recovery": recovery.table,
        }
        for part in arguments.parts:
            print(f"\n{part}\n\n{tables[part]()}", flush=True)


if __name__ == "__main__":
    main()
