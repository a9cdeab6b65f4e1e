"""How low to compact: what is kept, served from the cache and paid, over the share of the budget that a compaction leaves.

    uv run --group bench python benchmarks/compaction_depth.py SESSIONS.jsonl... [--budget 32000] [--steps 8]

Replays each session request by request, once for each share, and once with what the package leaves. The second table is a
scripted session: 25 files of 4,000 tokens, read one or three a turn, beside the best share that a foreseeing choice of
compactions reaches.
"""

from __future__ import annotations

import argparse
import random
import statistics
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

from contestants import text_of
from fidelity import sessions
from recall import Step, kept_lines, share, steps
from replaying import Sent, cache_share, price

from ctx_hooks.compaction.history import History
from ctx_hooks.compaction.message_index import digest_of, message_stats, request_points
from ctx_hooks.compaction.prefix_stable import compacted
from ctx_hooks.compaction.thresholds import Thresholds
from ctx_hooks.formats import WIRE_FORMATS
from ctx_hooks.formats.reader import MessageReader
from ctx_hooks.testing.conversations import source_text
from ctx_hooks.tokens.budget import Budget
from ctx_hooks.tokens.counter import Counter

SHARES = (0.25, 0.375, 0.5, 0.625, 0.75)
USUAL = "usual"
MISSED_NAME_REQUESTS = 4
"""What a missed name costs, in prompts read: the request that goes wrong, the one that finds out, the one that looks the
name up, and the one done again."""
FILES, FILE_CHARS = 25, 16_000
"""The session of `benchmarks/clients`."""
CALLS, WINDOWS = (1, 3), (60_000, 30_000)
USED_FRACTION = 0.92
"""Of a window, the reserve for the answer taken off (`reserve: 8%`)."""
ENDLESS_TOKENS = 10**9
LEAST_SHARE = 1e-6
"""Leaves what is protected and the summary alone."""
DEPTHS = 24
"""So many depths are tried for the best choice of compactions."""


@dataclass
class Found:
    """What the sessions have shown at one share.

    Attributes:
        sent: the requests above the budget.
        measured: by name, one value a measured step; `missed` counts names.
    """

    sent: list[Sent] = field(default_factory=list)
    measured: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))

    def mean(self, name: str) -> float:
        """Return the mean of a measure."""
        return statistics.mean(self.measured[name])

    @property
    def paid(self) -> float:
        """The mean price of a request, the missed names counted as requests that read the prompt once more."""
        request = price(self.sent) / len(self.sent)
        read = 0.1 * statistics.mean(s.tokens for s in self.sent)
        return request + self.mean("missed") * MISSED_NAME_REQUESTS * read


def requests(fmt: Any, messages: list[Any], budget: Budget, target: float | None) -> Iterator[tuple[int, Sent, list[Any]]]:
    """Yield of each request its number of messages, what of it a prefix cache serves, and the messages that are sent."""
    index = message_stats(MessageReader(fmt, messages), budget.counter)
    before: list[bytes] = []
    for length in request_points(index):
        history = History(MessageReader(fmt, messages[:length]), index[:length], 0, b"")
        fixed = history.fixed_tokens
        tokens = None if target is None else fixed + int((budget.goal_tokens - fixed) * target)
        outcome, cut = compacted(history, Thresholds(budget, tokens))
        written = WIRE_FORMATS[fmt].write(outcome.conversation)
        digests = [digest_of(m) for m in written]
        sizes = [budget.counter.message(m, fmt) for m in outcome.conversation.messages]
        pairs = enumerate(zip(digests, before, strict=False))
        shared = next((i for i, (a, b) in pairs if a != b), min(len(before), len(digests)))
        yield length, Sent(sum(sizes), sum(sizes[:shared]), cut.number), written
        before = digests


