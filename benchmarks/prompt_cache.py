"""The effect of compaction on the provider's prompt cache and on cost, for recorded sessions, and the time of replaying.

    uv run --group bench python benchmarks/prompt_cache.py SESSIONS.jsonl... [--budget 32000]

One line a session: requests, compactions and their bound, the share of the prompt that a prefix cache serves, and the
price of all prompts in plain input tokens (cache read 0.1, write 1.25), the same without compression and with a cut that
moves with every request. The last column is the processor time of replaying all requests, divided by that of counting the
tokens once.
"""

from __future__ import annotations

import argparse
import json
import math
import time
from pathlib import Path
from typing import Any

from replaying import cache_share, measure, price

from ctx_hooks.compaction.history import History
from ctx_hooks.compaction.message_index import message_stats, request_points
from ctx_hooks.compaction.prefix_stable import compacted
from ctx_hooks.compaction.thresholds import TARGET_FRACTION, Thresholds
from ctx_hooks.formats import WIRE_FORMATS
from ctx_hooks.formats.reader import MessageReader
from ctx_hooks.runtime import content_cache
from ctx_hooks.tokens.budget import Budget
from ctx_hooks.tokens.counter import DEFAULT, Counter


def replaying_over_counting(fmt: str, messages: list[Any], budget_tokens: int) -> float:
    """Return the time of deciding every request of a session, one after another, over that of counting it once."""
    content_cache.clear_all()
    counter, codec = Counter(DEFAULT), WIRE_FORMATS[fmt]
    started = time.process_time()
    Counter(DEFAULT).conversation(codec.read(messages))
    counting = time.process_time() - started
    content_cache.clear_all()
    started = time.process_time()
    index = message_stats(MessageReader(fmt, messages), counter)
    budget = Budget(budget_tokens, budget_tokens * 5 // 4, counter)
    for length in request_points(index):
        history = History(MessageReader(fmt, messages[:length]), index[:length], 0, b"")
        compacted(history, Thresholds(budget))
    return (time.process_time() - started) / counting


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path)
    parser.add_argument("--budget", type=int, default=32_000)
    arguments = parser.parse_args()
    freed_tokens = arguments.budget * (1 - TARGET_FRACTION)
    print("| session | tokens | requests | compactions (at most) | cache share | cost | uncompressed | sliding cut | time |")
    print("|---|---|---|---|---|---|---|---|---|")
    for path in arguments.paths:
        for line in path.read_text(encoding="utf-8").splitlines():
            recorded = json.loads(line)
            fmt, messages = recorded["format"], recorded["messages"]
            session = measure(str(recorded.get("id")), fmt, messages, arguments.budget)
            total = session.uncompressed[-1].tokens
            most = math.ceil(total / freed_tokens) + 1
            ratio = replaying_over_counting(fmt, messages, arguments.budget)
            paid, raw, slid = (price(s) for s in (session.replayed, session.uncompressed, session.sliding))
            done = session.replayed[-1].compactions
            print(
                f"| {session.name[-14:]} | {total:,} | {len(session.replayed)} | {done} ({most}) | "
                f"{cache_share(session.replayed):.3f} | {paid:,.0f} | {raw:,.0f} | {slid:,.0f} | {ratio:.1f} |"
            )


if __name__ == "__main__":
    main()
