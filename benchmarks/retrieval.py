"""What a model can reach that may retrieve once: recall of recorded sessions, counting what a handle reaches.

    uv run --group bench python benchmarks/retrieval.py SESSIONS.jsonl... [--budget 16000] [--steps 4] [--sessions 100]

Recall and distant recall are those of `recall.py`, of what is sent without references, of what is sent with them, and of
that together with the texts that its handles reach: all of them, and the one that holds most of what the next step names.
"""

from __future__ import annotations

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

from contestants import text_of
from recall import Step, share, steps

from ctx_hooks.compaction.history import history_of
from ctx_hooks.compaction.message_index import message_stats
from ctx_hooks.compaction.prefix_stable import compacted
from ctx_hooks.compaction.thresholds import Thresholds
from ctx_hooks.conversation.cut_texts import CutTexts, Handles
from ctx_hooks.formats import WIRE_FORMATS
from ctx_hooks.formats.reader import MessageReader
from ctx_hooks.policy.settings import DEFAULT_POLICY
from ctx_hooks.tokens.budget import Budget, target_tokens_of
from ctx_hooks.tokens.counter import DEFAULT, Counter
from ctx_hooks.tokens.units import LocalTokens, ProviderTokens

COLUMNS = ("without references", "with references", "and one handle", "and all handles")


def measured(step: Step, fmt: Any, budget_tokens: int, *, is_stable: bool) -> list[str]:
    """Return the text of each column."""
    counter = Counter(DEFAULT)
    reader = MessageReader(fmt, step.context)
    history = history_of(reader, message_stats(reader, counter), counter)

    def sent(cut_texts: CutTexts | None) -> tuple[str, dict[str, str]]:
        goal = LocalTokens(budget_tokens)
        budget = Budget(goal, ProviderTokens(budget_tokens), counter, cut_texts=cut_texts)
        target = target_tokens_of(goal, DEFAULT_POLICY, history.fixed_tokens) if is_stable else goal
        outcome, _ = compacted(history, Thresholds(budget, target))
        return text_of(WIRE_FORMATS[fmt].write(outcome.conversation)), dict(outcome.cut)

    without, _ = sent(None)
    referring, cut = sent(CutTexts(Handles(b"benchmark"), 7, is_offered=True, remakes=True))
    reached = {handle: text for handle, text in cut.items() if handle in referring}
    best = max(reached.values(), key=lambda text: sum(n in text and n not in referring for n in step.needed), default="")
    return [without, referring, f"{referring}\n{best}", "\n".join((referring, *reached.values()))]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--budget", type=int, default=16_000)
    parser.add_argument("--steps", type=int, default=4)
    parser.add_argument("--sessions", type=int, default=1_000)
    given = parser.parse_args()
    found: dict[tuple[str, str], tuple[list[float], list[float]]] = {}
    for file in given.files:
        for line in file.read_text().splitlines()[: given.sessions]:
            session = json.loads(line)
            fmt = "anthropic" if session["format"].startswith("anthropic") else "openai-chat"
            for step in steps(session["messages"], given.budget, given.steps):
                for form, is_stable in (("one fit", False), ("prefix-stable", True)):
                    texts = measured(step, fmt, given.budget, is_stable=is_stable)
                    for column, text in zip(COLUMNS, texts, strict=True):
                        recalls, distants = found.setdefault((form, column), ([], []))
                        recalls += [r for r in (share(step.needed, text),) if r is not None]
                        distants += [r for r in (share(step.distant, text),) if r is not None]
    print(f"| {given.budget:,} tokens | | recall | distant |\n|---|---|---|---|")
    for (form, column), (recalls, distants) in found.items():
        print(f"| {form} | {column} | {_mean(recalls)} | {_mean(distants)} |", flush=True)


def _mean(values: list[float]) -> str:
    return f"{statistics.mean(values):.4f} ({len(values)})" if values else "none"


if __name__ == "__main__":
    main()
