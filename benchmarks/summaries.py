"""What a poor summary costs: recall and prompt cache of recorded sessions, with and without model-written summaries.

    uv run --group bench python benchmarks/summaries.py SESSIONS.jsonl... [--budget 32000] [--steps 8] [--sessions 4]
    uv run --group bench --group judge python benchmarks/summaries.py SESSIONS.jsonl... --small-model --longest 35000

The summariser puts the first lines of what was said behind each other, under a title; with `--small-model` SmolLM2-135M
writes. It is asked in the background as the proxy does: after a request above the soft mark, so that the next
compaction finds what it has written. After two failures in a row a session goes on without: the proxy pauses for ten minutes
then, and a recorded session has no clock. Recall and distant recall are those of `recall.py`; the cache share is what a
prefix cache serves of all requests, in characters. `used` is the number of written summaries that a compaction has held,
`seconds each` the processor time of one that was asked for.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections import Counter as Occurrences
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

from contestants import size, text_of
from ctx_hooks.compaction.summary.state import FAILURES_TO_PAUSE
from recall import share, steps

from ctx_hooks.addons.summaries.candidates import SummaryTask, conversation_key, fitted, task_of
from ctx_hooks.addons.summaries.check import Rejected, checked
from ctx_hooks.compaction.history import History
from ctx_hooks.compaction.message_index import message_stats, request_points
from ctx_hooks.compaction.prefix_stable import compacted
from ctx_hooks.compaction.summary.model_written import (
    NO_SUMMARIES,
    Summaries,
    WrittenSummary,
)
from ctx_hooks.compaction.thresholds import Thresholds
from ctx_hooks.formats import WIRE_FORMATS
from ctx_hooks.formats.reader import MessageReader
from ctx_hooks.policy.addon_settings import SummarySettings
from ctx_hooks.tokens.budget import Budget
from ctx_hooks.tokens.counter import Counter
from ctx_hooks.tokens.units import LocalTokens, ProviderTokens
from ctx_hooks.tokens.vocabulary import DEFAULT

Summarise: TypeAlias = Callable[[SummaryTask, SummarySettings, Counter], str | Rejected]
TITLE = "## First lines"
LINE_CHARS = 160


@dataclass
class Measured:
    """What was found of the sessions in one way of compacting them."""

    recall: list[float] = field(default_factory=list)
    distant: list[float] = field(default_factory=list)
    cached_chars: int = 0
    sent_chars: int = 0
    compactions: int = 0
    held: int = 0
    summaries: Occurrences[str] = field(default_factory=Occurrences)
    used: int = 0
    seconds: list[float] = field(default_factory=list)

    def row(self, name: str) -> str:
        """Return the figures as a line of a table."""
        recalls = " | ".join(f"{mean(found):.4f} ({len(found)})" for found in (self.recall, self.distant))
        cached = self.cached_chars / max(1, self.sent_chars)
        compactions = f"{self.compactions} | {self.held}"
        written = f"{dict(self.summaries)} | {self.used} | {mean(self.seconds):.1f}"
        return f"| {name} | {recalls} | {cached:.4f} | {compactions} | {written} |"


def mean(found: list[float]) -> float:
    """Return the mean, and no number where nothing was found."""
    return statistics.mean(found) if found else float("nan")


def first_lines(task: SummaryTask, settings: SummarySettings, counter: Counter) -> str | Rejected:
    """Return the newest first lines of all that was said, as many as a summary may have, if they are accepted."""
    said = [m.text or r.text for m in task.messages for r in (*m.results, m)]
    lines = [*task.before.splitlines()[1:], *(text.strip().split("\n", 1)[0] for text in said)]
    lines = [line.strip("\"'") for line in lines]  # a line in quotation marks would be given for the user's
    short = [line if len(line) <= LINE_CHARS else line[:LINE_CHARS].rpartition(" ")[0] for line in lines]
    while counter.text("\n".join((TITLE, *short))) > settings.max_tokens:
        short = short[len(short) // 20 + 1 :]
    return checked("\n".join((TITLE, *short)), task, settings, counter)


def replayed(
    fmt: Any,
    messages: list[Any],
    budget: Budget,
    settings: SummarySettings,
    summarise: Summarise | None,
    measured: Measured,
) -> Iterator[tuple[int, list[Any]]]:
    """Yield what is sent for each request of a session, and how many messages the request came with."""
    counter, codec = budget.counter, WIRE_FORMATS[fmt]
    index = message_stats(MessageReader(fmt, messages), counter)
    summaries, failures = NO_SUMMARIES, 0
    for length in request_points(index):
        reader = MessageReader(fmt, messages[:length])
        if summarise and not summaries.conversation:
            summaries = Summaries(conversation_key(reader, "", settings))
        history = History(reader, index[:length], LocalTokens(0), b"")
        outcome, cut = compacted(history, Thresholds(budget), summaries=summaries)
        measured.compactions += cut.length == length
        if (choice := outcome.choice) is not None and choice.compaction not in summaries.chosen:
            measured.held += bool(choice.prefix)
            summaries = replace(summaries, chosen={**summaries.chosen, choice.compaction: choice.prefix})
        yield length, codec.write(outcome.conversation)
        if summarise and failures < FAILURES_TO_PAUSE and outcome.tokens_after > settings.soft_fraction * budget.goal_tokens:
            task = task_of(history, summaries, length, cut.length)
            if task is None:
                continue
            start = time.process_time()
            text = summarise(task, settings, counter)
            measured.seconds.append(time.process_time() - start)
            if isinstance(text, Rejected):
                failures += 1
                measured.summaries[text.reason] += 1
            else:
                failures = 0
                measured.summaries["accepted"] += 1
                written = WrittenSummary(task.prefix, task.length, text)
                summaries = replace(summaries, written={**summaries.written, written.prefix: written})
    measured.used += len({*summaries.chosen.values()} - {""})


def measure(
    session: dict[str, Any],
    budget: Budget,
    settings: SummarySettings,
    summarise: Summarise | None,
    most_steps: int,
    measured: Measured,
) -> None:
    """Add the figures of one session."""
    fmt, messages = session["format"], session["messages"]
    measured_steps = {len(step.context): step for step in steps(messages, budget.goal_tokens, most_steps)}
    before: list[str] = []
    for length, sent in replayed(fmt, messages, budget, settings, summarise, measured):
        written = [json.dumps(m, sort_keys=True) for m in sent]
        shared = next((i for i, (a, b) in enumerate(zip(before, written, strict=False)) if a != b), len(before))
        measured.cached_chars += sum(map(len, written[:shared]))
        measured.sent_chars += sum(map(len, written))
        before = written
        if length in measured_steps:
            step, text = measured_steps[length], text_of(sent)
            measured.recall += [found for found in [share(step.needed, text)] if found is not None]
            measured.distant += [found for found in [share(step.distant, text)] if found is not None]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--budget", type=int, default=32_000)
    parser.add_argument("--max-tokens", type=int, default=2_000, help="of a summary")
    parser.add_argument("--steps", type=int, default=8, help="steps of each session")
    parser.add_argument("--sessions", type=int, help="sessions of each file")
    parser.add_argument("--longest", type=float, default=float("inf"), help="tokens of a session; longer ones are left out")
    parser.add_argument("--small-model", action="store_true", help="SmolLM2-135M writes, beside the first lines")
    arguments = parser.parse_args()
    budget = Budget(LocalTokens(arguments.budget), ProviderTokens(arguments.budget * 5 // 4), Counter(DEFAULT))
    settings = fitted(SummarySettings(model="summariser", max_tokens=arguments.max_tokens), arguments.budget)
    ways: dict[str, Summarise | None] = {"deterministic": None, "first lines": first_lines}
    if arguments.small_model:
        from small_summariser import SmallModel  # noqa: PLC0415 - only where it was built

        ways["SmolLM2-135M"] = SmallModel(threads=1).summary
    found = {name: Measured() for name in ways}
    for path in arguments.paths:
        sessions = map(json.loads, path.read_text(encoding="utf-8").splitlines())
        fitting = (s for s in sessions if size(s["messages"]) <= arguments.longest)
        for number, session in enumerate(islice(fitting, arguments.sessions), 1):
            for name, summarise in ways.items():
                measure(session, budget, settings, summarise, arguments.steps, found[name])
                print(path.stem, number, found[name].row(name), file=sys.stderr, flush=True)
    print(
        "| summary | recall | distant recall | cache share | compactions | with a summary | written | used | seconds each |"
    )
    print("|" + "---|" * 9)
    for name, measured in found.items():
        print(measured.row(name))


if __name__ == "__main__":
    main()
