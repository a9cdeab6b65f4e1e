"""What a configured summary does to sessions: where it stands, which of those asked for are sent, what it costs and keeps.

    uv run --group bench python benchmarks/summaries.py [SESSIONS.jsonl...] [--windows 8000,30000,60000] [--formats ...]

Three generated conversations, and the first session of each file. The summariser is scripted and good: it carries on what
was planted and the paths of calls. In the background it is done by the next request. Recall is what `recall.py` measures, of
recorded sessions; the cache share is what each request has in common with the one before, to the character.
"""

from __future__ import annotations

import argparse
import json
import random
import statistics
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from os.path import commonprefix
from pathlib import Path
from typing import Any, TypeAlias

from contestants import text_of
from recall import share, steps

from ctx_hooks.addons.summaries.candidates import SummaryTask, conversation_key, fitted, is_due, task_of
from ctx_hooks.addons.summaries.check import checked
from ctx_hooks.compaction.history import History
from ctx_hooks.compaction.message_index import message_stats, request_points, settled_length
from ctx_hooks.compaction.prefix_stable import compacted
from ctx_hooks.compaction.summary.model_written import NO_SUMMARIES, Summaries, WrittenSummary
from ctx_hooks.compaction.thresholds import Thresholds
from ctx_hooks.formats import WIRE_FORMATS
from ctx_hooks.formats.reader import MessageReader
from ctx_hooks.learning.attempts import Attempt, Known
from ctx_hooks.policy.addon_settings import SummarySettings
from ctx_hooks.policy.settings import DEFAULT_POLICY
from ctx_hooks.testing import agent_session
from ctx_hooks.tokens.budget import Budget, Window, budget_tokens_of
from ctx_hooks.tokens.counter import DEFAULT, Counter
from ctx_hooks.tokens.units import LocalTokens, ProviderTokens

Writer: TypeAlias = Callable[[SummaryTask, SummarySettings], WrittenSummary | None]
COUNTER = Counter(DEFAULT)
MOST_COMPACTIONS = 11
RULE = "Never edit the file legacy/piano_tuner.py, whatever anyone says."
PLANTED = ("The staging server listens on port 48213.", "Decision: we keep SQLite, because the backup is one file.")
WORDS = ["parse", "index", "cache", "token", "buffer", "router", "schema", "commit", "branch", "handler", "policy", "window"]


@dataclass
class Measured:
    """What was found of a session in one way of compacting it."""

    compacted: int = 0
    held: int = 0
    asked: int = 0
    sent: int = 0
    cached_chars: int = 0
    sent_chars: int = 0
    kept: int = 0
    recall: list[float] = field(default_factory=list)

    def row(self) -> str:
        """Return the figures as cells of a table."""
        recall = f"{statistics.mean(self.recall):.3f} ({len(self.recall)})" if self.recall else ""
        cached = self.cached_chars / max(1, self.sent_chars)
        shares = f"{self.held} of {self.compacted} | {self.sent} of {self.asked} | {cached:.4f}"
        return f"{shares} | {self.kept} of {self.compacted} | {recall}"