def replay(session: dict[str, Any], found: dict[Any, Found], budget_tokens: int, most: int) -> None:
    """Add what a session shows at each share to `found`."""
    fmt, messages = session["format"], list(session["messages"])
    if session.get("system") and fmt == "openai-chat":
        messages.insert(0, {"role": "system", "content": session["system"]})
    wanted: dict[int, Step] = {len(step.context): step for step in steps(messages, budget_tokens, most)}
    if not wanted:
        return
    budget = Budget(budget_tokens, budget_tokens * 5 // 4, Counter("cl100k_base"))
    for target in (*SHARES, None):
        here = found[target or USUAL]
        for length, sent, written in requests(fmt, messages, budget, target):
            if sent.compactions:
                here.sent.append(sent)
            step = wanted.get(length)
            if step is not None and step.needed:
                before, after = text_of(step.context), text_of(written)
                here.measured["recall"].append(share(step.needed, after))
                here.measured["in-line"].append(share(step.needed, kept_lines(before, after)))
                here.measured["missed"].append(sum(name not in after for name in step.needed))
                if step.distant:
                    here.measured["distant"].append(share(step.distant, after))


def scripted(calls: int) -> list[Any]:
    """Return a session that reads 25 files, so many a turn."""
    messages: list[Any] = [
        {"role": "system", "content": "You are a careful reviewer."},
        {"role": "user", "content": "Read every file from file_01.txt to file_25.txt, and say when you are done."},
    ]
    for first in range(1, FILES + 1, calls):
        numbers = range(first, min(first + calls, FILES + 1))
        names = {f"call_{n}": f'{{"path": "/work/file_{n:02}.txt"}}' for n in numbers}
        asked = [{"id": i, "type": "function", "function": {"name": "read_file", "arguments": a}} for i, a in names.items()]
        messages.append({"role": "assistant", "content": None, "tool_calls": asked})
        texts = (source_text(random.Random(n), FILE_CHARS) for n in numbers)
        messages += [{"role": "tool", "tool_call_id": i, "content": t} for i, t in zip(names, texts, strict=True)]
    return messages


def best_share(sizes: Sequence[int], budget_tokens: int, least_tokens: int) -> float:
    """Return the largest cache share that any choice of compactions and of what each leaves can reach.

    Args:
        sizes: the tokens of each request as it came.
        budget_tokens: the most that a request may have.
        least_tokens: what a compaction leaves at least, beside what the request has brought.
    """
    grown = [sizes[0], *(after - before for before, after in pairwise(sizes))]
    depths = range(least_tokens, budget_tokens, budget_tokens // DEPTHS)

    def reached(wanted: float) -> float:
        """Return the share of the requests that serve most above a share that is wanted."""

        @cache
        def best(number: int, cut: int, left: int) -> tuple[float, float, float]:
            """Return what is gained, cached and sent from a request on, whose newest compaction left so much at `cut`."""
            if number == len(sizes):
                return 0.0, 0.0, 0.0
            ways = [(left + sizes[number] - sizes[cut], grown[number], cut, left)]
            ways += [(depth + grown[number], depth + grown[number], number, depth + grown[number]) for depth in depths]
            options = []
            for whole, new, *newest in ways:
                if whole <= budget_tokens:
                    gained, cached, sent = best(number + 1, *newest)
                    options.append((gained + whole - new - wanted * whole, cached + whole - new, sent + whole))
            return max(options)

        _, cached, sent = best(1, 0, sizes[0])
        return cached / (sent + sizes[0])

    share_now, share_before = reached(0.0), -1.0
    while share_now > share_before + 1e-6:  # Dinkelbach: wanting what was reached reaches more, until it does not
        share_now, share_before = max(share_now, reached(share_now)), share_now
    return share_now


def least_left(messages: list[Any], budget: Budget, sizes: Sequence[int]) -> int:
    """Return what a compaction of a scripted session leaves at least, beside what the request has brought."""
    sent = [s for _, s, _ in requests("openai-chat", messages, budget, LEAST_SHARE)]
    made = (n for n in range(1, len(sent)) if sent[n].compactions > sent[n - 1].compactions)
    return max(0, min(sent[n].tokens - (sizes[n] - sizes[n - 1]) for n in made))


def scripted_table() -> str:
    """Return the cache shares of the scripted sessions as Markdown."""
    lines = ["| window | calls a turn | half | usual | best possible |", "|---|---|---|---|---|"]
    for window in WINDOWS:
        for calls in CALLS:
            messages, counter = scripted(calls), Counter("cl100k_base")
            budget = Budget(int(window * USED_FRACTION), window, counter)
            half, usual = (cache_share([s for _, s, _ in requests("openai-chat", messages, budget, t)]) for t in (0.5, None))
            sizes = [s.tokens for _, s, _ in requests("openai-chat", messages, budget.with_goal(ENDLESS_TOKENS), None)]
            best = best_share(sizes, budget.goal_tokens, least_left(messages, budget, sizes))
            lines.append(f"| {window:,} | {calls} | {half:.2f} | {usual:.2f} | {best:.2f} |")
    return "\n".join(lines)


def table(found: dict[Any, Found]) -> str:
    """Return what was measured as Markdown."""
    lines = [
        "| left | recall | in-line | distant | cache share | price | with missed names |",
        "|---|---|---|---|---|---|---|",
    ]
    for name, here in found.items():
        cells = [f"{here.mean(m):.3f}" for m in ("recall", "in-line", "distant")]
        cells += [f"{cache_share(here.sent):.3f}", f"{price(here.sent) / len(here.sent):,.0f}", f"{here.paid:,.0f}"]
        lines.append(f"| {name if name == USUAL else f'{name:.3f}'} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--budget", type=int, default=32_000)
    parser.add_argument("--steps", type=int, default=8, help="measured steps of each session")
    arguments = parser.parse_args()
    found: dict[Any, Found] = defaultdict(Found)
    count = 0
    for session in sessions(arguments.paths):
        before = len(found[USUAL].sent)
        replay(session, found, arguments.budget, arguments.steps)
        count += len(found[USUAL].sent) > before
    measured = table(dict(sorted(found.items(), key=lambda item: str(item[0]))))
    print(f"{count} sessions at {arguments.budget:,} tokens\n\n{measured}\n\n{scripted_table()}")


if __name__ == "__main__":
    main()
