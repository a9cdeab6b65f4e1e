"""What is left after ten compactions of what was said once, by who said it and who wrote the summaries.

    uv run --group bench python benchmarks/drift.py [--windows 8000,30000]

Rules and facts of the user, decisions and facts of the assistant, and facts of a tool's result are planted at the beginning
of the conversations of `summaries.py`. The summarisers are scripted: one carries every point, one loses a random tenth of
the points that it is given each time, one says each point in other words and rounds a tenth of the figures, one carries
nothing. A point counts as kept if its name stands in what is sent after the tenth compaction: in the summary, or elsewhere,
that is in the user's words and the record of what was done.
"""

from __future__ import annotations

import argparse
import random
from collections import Counter as Occurrences
from collections.abc import Iterator
from typing import Any

from contestants import text_of
from summaries import COUNTER, MOST_COMPACTIONS, Measured, Session, conversations

from ctx_hooks.addons.summaries.candidates import SummaryTask
from ctx_hooks.addons.summaries.check import checked
from ctx_hooks.compaction.summary.model_written import WrittenSummary
from ctx_hooks.conversation.placeholders import block_quoted
from ctx_hooks.policy.addon_settings import SummarySettings

RULES = {
    "legacy/tuner_a.py": "Never edit legacy/tuner_a.py, whatever anyone says.",
    "make_report_b": "Always run make_report_b before you commit.",
    "docs/style_c.md": "I prefer short sentences, see docs/style_c.md.",
    "branch_d": "Bitte arbeite nur auf branch_d.",
    "release_e": "请不要修改 release_e 的任何文件。",
}
FACTS = {f"host-{n}.local:48{n}1{n}": "The staging server is host-{0}.local:48{0}1{0}." for n in range(1, 6)}
DECISIONS = {f"store_{n}": f"Decision: store_{n} stays, because its backup is one file." for n in range(1, 6)}
FOUND = {f"cause_{n}": f"I found that cause_{n} delays the import." for n in range(1, 6)}
RESULTS = {f"queue_{n}": f"queue_{n} holds 7{n}21{n} rows" for n in range(1, 6)}
OTHER_WORDS = ("Noted: {}", "It holds that {}", "As agreed, {}", "Still true: {}")
LOST_FRACTION = 0.1
Kinds = dict[str, dict[str, str]]


def planted() -> Kinds:
    """Return the sentences by kind and by the name that is asked for."""
    facts = {name: text.format(n) for n, (name, text) in enumerate(FACTS.items(), start=1)}
    return {
        "user's rules": RULES,
        "user's facts": facts,
        "assistant's decisions": DECISIONS,
        "assistant's findings": FOUND,
        "facts of a result": RESULTS,
    }


def opening(kinds: Kinds) -> list[dict[str, Any]]:
    """Return the exchanges in which everything is said once."""
    rules, facts, decisions, found, results = ("\n".join(said.values()) for said in kinds.values())
    call = {"id": "p", "type": "function", "function": {"name": "count_rows", "arguments": "{}"}}
    return [
        {"role": "user", "content": f"Migrate the archive.\n{rules}"},
        {"role": "assistant", "content": "I count the rows.", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "p", "content": results},
        {"role": "assistant", "content": f"{decisions}\n{found}"},
        {"role": "user", "content": facts},
        {"role": "assistant", "content": "I see."},
    ]


class Summariser:
    """Writes summaries of what was planted, in the manner that its name says."""

    def __init__(self, manner: str, kinds: Kinds, seed: int) -> None:
        self.manner, self.rng = manner, random.Random(seed)
        self.user = {**kinds["user's rules"], **kinds["user's facts"]}
        self.points = {n: t for said in kinds.values() for n, t in said.items() if n not in self.user}

    def __call__(self, task: SummaryTask, settings: SummarySettings) -> WrittenSummary | None:
        """Return the summary, None if it is rejected."""
        given = task.before or "\n".join(
            (*(m.text for m in task.messages), *(r.text for m in task.messages for r in m.results))
        )
        quoted = [f'- "{text}"' for name, text in self.user.items() if name in given and self._carries()]
        points = [f"- {self._said(text)}" for name, text in self.points.items() if name in given and self._carries()]
        sections = ("## Goal", "Migrate the archive.", "## Findings", *points, "## Next step", "Go on.")
        found = checked("\n".join((*sections, "## User's words", *quoted)), task, settings, COUNTER)
        return WrittenSummary(task.prefix, task.length, found.text) if found.text else None

    def _carries(self) -> bool:
        if self.manner == "carries nothing":
            return False
        return self.manner != "loses a tenth" or self.rng.random() >= LOST_FRACTION

    def _said(self, text: str) -> str:
        if self.manner != "other words":
            return text
        if self.rng.random() < LOST_FRACTION:
            text = text.replace("_", f"_{self.rng.randrange(100, 999)}")
        return self.rng.choice(OTHER_WORDS).format(text)


def kept(messages: list[Any], window: int, write: Summariser, kinds: Kinds) -> Iterator[tuple[str, str]]:
    """Yield the kind of each point that is kept after the last compaction, and where it stands."""
    mode = "none" if write.manner == "none" else "blocking"
    session = Session("openai-chat", [*opening(kinds), *messages], window, mode, write)
    *_, (_, last) = session.sent(Measured())
    text = text_of(last)
    written = (s.text for s in session.summaries.written.values())
    summary = max((t for t in written if block_quoted(t) in text), key=len, default="")
    rest = text.replace(block_quoted(summary), "") if summary else text
    for kind, said in kinds.items():
        yield from ((kind, "summary") for name in said if name in summary)
        yield from ((kind, "elsewhere") for name in said if name in rest)
        yield from ((kind, "kept") for name in said if name in text)
    yield from (("summaries", "kept") for _ in session.summaries.written)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--windows", default="8000,30000")
    parser.add_argument("--seeds", type=int, default=3)
    given = parser.parse_args()
    kinds = planted()
    print(f"Kept after {MOST_COMPACTIONS - 1} compactions; in the summary; elsewhere.\n")
    print(f"| window | conversation | summariser | summaries | {' | '.join(kinds)} |")
    print("|" + "---|" * (4 + len(kinds)))
    for window in map(int, given.windows.split(",")):
        for name, messages in conversations(window * 6).items():
            for manner in ("none", "good", "loses a tenth", "other words", "carries nothing"):
                seeds = given.seeds if manner in ("loses a tenth", "other words") else 1
                found: Occurrences[tuple[str, str]] = Occurrences()
                for seed in range(seeds):
                    found.update(kept(messages, window, Summariser(manner, kinds, seed), kinds))
                cells = [
                    ", ".join(f"{found[kind, where] / len(said) / seeds:.2f}" for where in ("kept", "summary", "elsewhere"))
                    for kind, said in kinds.items()
                ]
                written = found["summaries", "kept"] // seeds
                print(f"| {window} | {name} | {manner} | {written} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