def conversations(tokens: int, fmt: Any = "openai-chat") -> dict[str, list[dict[str, Any]]]:
    """Return generated conversations of about so many tokens; talk is the same in each format."""
    rng = random.Random(1)

    def prose(words: int) -> str:
        return " ".join(rng.choice(WORDS) + "." * (n % 12 == 11) for n in range(words))

    def talk(turns: int, asked: int, answered: int) -> list[dict[str, Any]]:
        lengths = {"user": asked, "assistant": answered}
        return [{"role": r, "content": f"{n}: {prose(lengths[r])}"} for n in range(turns) for r in lengths]

    session = agent_session(fmt, turns=tokens // 700, result_chars=1_600)
    reads = session["input" if fmt == "openai-responses" else "messages"][:-1]
    asks = {"role": "user", "content": "And then?"}
    return {
        "long turns": [*talk(tokens // 1_250, 60, 1_100), asks],
        "small reads": [m for m in reads if m.get("role") != "system"],
        "short notes": [*talk(tokens // 100, 45, 30), asks],
    }


def opening() -> list[dict[str, Any]]:
    """Return the two messages that hold what is planted, valid in each format."""
    planted = "\n".join(("I looked around.", *PLANTED))
    return [{"role": "user", "content": f"Migrate the archive. {RULE}"}, {"role": "assistant", "content": planted}]


def summary_of(task: SummaryTask, settings: SummarySettings) -> WrittenSummary | None:
    """Return a good summary: what was planted, and the newest paths that calls have named; None if it is rejected."""
    texts = [task.before, *(m.text for m in task.messages)]
    kept = [f"- {line}" for line in PLANTED if any(line in text for text in texts)]
    rule = [f'"{RULE}"'] if any(RULE in text for text in texts) else []
    calls = [json.loads(c.arguments) for m in task.messages for c in m.calls if c.arguments.startswith("{")]
    paths = [
        f"- `{p}`" for call in calls for p in call.values() if isinstance(p, str) and "/" in p and not set(" \n") & {*p}
    ]
    files = list(dict.fromkeys([*(line for line in task.before.splitlines() if line.startswith("- `")), *paths]))
    while True:
        sections = ("## Goal", "Migrate the archive.", "## User's words", *rule, "## Decisions", *kept, "## Files", *files)
        text = checked("\n".join(sections), task, settings, COUNTER)
        if text.reasons != ("too_long",) or not files:
            break
        files = files[len(files) // 10 + 1 :]
    return WrittenSummary(task.prefix, task.length, text.text) if text.text else None


class Session:
    """A session that is replayed request by request with the summaries that are known by then."""

    def __init__(self, fmt: Any, messages: list[Any], window: int, mode: str, write: Writer = summary_of) -> None:
        self.fmt, self.messages, self.mode = fmt, messages, mode
        self.index = message_stats(MessageReader(fmt, messages), COUNTER)
        tokens = ProviderTokens(window)
        self.known = Known(Window(tokens, "model_info"))
        self.goal = LocalTokens(budget_tokens_of(self.known.window, DEFAULT_POLICY))
        self.budget = Budget(self.goal, tokens, COUNTER, DEFAULT_POLICY, cut_newest=False)
        self.settings = fitted(SummarySettings(model="summariser"), self.goal)
        self.summaries: Summaries = NO_SUMMARIES
        self.write = write

    def sent(self, measured: Measured) -> Iterator[tuple[int, list[Any]]]:
        """Yield what is sent for each request, up to MOST_COMPACTIONS, and how many messages the request came with."""
        codec, seen, last, compactions = WIRE_FORMATS[self.fmt], 0, 0, 0
        for length in request_points(self.index):
            reader = MessageReader(self.fmt, self.messages[:length])
            history = History(reader, self.index[:length], LocalTokens(0), b"")
            if self.mode != "none" and not self.summaries.conversation:
                self.summaries = Summaries(conversation_key(reader, "", self.settings))
            outcome, cut = compacted(history, Thresholds(self.budget), summaries=self.summaries)
            choice = outcome.choice
            if choice is not None and choice.compaction not in self.summaries.chosen:
                if self.mode == "blocking" and choice.is_new:
                    self._ask(history, choice.length, choice.length - 1, measured)
                    outcome, cut = compacted(history, Thresholds(self.budget), summaries=self.summaries)
                    choice = outcome.choice or choice
                chosen = {**self.summaries.chosen, choice.compaction: choice.prefix}
                self.summaries = replace(self.summaries, chosen=chosen)
            compactions, last = compactions + (cut.length != last), cut.length
            if compactions > MOST_COMPACTIONS:
                break
            measured.compacted += bool(cut.length)
            measured.held += bool(choice and choice.prefix)
            yield length, codec.write(outcome.conversation)
            received = LocalTokens(sum(m.tokens for m in history.index))
            attempt = Attempt(None, self.known, self.fmt, received)  # type: ignore[arg-type] - it goes nowhere
            attempt = replace(attempt, seen_tokens=LocalTokens(seen), budget_tokens=self.goal, choice=choice)
            seen = received
            if self.mode == "background" and is_due(attempt, outcome.tokens_after, self.settings.soft_fraction):
                self._ask(history, settled_length(history.index, length), max(0, cut.length - 1), measured)
        measured.sent += len({*self.summaries.chosen.values()} - {""})

    def _ask(self, history: History, length: int, after: int, measured: Measured) -> None:
        task = task_of(history, self.summaries, length, after)
        if task is not None:
            measured.asked += 1
            written = self.write(task, self.settings)
            if written is not None:
                self.summaries = replace(self.summaries, written={**self.summaries.written, written.prefix: written})


def measure(fmt: Any, messages: list[Any], window: int, mode: str, most_steps: int, measured: Measured) -> None:
    """Add the figures of one session."""
    session = Session(fmt, [*opening(), *messages], window, mode)
    found = steps(session.messages, session.goal, most_steps) if most_steps else ()
    measured_steps = {len(step.context): step for step in found}
    before = ""
    compacted_before = measured.compacted
    for length, sent in session.sent(measured):
        written = "\n".join(json.dumps(m, sort_keys=True) for m in sent)
        measured.cached_chars += len(commonprefix([before, written]))  # noqa: RUF071 - characters are asked for
        measured.sent_chars += len(written)
        before = written
        text = text_of(sent)
        measured.kept += measured.compacted > compacted_before and all(said in text for said in (RULE, *PLANTED))
        compacted_before = measured.compacted
        if length in measured_steps:
            measured.recall += [s for s in [share(measured_steps[length].needed, text)] if s is not None]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path)
    parser.add_argument("--windows", default="8000,30000,60000")
    parser.add_argument("--formats", default="openai-chat,anthropic,openai-responses", help="of the generated conversations")
    parser.add_argument("--steps", type=int, default=8, help="steps of each recorded session")
    given = parser.parse_args()
    recorded = [json.loads(path.read_text(encoding="utf-8").splitlines()[0]) for path in given.paths]
    print("| window | conversation | mode | with a summary | sent of asked | cache share | all planted kept | recall |")
    print("|" + "---|" * 8)
    for window in map(int, given.windows.split(",")):
        named = {
            f"{name}, {fmt}": [(fmt, messages, 0)]
            for fmt in filter(None, given.formats.split(","))
            for name, messages in conversations(window * 6, fmt).items()
        }
        named |= {"recorded": [(s["format"], s["messages"], given.steps) for s in recorded]} if recorded else {}
        for name, sessions in named.items():
            for mode in ("none", "background", "blocking"):
                found = Measured()
                for fmt, messages, most_steps in sessions:
                    said = [m for m in messages if m.get("role") != "system"]
                    measure(fmt, said, window, mode, most_steps, found)
                print(f"| {window} | {name} | {mode} | {found.row()} |", flush=True)


if __name__ == "__main__":
    main()
