"""The time of compressing 150,000 tokens to 32,000: cold, with all but the last turn seen before, between two compactions.

    uv run --group bench python benchmarks/speed.py [FILE.jsonl...]

Without a file a generated agent session is used. Each figure is the least processor time of several repeats; its share of
what litellm.compress takes for the same messages is comparable between machines.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from contestants import litellm_compress, size

import ctx_hooks
from ctx_hooks.runtime import content_cache
from ctx_hooks.testing import agent_session

SESSION_TOKENS = 150_000
BUDGET_TOKENS = 32_000
REPEATS = 5


def sessions(paths: list[Path]) -> Iterator[tuple[str, str, list[Any]]]:
    """Yield name, format and messages of sessions cut to about 150,000 tokens."""
    if not paths:
        for fmt in ("openai-chat", "anthropic"):
            messages = agent_session(fmt, turns=180, result_chars=3_000)["messages"]
            yield f"generated {fmt}", fmt, messages
    for path in paths:
        for line in path.read_text(encoding="utf-8").splitlines():
            session = json.loads(line)
            messages = session["messages"]
            total, n = 0, 0
            while n < len(messages) and total < SESSION_TOKENS:
                total += size(messages[n : n + 1])
                n += 1
            while n and messages[n - 1].get("role") == "assistant":
                n -= 1
            if total >= SESSION_TOKENS:
                yield session["id"], session["format"], messages[:n]


def least(work: Callable[[], object], before: Callable[[], object]) -> float:
    """Return the least milliseconds of `work`, with `before` run ahead of each repeat and not timed."""
    found = []
    for _ in range(REPEATS):
        before()
        started = time.process_time()
        work()
        found.append((time.process_time() - started) * 1e3)
    return min(found)


def main() -> None:
    """Print a line a session and mode."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="*", type=Path)
    arguments = parser.parse_args()
    ctx_hooks.compress([{"role": "user", "content": "load the vocabulary"}], format="openai-chat", budget_tokens=1)
    kinds = ("cold", "warm", "between")
    print(f"{'session':40}{'litellm ms':>12}" + "".join(f"{f'{kind} ms':>12}{'share':>8}" for kind in kinds))
    for name, fmt, messages in sessions(arguments.paths):
        try:
            theirs = least(lambda m=messages, f=fmt: litellm_compress(m, None, f, BUDGET_TOKENS), lambda: None)
        except AttributeError:
            theirs = float("nan")  # it fails on messages whose content is null
        fit = partial(ctx_hooks.compress, format=fmt, budget_tokens=BUDGET_TOKENS)
        session = partial(fit, target_tokens="auto")

        def seen_by(call: Callable[[list[Any]], object], found: list[Any] = messages) -> None:
            content_cache.clear_all()
            call(found[:-2])

        ours = (
            least(partial(fit, messages), content_cache.clear_all),
            least(partial(fit, messages), partial(seen_by, fit)),
            least(partial(session, messages), partial(seen_by, session)),
        )
        print(f"{name:40}{theirs:12.1f}" + "".join(f"{spent:12.1f}{spent / theirs:8.2f}" for spent in ours))


if __name__ == "__main__":
    main()
