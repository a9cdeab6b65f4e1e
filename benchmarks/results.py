"""Measurements of contestants on recorded sessions, a record a step, saved as JSON lines.

A run that is repeated for some contestants is appended to the file of the first: of several records of the same step the
last one counts.
"""

from __future__ import annotations

import json
import statistics
import time
from collections import defaultdict
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from contestants import Contestant, size, text_of
from recall import broken_pairs, kept_lines, share, steps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

OVER_FRACTION = 1.02
FRACTIONS = {"a half": 0.5, "a quarter": 0.25}
"""Budgets as shares of a session's tokens, by their names, so that small sessions take part."""
LEAST_TOKENS = 2_000
"""The least budget of these: in less, what is protected leaves no room to choose."""
MEASURES = ("recall", "in_line", "distant")


@dataclass(frozen=True, slots=True)
class Result:
    """What one contestant did at one step of a session.

    Attributes:
        source: the file that the session stands in, without its suffix.
        session: the number of its line there.
        format: of its messages.
        contestant: the contestant's name.
        budget: the budget as it is named: a number of tokens, or a share of the session.
        step: the index of the assistant's message that was to come next.
        recall, in_line, distant: shares of the names that it needs; None where it needs none.
        used: the tokens sent as a share of the budget.
        broken: whether a call has lost its result or a result its call.
        ms: the milliseconds taken.
    """

    source: str
    session: int
    format: str
    contestant: str
    budget: str
    step: int
    recall: float | None
    in_line: float | None
    distant: float | None
    used: float
    broken: bool
    ms: float

    @property
    def over_budget(self) -> bool:
        """Whether more than the budget was sent, counted alike for all."""
        return self.used > OVER_FRACTION


@dataclass(frozen=True, slots=True)
class Session:
    """A recorded session, its system text among its messages where the format has it there."""

    source: str
    number: int
    format: str
    messages: list[Any]

    def budgets(self, fixed: Sequence[int]) -> dict[str, int]:
        """Return the budgets to measure by their names: fixed ones, and the system text with shares of what follows it."""
        system = size([m for m in self.messages if m.get("role") == "system"])
        rest = size(self.messages) - system
        shares = {name: max(LEAST_TOKENS, system + int(rest * fraction)) for name, fraction in FRACTIONS.items()}
        return {f"{tokens:,}": tokens for tokens in fixed} | shares


def files(paths: Sequence[Path]) -> list[Path]:
    """Return files, and those of folders."""
    return [file for path in paths for file in (sorted(path.glob("*.jsonl")) if path.is_dir() else [path])]


def sessions(paths: Sequence[Path]) -> Iterator[Session]:
    """Yield the sessions of files and folders."""
    for file in files(paths):
        for number, line in enumerate(file.read_text(encoding="utf-8").splitlines()):
            session = json.loads(line)
            messages, fmt = session.get("messages"), session.get("format")
            if not isinstance(messages, list) or fmt not in ("openai-chat", "anthropic"):
                continue
            if session.get("system") and fmt == "openai-chat":
                messages = [{"role": "system", "content": session["system"]}, *messages]
            yield Session(file.stem, number, fmt, messages)


def measure(
    contestants: dict[str, Contestant], session: Session, budget: str, budget_tokens: int, most: int
) -> Iterator[Result]:
    """Yield what each contestant does at up to `most` steps of a session; a failure is printed and yields nothing.

    The budget is that of the messages: definitions of tools, which some contestants count and others do not, are left out.
    """
    for step in steps(session.messages, budget_tokens, most):
        before = text_of(step.context)
        for name, contestant in contestants.items():
            context = json.loads(json.dumps(step.context))
            started = time.perf_counter()
            try:
                sent = contestant(context, None, session.format, budget_tokens)
            except NotImplementedError:
                continue
            except Exception as error:  # noqa: BLE001 - a peer that fails on a session is a result of its own
                print(f"{name} failed on {session.source} {session.number}: {type(error).__name__}: {error!s:.120}")
                continue
            ms = (time.perf_counter() - started) * 1e3
            after = text_of(sent)
            yield Result(
                session.source,
                session.number,
                session.format,
                name,
                budget,
                len(step.context),
                share(step.needed, after),
                share(step.needed, kept_lines(before, after)),
                share(step.distant, after),
                size(sent) / budget_tokens,
                broken_pairs(sent, session.format),
                ms,
            )


def save(results: Iterable[Result], path: Path) -> None:
    """Append results to a file."""
    with path.open("a", encoding="utf-8") as file:
        file.writelines(json.dumps(asdict(result)) + "\n" for result in results)


def load(path: Path) -> list[Result]:
    """Return the results of a file, the last one of each step."""
    found = [Result(**json.loads(line)) for line in path.read_text(encoding="utf-8").splitlines()]
    return list({replace(r, recall=None, in_line=None, distant=None, used=0, broken=False, ms=0): r for r in found}.values())


def mean(results: Iterable[Result], measured: str) -> float | None:
    """Return the mean of an attribute over the results that have it; None for none."""
    values = [value for r in results if (value := getattr(r, measured)) is not None]
    return statistics.fmean(values) if values else None


def grouped(results: Iterable[Result], key: Callable[[Result], Any]) -> dict[Any, list[Result]]:
    """Return the results by a key, in the order of their first."""
    groups: dict[Any, list[Result]] = defaultdict(list)
    for result in results:
        groups[key(result)].append(result)
    return groups


def cell(value: float | None) -> str:
    """Return a share as a table shows it."""
    return "–" if value is None else f"{value:.3f}"
